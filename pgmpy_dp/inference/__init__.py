"""Inference in discrete graphical models; it knows variables, tables and noise densities, but not privacy."""

import lazy_loader

# Names are listed in __init__.pyi and imported on first use: the owner's half needs tables alone, and no graphs.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
