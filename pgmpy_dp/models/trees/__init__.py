"""Queries to networks by junction trees, and deviations of a release from a network."""
