"""From a release to a distribution: post-processing, which costs no privacy and sees no record."""
