"""Unit constants, the closed list of legal field suffixes, and formatting for people.

Every quantity is kept in a base unit that its name ends in; literals are written with the
constants below (``40 * MIB``, ``1410 * MHZ``).  Nothing here knows what is being measured.
"""

from __future__ import annotations

from typing import Final

KB: Final = 10**3
MB: Final = 10**6
GB: Final = 10**9
TB: Final = 10**12
KIB: Final = 2**10
MIB: Final = 2**20
GIB: Final = 2**30
TIB: Final = 2**40
KHZ: Final = 10**3
MHZ: Final = 10**6
GHZ: Final = 10**9
GIGA: Final = 10**9
TERA: Final = 10**12
GBIT: Final = 10**9 // 8
MS: Final = 1e-3
US: Final = 1e-6
NS: Final = 1e-9

SUFFIXES: Final = (
    "_bytes_per_cycle",
    "_bytes_per_s",
    "_flop_per_s",
    "_usd_per_h",
    "_per_cycle",
    "_cycles",
    "_bytes",
    "_count",
    "_ratio",
    "_bits",
    "_hz",
    "_ns",
    "_c",
    "_s",
    "_w",
    "_j",
)
"""Legal endings of a numeric field's name, longest first."""


def bytes_text(count_bytes: float) -> str:
    """Spell a size with a binary prefix: ``40.0 MiB``."""
    for unit, size in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(count_bytes) >= size:
            return f"{count_bytes / size:.1f} {unit}"
    return f"{count_bytes:.0f} B"


def rate_text(per_s: float, unit: str) -> str:
    """Spell a rate with a decimal prefix: ``1.56 TB/s``, ``312 TFLOP/s``."""
    for prefix, size in (("T", TERA), ("G", GIGA), ("M", 10**6), ("k", 10**3)):
        if abs(per_s) >= size:
            return f"{per_s / size:.3g} {prefix}{unit}"
    return f"{per_s:.3g} {unit}"


def energy_text(energy_j: float) -> str:
    """Spell an energy: ``1.23 mJ``."""
    for unit, size in (("kJ", 1e3), ("J", 1.0), ("mJ", 1e-3), ("uJ", 1e-6)):
        if abs(energy_j) >= size:
            return f"{energy_j / size:.3g} {unit}"
    return f"{energy_j / 1e-9:.3g} nJ"


def time_text(duration_s: float) -> str:
    """Spell a duration: ``2.61 us``."""
    for unit, size in (("s", 1.0), ("ms", MS), ("us", US)):
        if abs(duration_s) >= size:
            return f"{duration_s / size:.3g} {unit}"
    return f"{duration_s / NS:.3g} ns"
