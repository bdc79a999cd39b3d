"""Versions of the libraries that made a release."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import metadata


@cache
def library_versions(private: bool) -> Mapping[str, str]:
    """Return the versions of this package, of the accountant, and of the library that draws the noise."""
    libraries = ("pgmpy_dp", "dp-accounting", "opendp" if private else "numpy")
    found = {}
    for library in libraries:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:  # run from a source tree
            found[library] = "unknown"
    return found
