"""Log-posteriors of log-potentials and the chains that draw from them."""
