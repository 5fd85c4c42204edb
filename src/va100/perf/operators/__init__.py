"""Operators to seconds and joules: products, attention, experts, convolutions, streams, science.

One module an operator, each with an ``estimate`` of its own arguments and ``chip``; all of them
return an :class:`~va100.perf.operators.estimates.OperatorEstimate`.  What a chip can do is in
:mod:`~va100.perf.operators.chips`, number formats in :mod:`~va100.perf.operators.formats`.  Nothing
here runs a kernel or looks a measurement up.
"""
