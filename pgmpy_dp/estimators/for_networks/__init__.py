"""Estimators with pgmpy's interface: fit(model, data)."""
