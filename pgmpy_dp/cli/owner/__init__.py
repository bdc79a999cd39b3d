"""Commands of the owner of the records."""
