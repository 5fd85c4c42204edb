"""The native core prices collectives as va100.perf does, by the same facts."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.gpu.native import NATIVE_DIR
from va100.perf.collectives import PATTERNS, Collective, estimate, group_of
from va100.perf.transport import Pattern

LIBRARY = Path(NATIVE_DIR) / "libnccl.so.2"
KINDS = {
    "hgx-a100-8x80gb": 8,
    "hgx-a100-4x80gb": 4,
    "pcie-a100-80gb-x8": 8,
}


@pytest.fixture(scope="module")
def seconds():
    function = ctypes.CDLL(str(LIBRARY)).va_nccl_seconds
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_int, ctypes.c_double, *[ctypes.c_int] * 4, ctypes.c_double]
    return function


@given(
    op=st.sampled_from(list(Collective)),
    size=st.integers(1, 1 << 36),
    kind=st.sampled_from(list(KINDS)),
    ranks=st.integers(1, 8),
    dtype=st.sampled_from(["int8", "float32"]),
)
def test_the_same_to_the_last_digits(seconds, op, size, kind, ranks, dtype):
    ranks = 2 if op is Collective.SEND_RECV else min(ranks, KINDS[kind])
    group = group_of(ranks, kind)
    wanted = estimate(op, size, ranks, dtype=dtype, group=group).time_s
    found = seconds(
        list(Pattern).index(PATTERNS[op]),
        float(size),
        ranks,
        dtype == "int8",
        group.ring.links_count,
        group.ring.bridged,
        group.ring.tuner_bytes_per_s,
    )
    assert found == pytest.approx(wanted, rel=1e-12)
