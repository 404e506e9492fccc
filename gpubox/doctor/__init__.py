"""Ask hosts whether they are as their data says, and whether the server answers: two round trips, nothing changed."""
