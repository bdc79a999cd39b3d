"""Fitted models are held against their releases."""
