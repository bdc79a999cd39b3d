"""Counts behind noisy counts: laws of noise, duals, non-linear belief propagation, closest marginals."""
