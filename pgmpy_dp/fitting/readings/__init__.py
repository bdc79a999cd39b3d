"""From observations to parameters."""
