"""Products with a 2:4 sparse matrix on the virtual sparse tensor cores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from va100.numerics.mma_rules import Procedure, rule
from va100.numerics.sparsity import INFERRED, Compressed, compress, pattern_of, places
from va100.tensor_core.arrays import (
    Array,
    accumulator_bits,
    operand_bits,
    result_array,
)
from va100.tensor_core.native import Modifiers, multiply_sparse


@dataclass(frozen=True, slots=True)
class SparseProduct:
    """A product and how sure its bits are.

    ``inferred`` says what of it no measurement confirms; empty where nothing is inferred.
    """

    d: Array
    inferred: str


def sparse_mma(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    kind: str,
    tf32_round: str = "raw",
    satfinite: bool = False,
) -> SparseProduct:
    """D = A B + C with a sparse A, as ``mma.sp`` gathers and adds.

    Parameters
    ----------
    a : (M, K)
        A matrix that keeps the kind's pattern, or what :func:`compress` made of it.
    b : (..., K, N)
    c : (..., M, N)
    kind : str
        f16, bf16, tf32 or an integer kind.

    Raises
    ------
    ValueError
        A breaks the pattern, its metadata is wrong (the message says where), or as
        :func:`va100.tensor_core.mma`.
    """
    row, pattern = rule(kind), pattern_of(kind)
    if satfinite and row.procedure is not Procedure.INTEGER:
        raise ValueError(f"satfinite is for integers, not {kind}")
    packed = a if isinstance(a, Compressed) else compress(np.asarray(a), pattern)
    if packed.pattern is not pattern:
        raise ValueError(f"{kind} takes {pattern.name}, but a is {packed.pattern.name}")
    index = places(packed.nibbles, pattern)
    if packed.values.shape != index.shape:
        raise ValueError(f"values of {packed.values.shape} do not fit metadata of {index.shape}")
    x = operand_bits(row, "a", packed.values, tf32_round)
    y = operand_bits(row, "b", b, tf32_round)
    if y.shape[-2] != packed.columns:
        raise ValueError(f"no product of {packed.shape} and {y.shape}")
    whole = 2 * packed.values.shape[1]
    y = np.pad(y, [(0, 0)] * (y.ndim - 2) + [(0, whole - packed.columns), (0, 0)])
    z = accumulator_bits(row, c, (*y.shape[:-2], packed.shape[0], y.shape[-1]))
    bits = multiply_sparse(row, x, y, z, index, Modifiers(satfinite=satfinite))
    exact = row.procedure is Procedure.INTEGER
    return SparseProduct(result_array(row, bits), "" if exact else INFERRED)
