"""What apt reads and says, understood without a host: sources, keys, refusals."""
