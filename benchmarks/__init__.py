"""Benchmarks: what is fast, against what, in one run. Nothing here is imported by va100."""
