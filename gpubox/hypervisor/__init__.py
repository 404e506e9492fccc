"""A machine that holds containers and owns the cards: its files as text in, text out; nothing here touches a host."""
