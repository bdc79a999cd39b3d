"""Estimators with scikit-learn's interface: fit(X), with components or coefficients."""
