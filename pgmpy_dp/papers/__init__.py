"""Methods of four papers under the papers' names: baselines, and mechanisms as printed."""

import lazy_loader

# The names are listed in __init__.pyi: each is imported when it is first used, with the libraries it needs.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
