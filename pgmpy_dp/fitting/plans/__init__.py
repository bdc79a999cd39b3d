"""Plans of what to measure, and of how noisy it will be."""
