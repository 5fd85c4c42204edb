"""Engine 1: a NumPy interpreter of PTX, written from the PTX ISA document.

Slow and plain on purpose: it is what the JIT is compared with, form by form.  It shares the
instruction table and :mod:`va100.numerics` with the JIT, and nothing else.

A value is a 32-lane array of raw bits and is never changed in place; :mod:`.engine` runs grids,
:mod:`.warp` schedules lanes, :mod:`.evaluate` names the function of every instruction family.
"""
