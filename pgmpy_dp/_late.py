"""Late binding of methods of models that are implemented in a higher package, found by its public name at the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

public: Callable[[str], Any]
"""Function that returns the object of a public name; the package registers it."""
