"""Methods of a model that a room above it answers: they find it by the package's public names, when they are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

public: Callable[[str], Any]
"""Finds what has a public name; the package registers it."""
