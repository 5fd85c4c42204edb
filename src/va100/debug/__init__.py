"""Watching kernels run: the trace of chosen threads, and the debugger.

Which engine is watched is the composition root's choice; here a launch is seen through
:mod:`va100.gpu.watch`.
"""
