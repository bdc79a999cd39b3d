"""Mechanisms, one per file: each with the derivation of its sensitivity, its price and its draw."""
