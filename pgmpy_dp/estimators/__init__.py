"""Estimators, one per file, which fit models to releases, data sets or records."""

import lazy_loader

# Names are loaded lazily from __init__.pyi: mixtures do not need pgmpy, whose import takes 0.5 s and 40 MB.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
