"""Measure: sweep a server, keep records, compare them, show them."""
