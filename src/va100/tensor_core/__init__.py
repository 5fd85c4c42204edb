"""Ask an A100's tensor cores on arrays: dense and sparse products to the bit, and when 2:4 pays."""

from va100.numerics.sparsity import compress, expand, prune, violations
from va100.tensor_core.advice import advise
from va100.tensor_core.dense import gemm, mma
from va100.tensor_core.sparse import sparse_mma

__all__ = ["advise", "compress", "expand", "gemm", "mma", "prune", "sparse_mma", "violations"]
