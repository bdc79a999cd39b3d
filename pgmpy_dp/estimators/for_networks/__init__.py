"""Estimators in pgmpy's manners: fit(model, data)."""
