"""Decide: compare a fact with what is wanted and yield commands; nothing to do yields nothing. Pairs with facts/ by name."""
