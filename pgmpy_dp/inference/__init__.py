"""Inference in discrete graphical models knows variables, tables and noise densities, nothing of privacy."""

import lazy_loader

# The names are listed in __init__.pyi: the owner's half needs tables alone, and no graphs.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
