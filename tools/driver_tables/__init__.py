"""Generator of everything that follows from the tables of exported functions."""
