"""The machine as Python sees it: device memory and what an execution engine is.

Execution itself is in the engine packages; timing is in :mod:`va100.perf`.
"""
