"""Estimators of models without a network."""
