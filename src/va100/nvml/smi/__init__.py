"""Our own ``nvidia-smi``: a client of NVML like any other, one module a verb."""
