"""Ask an A100's tensor cores on arrays: dense and sparse products to the bit, and when 2:4 pays."""

from va100.tensor_core.dense import gemm, mma

__all__ = ["gemm", "mma"]
