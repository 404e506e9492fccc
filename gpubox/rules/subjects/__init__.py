"""The rules, one subject a file."""
