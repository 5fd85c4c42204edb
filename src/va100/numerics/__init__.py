"""Arithmetic as an A100 does it, on arrays of raw bits; knows numbers, not PTX.

Formats, exact rounding, conversions, the approximate functions.  Every function is pure.
"""
