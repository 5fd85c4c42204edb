"""Ten CUDA kernels on the JIT engine, against C, numba's simulator and PoCL.

``*.cu`` are the kernels, ``*.ptx`` what nvcc makes of them (``nvcc -arch=compute_80 -ptx``), kept
so that no compiler is needed; ``plain.c``, ``tuned.c`` and ``opencl.cl`` are the same work in
other languages.
"""
