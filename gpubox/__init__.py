"""gpubox: takes a GPU box from a bare system to a tuned, verified, measured LLM endpoint, and keeps it there."""
