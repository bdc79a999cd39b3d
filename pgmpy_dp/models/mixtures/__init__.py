"""Queries, bounds and files of mixture and household models."""
