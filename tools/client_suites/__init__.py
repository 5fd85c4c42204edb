"""Runs the test suites of other people's libraries on virtual GPUs, and counts.

Nothing of theirs lives here: the suites are fetched by whoever runs this.
"""
