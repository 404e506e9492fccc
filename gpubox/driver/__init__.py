"""The driver's userland."""
