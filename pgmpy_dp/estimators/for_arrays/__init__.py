"""Estimators in scikit-learn's manners: fit(X), with components or coefficients."""
