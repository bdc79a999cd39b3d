"""Mixtures of products: answers, evidence, records, fits and refits."""
