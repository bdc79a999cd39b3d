"""A release names the versions of the libraries that made it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import metadata


@cache
def library_versions(private: bool) -> Mapping[str, str]:
    """Find the versions of this package, of the accountant, and of what draws the noise."""
    libraries = ("pgmpy_dp", "dp-accounting", "opendp" if private else "numpy")
    found = {}
    for library in libraries:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:  # it runs from a source tree
            found[library] = "unknown"
    return found
