"""Everything that is sent to a box and runs there: standard library only, may be killed at any line."""
