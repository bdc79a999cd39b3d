"""Fits of mixtures to noisy tables."""
