"""Arrays in one compressed text, from which the page reads them."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

_NAMES = {"f8": "Float64Array", "f4": "Float32Array", "i4": "Int32Array", "i2": "Int16Array", "u2": "Uint16Array"}
_NAMES |= {"u1": "Uint8Array"}
_ALIGNED = 8  # bytes: where typed arrays of any kind may start


@dataclass
class Packed:
    """Arrays one after the other, little-endian."""

    parts: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, values: ArrayLike, dtype: DTypeLike) -> dict[str, Any]:
        """Append an array, flat; return what the page reads as this array: its type, place in bytes and length."""
        array = np.ascontiguousarray(values, np.dtype(dtype).newbyteorder("<")).ravel()
        place = {"packed": [_NAMES[array.dtype.str[1:]], self.size, array.size]}
        content = array.tobytes() + bytes(-array.nbytes % _ALIGNED)
        self.parts.append(content)
        self.size += len(content)
        return place

    def text(self) -> str:
        """Write all arrays, deflated, in base 64."""
        return base64.b64encode(zlib.compress(b"".join(self.parts), 9)).decode()
