"""Read: one composite fact a domain, one command each; an absent thing is an explicit value, never an empty fact."""
