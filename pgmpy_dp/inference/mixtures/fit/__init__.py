"""Mixtures are fitted to noisy tables."""
