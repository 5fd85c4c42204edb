"""How instances run: one small interface, and a driver for each place that they can run in."""
