"""Answers of networks by junction trees, and how far a release deviates from them."""
