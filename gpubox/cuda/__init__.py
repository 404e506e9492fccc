"""CUDA's packages, and what is compiled on a box."""
