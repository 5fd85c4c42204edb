"""Tests; the folders under ``unit`` mirror ``src/va100``, the others are named by what they prove."""
