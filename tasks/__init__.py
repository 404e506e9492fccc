"""One file a step, in the order of deploy.py: read, compare, call operations."""
