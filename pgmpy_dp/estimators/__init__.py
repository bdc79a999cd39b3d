"""Estimators: one file a method; they take releases, data sets or records and fit pgmpy networks."""

import lazy_loader

# The names are listed in __init__.pyi: a mixture needs no pgmpy, which takes half a second and 40 MB.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
