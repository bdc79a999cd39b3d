"""Inference of documents' topics."""
