"""What releases say: observations of some variables by one or several releases, likelihoods, rules and public tables."""
