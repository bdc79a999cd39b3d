"""Estimation of counts from noisy counts: noise distributions, duals, non-linear belief propagation, least squares."""
