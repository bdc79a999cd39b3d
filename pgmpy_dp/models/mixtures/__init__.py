"""Answers, bounds and files of mixtures and of households."""
