"""Options, files and output that the commands share."""
