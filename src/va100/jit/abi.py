"""Offsets of ``va_warp`` that machine code reads: the contract with ``va100/exec.h``.

A test compares them with the native structure.
"""

from __future__ import annotations

from typing import Final

PARAMS: Final = 0
SHARED: Final = 8
LOCAL: Final = 16
COUNTERS: Final = 24
GLOBALS: Final = 32
CTAID: Final = 40
WARP_ID: Final = 52
NCTAID: Final = 56
LIVE: Final = 68
SMID: Final = 72
SHARED_BYTES: Final = 76
DYNAMIC_BYTES: Final = 80
GRIDID: Final = 88
ENVREG12: Final = 96
MORE: Final = 112
STACK_LIMIT: Final = 120
CLOCK: Final = 128
REGIONS: Final = 136
OBSERVED: Final = 144
VIEW_BYTES: Final = 152

REGION_BYTES: Final = 32
REGION_ROOM: Final = 8

WARP_STRIDE: Final = 256
"""Bytes from one warp's view to the next."""
PER_WARP: Final = frozenset({WARP_ID, LIVE, LOCAL, STACK_LIMIT})
"""Fields in which the warps of a CTA differ."""

PER_CTA: Final = frozenset({CTAID, CTAID + 4, CTAID + 8, SMID})
"""Fields that change from CTA to CTA: only a CTA's first warp need have them."""

FAULT_TRAP: Final = 3
FAULT_ILLEGAL_INSTRUCTION: Final = 5
FAULT_DEADLOCK: Final = 6

USES_BARRIERS: Final = 1
ORDERED: Final = 2
FREES: Final = 4
GOES_ON: Final = 16

SPACE_CODES: Final = {"generic": 0, "global": 1, "shared": 2, "local": 3, "const": 1}
