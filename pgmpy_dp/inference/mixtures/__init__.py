"""Mixtures of products: answers, evidence, records and refits."""
