"""Findings to tell, suppress and merge."""

from __future__ import annotations

import pytest

from va100.check.findings import Access, Finding


def access(**facts):
    """A thread at a place, as any would do."""
    given = {
        "what": "write",
        "function": "fill",
        "file": "fill.cu",
        "line": 14,
        "instruction": "st.global.u32 [%rd4], %r6;",
        "cta": (1, 0, 0),
        "thread": (5, 0, 0),
    }
    return Access(**{**given, **facts})


@pytest.fixture
def stray():
    """A write past the end."""
    return Finding(
        tool="memcheck",
        kind="out-of-bounds",
        severity="error",
        title="Invalid __global__ write of size 4 bytes",
        kernel="fill",
        first=access(),
        space="global",
        address=0x20000000,
        size_bytes=4,
        details=("address 0x20000000",),
    )


@pytest.fixture
def race():
    """Two lines that race."""
    return Finding(
        tool="racecheck",
        kind="race",
        severity="warn",
        title="Race on __shared__ memory between a write and a read",
        kernel="sum<4>",
        count=3,
        first=access(line=20),
        second=access(what="read", line=31, thread=(6, 0, 0)),
        space="shared",
    )
