"""What runs on the box: standard library only, sent there as one archive, started with the service's own python."""
