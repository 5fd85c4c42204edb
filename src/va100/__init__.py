"""A virtual NVIDIA A100: runs unchanged CUDA code on a CPU and predicts its time on the chip.

The public names; nothing else runs here.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
