"""Tests; ``unit`` mirrors ``src/va100``, other folders are named by what they prove."""
