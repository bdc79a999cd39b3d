"""Evaluation: audits of privacy claims, divergences, predictions, and the papers' error measures."""

import lazy_loader

# The names are listed in __init__.pyi: each is imported when it is first used, with the libraries it needs.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
