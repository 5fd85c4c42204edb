"""What real A100s gave, 4,000 times: every bit, from NumPy and from the native core."""

from __future__ import annotations

import numpy as np
import pytest

from va100.numerics.mma import mma
from va100.numerics.mma_rules import rule
from va100.tensor_core.native import multiply

MEASURED = [
    ("f16.f32", "f16", "f16_c", "f16_d_f32"),
    ("f16.f16", "f16", "f16_c16", "f16_d_f16"),
    ("bf16.f32", "bf16", "bf16_c", "bf16_d_f32"),
    ("tf32.f32", "tf32", "tf32_c", "tf32_d_f32"),
]


@pytest.mark.parametrize(("kind", "operands", "start", "end"), MEASURED)
def test_no_bit_differs(kind, operands, start, end, shared):
    with np.load(shared("data/a100_tensor_core_measured.npz")) as data:
        a, b = data[f"{operands}_a"][:, None, :], data[f"{operands}_b"][:, :, None]
        c, d = data[start][:, None, None], data[end]
    assert len(d) == 1000
    assert (mma(a, b, c, kind=kind)[:, 0, 0] == d).all()
    assert (multiply(rule(kind), a, b, c)[:, 0, 0] == d).all()
