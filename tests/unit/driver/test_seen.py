"""A MIG device's name as a chip to predict times for."""

from __future__ import annotations

import pytest

from va100.driver.seen import named_slice
from va100.spec.a100 import A100_SXM4_80GB


@pytest.mark.parametrize(
    ("name", "sm_count", "eighths"),
    [
        ("NVIDIA A100-SXM4-80GB", 108, 8),
        ("NVIDIA A100-SXM4-80GB MIG 7g.80gb", 98, 8),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", 14, 1),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb+me", 14, 1),
        ("NVIDIA A100-SXM4-80GB MIG 1c.3g.40gb", 14, 4),
    ],
)
def test_a_slice_has_its_share(name, sm_count, eighths):
    chip = named_slice(A100_SXM4_80GB, name)
    assert chip.sm_count == sm_count
    assert chip.l2_bytes == A100_SXM4_80GB.l2_bytes * eighths // 8
    read = chip.measured.dram_read_bytes_per_s
    assert read == pytest.approx(A100_SXM4_80GB.measured.dram_read_bytes_per_s * eighths / 8)
