"""Estimators, which fit models to releases, data sets or records."""
