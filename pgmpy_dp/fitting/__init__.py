"""From a release to a distribution: post-processing alone, which costs no privacy and sees no record."""
