"""The shape of a number for the page, which computes means with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pgmpy_dp.explorer.packed import Packed
from pgmpy_dp.models.shapes import Shape


def shape_content(shape: Shape, packed: Packed) -> dict[str, Any]:
    """Return what `shapes.js` needs: the density by cells, its draws, and its dependence on other variables."""
    density, knots = shape.density, np.flatnonzero(~shape.spikes)
    centres = shape.centres[0]
    offsets = shape.places - centres[density.owners]
    return {
        "knots": knots.tolist(),
        "centres": packed.add(centres[knots], np.float64),
        "logs": packed.add(np.log(np.maximum(shape.chances[knots], 1e-12)), np.float64),
        "most": shape.most_leaning.tolist(),
        "owners": packed.add(density.owners, np.int32),
        "offsets": packed.add(offsets, np.float64),
        "middles": packed.add(shape.middles, np.float64),
        "ends": [packed.add(ends, np.float64) for ends in shape.ends],
        "rows": [packed.add(density.shares, np.float64), *(packed.add(row, np.float32) for row in density.drawn)],
        "guess": shape.untold,
    }
