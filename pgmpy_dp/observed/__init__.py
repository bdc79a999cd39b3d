"""What releases say of some variables: observations of one or several, likelihoods, rules and public tables."""
