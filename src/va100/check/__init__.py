"""The checker of running kernels: bounds, uninitialised reads, synchronisation, races.

The native core judges; here its findings are explained, merged, suppressed and printed.  How a
kernel is compiled so that it tells what it does is :mod:`va100.jit.checked`.
"""
