"""How readings are printed: units, words for modes, what stands where a reading is refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from va100.errors import NvmlError
from va100.units import MIB

ABSENT: Final = "N/A"
_REFUSALS: Final[Mapping[int, str]] = {
    3: ABSENT,
    4: "Insufficient Permissions",
    6: "Not Found",
    15: "GPU is lost",
    16: "GPU requires reset",
    26: "Requested functionality has been deprecated",
}
"""By result code; any other is an unknown error."""


def shown(read: Callable[[], str]) -> str:
    """Read; where that is refused, say why as the tool does."""
    try:
        return read()
    except NvmlError as error:
        return refusal(error)


def bracketed(read: Callable[[], str]) -> str:
    """Read; where that is refused, say why in brackets, as it stands in CSV."""
    try:
        return read()
    except NvmlError as error:
        return f"[{refusal(error)}]"


def refusal(error: NvmlError) -> str:
    """What stands in the place of a reading."""
    return _REFUSALS.get(error.code, "Unknown Error")


def mebibytes(size_bytes: int) -> str:
    """Whole MiB, the nearest; a half goes up."""
    return str((2 * size_bytes + MIB) // (2 * MIB))


def watts(power_w: float) -> str:
    """Watts with two digits."""
    return f"{power_w:.2f}"


def megahertz(clock_hz: int) -> str:
    """Whole MHz."""
    return str(clock_hz // 1_000_000)


def enabled(mode: int) -> str:
    """Spell a mode."""
    return "Enabled" if mode else "Disabled"


def yes(flag: int) -> str:
    """Spell an answer."""
    return "Yes" if flag else "No"


def active(flag: int) -> str:
    """Spell a reason that holds, or does not."""
    return "Active" if flag else "Not Active"


def clock_time(now_s: float) -> str:
    """Spell the local time as C's ``ctime`` does."""
    return time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(now_s))


def csv_time(now_s: float) -> str:
    """Spell the local time as it stands in CSV, with milliseconds."""
    whole = time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(now_s))
    return f"{whole}.{int(now_s * 1000) % 1000:03d}"


def cuda_version(number: int) -> str:
    """Spell 13000 as 13.0."""
    return f"{number // 1000}.{number % 1000 // 10}"
