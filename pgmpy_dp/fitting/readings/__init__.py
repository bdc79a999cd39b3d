"""Estimation of parameters from observations."""
