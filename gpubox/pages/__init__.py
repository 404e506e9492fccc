"""Pages below docs/ that are made from code and data."""
