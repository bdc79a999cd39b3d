"""What fitted models answer, and their files."""
