"""Junction trees, their compiled program, loopy propagation, sampling and maximisation."""
