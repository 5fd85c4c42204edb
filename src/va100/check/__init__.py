"""Checkers of a running kernel: out-of-bounds, uninitialised, unsynchronised and racing accesses.

Nothing is here yet.  Bounds are already checked by the engines; the reports of this package will
name the allocation and the thread, and never change a result.
"""
