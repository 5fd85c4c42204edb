"""Clients of NVML: readings of a node, our own nvidia-smi, and the metrics exporter.

The library itself is native: ``native/nvml``.
"""
