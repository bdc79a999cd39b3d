"""From a release to a distribution: post-processing, which costs no privacy and sees no record."""

import lazy_loader

# Names are listed in __init__.pyi and imported on first use, with the libraries that they need.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
