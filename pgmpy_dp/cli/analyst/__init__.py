"""Commands of whoever has a release."""
