"""Engine 2, the product: PTX to machine code through LLVM, 32 lanes at a time.

Start with :mod:`lattice` (what is known about a register), :mod:`analysis`, then
:mod:`function` (the two worlds) and :mod:`lower` (what instructions mean).
"""
