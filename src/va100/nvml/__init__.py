"""Readings of a node as NVML gives them, our own nvidia-smi, and the metrics exporter.

Nothing is here yet; there is no ``libnvidia-ml`` either.
"""
