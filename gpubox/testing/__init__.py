"""What pytest needs to ask the hosts of an inventory: for this repository's tests and for a person's project."""
