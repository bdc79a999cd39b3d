"""Topics of documents under given topics."""
