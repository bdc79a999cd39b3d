"""The papers' experiments, run from a checkout: `python -m experiments --help`."""
