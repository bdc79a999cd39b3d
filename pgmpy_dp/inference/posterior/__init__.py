"""Posterior densities of log-potentials, and the Markov chains that draw from them."""
