"""Observations of a model's variables in one or several releases: likelihoods, rules and public tables."""
