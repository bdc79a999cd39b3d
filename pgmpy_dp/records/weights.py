"""Survey weights: tables add up what records weigh, as whole numbers of parts of a public largest weight.

A record of weight w counts for w / `largest` of a record, rounded to a whole number of parts, of which a record has
:data:`~pgmpy_dp.privacy.noise.UNIT_WEIGHT`.

Sensitivity, line by line.

1. The parts of a record are a function of its own cell in the column of weights and of the public `largest` alone:
   round(UNIT_WEIGHT * clip(w, 0, largest) / largest). They are a whole number from 0 to UNIT_WEIGHT, whatever the cell
   holds: what is missing, negative or no number counts 0 parts, and what is larger than `largest` counts UNIT_WEIGHT.
   No cell is refused, since a refusal would reveal something about a record that the budget has not paid for.
2. A record adds its parts to one cell of each table, and changes nothing that other records add. So a unit adds
   non-negative whole numbers whose sum is at most c = UNIT_WEIGHT for a record; c = `max_rows` times UNIT_WEIGHT for a
   unit of which `max_rows` rows are counted; and c = UNIT_WEIGHT where all K rows of a unit are, since the parts p of
   each become floor(p * floor(UNIT_WEIGHT / K) / UNIT_WEIGHT) <= floor(UNIT_WEIGHT / K), K times.
3. Adding or removing the unit changes a table by at most c in the L1 and in the L2 norm; replacing it by another of any
   weight by at most 2 c and sqrt(2) c. This is :func:`~pgmpy_dp.privacy.noise.table_sensitivity` at c rows, by
   which integer noise on the parts is priced as for counts.
4. Dividing by UNIT_WEIGHT, which is exact, is post-processing: released tables are in records of the largest weight,
   where c is 1 or `max_rows`, as without weights. In the unit of the weights, noise is `largest` times that of counts.

Rounding moves a weight by at most `largest` / 2**21.

Sampling. Of records drawn independently, the share of the weight that is in a cell has a variance of about sum w^2 (x -
p)^2 / (sum w)^2 <= p (1 - p) / (sum w / `largest`), since w^2 <= w `largest`. A table in records of the largest weight
therefore contains no more information than as many records of equal weight would: bounds and tests of fit that take its
total for a number of records allow for at least the sampling error that there is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.privacy.checks import number as require_number
from pgmpy_dp.privacy.noise import UNIT_WEIGHT
from pgmpy_dp.records.cells import as_float, written_number
from pgmpy_dp.records.columns import column_numbers


@dataclass(frozen=True)
class Weights:
    """Column of the records that holds weights, and the largest weight."""

    column: str
    largest: float  # larger weights count as this one

    def parts(self, column: Any) -> NDArray[np.int64]:
        """Find how many parts each cell of a column counts."""
        return self._rounded(column_numbers(column))

    def text_parts(self, decimal: str, text: str) -> int:
        """Find how many parts a text of a file without types counts."""
        number = written_number(text, decimal)
        return int(self._rounded(np.array([math.nan if number is None else as_float(number)]))[0])

    def _rounded(self, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        clipped = np.clip(np.where(np.isnan(numbers), 0.0, numbers), 0.0, self.largest)
        return np.rint(clipped / self.largest * UNIT_WEIGHT).astype(np.int64)


def checked_weights(column: Any, largest: Any) -> Weights | None:
    """Check the weights that a caller asks for; None where records count alike."""
    if column is None and largest is None:
        return None
    if not isinstance(column, str) or not column:
        raise ValueError(f"weights must name the column of the records that holds them, got {column!r}.")
    if largest is None:
        raise ValueError(
            "Weights need a public largest weight, to which noise is scaled; larger ones are clipped: "
            "give largest_weight."
        )
    require_number(minimum=1e-100, maximum=1e100)("largest_weight", largest)
    return Weights(column, float(largest))
