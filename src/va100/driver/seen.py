"""The chip as this process sees it: whole, or the MIG slice that its only device is."""

from __future__ import annotations

import ctypes
import re
from dataclasses import replace
from typing import Final

from va100.driver.api import SUCCESS, driver
from va100.perf.slices import slice_of
from va100.spec.mig import SM_PER_SLICE
from va100.spec.model import ChipSpec

_SLICE: Final = re.compile(r" MIG (?:(?P<level>\d)c\.)?(?P<profile>\d+g\.\d+gb(?:\+me)?)$")
_NAME_BYTES: Final = 128


def seen_chip(chip: ChipSpec) -> ChipSpec:
    """Take of a chip what the first device's name says that the process has; all before cuInit."""
    name = ctypes.create_string_buffer(_NAME_BYTES)
    if driver().cuDeviceGetName(ctypes.addressof(name), _NAME_BYTES, 0) != SUCCESS:
        return chip
    return named_slice(chip, name.value.decode())


def named_slice(chip: ChipSpec, device_name: str) -> ChipSpec:
    """Read a device's name, such as ``NVIDIA A100-SXM4-80GB MIG 1c.2g.20gb``."""
    match = _SLICE.search(device_name)
    if match is None:
        return chip
    whole = slice_of(chip, match["profile"])
    if match["level"] is None:
        return whole
    # A compute instance shares its GPU instance's memory and has some of its SMs.
    return replace(whole, sm_count=int(match["level"]) * SM_PER_SLICE)
