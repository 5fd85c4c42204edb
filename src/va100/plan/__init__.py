"""The analytic planner: models and machines to memory, seconds, joules and money.

It runs no kernels: times come from :mod:`va100.perf.operators` and
:mod:`va100.perf.collectives`, facts from :mod:`va100.spec`.
"""
