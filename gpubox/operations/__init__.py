"""Decide: compare a fact with what is wanted and yield commands, or nothing. Pairs with facts/ by name."""
