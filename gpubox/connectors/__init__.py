"""Act: how commands reach a host."""
