"""The analytic planner: operators to models to clusters to cost.

Nothing is here yet.  It will share :mod:`va100.perf` with the profiler and run no kernels.
"""
