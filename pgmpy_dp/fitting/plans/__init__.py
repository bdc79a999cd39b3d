"""What to measure, and how noisy it will be."""
