"""Builders, walks and comparisons that tests share; fixtures are in ``tests/conftest.py``."""
