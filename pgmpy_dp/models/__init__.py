"""Queries to fitted models, and the file formats of models."""
