"""Which MIG slices one card can hold at once: every layout that takes no further slice."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Final

from va100.spec import mig
from va100.spec.model import ChipSpec, MigProfileSpec

Layout = tuple[tuple[str, int], ...]
"""Profiles and their counts, by name."""
_LARGEST: Final = 7


@lru_cache(maxsize=8)
def layouts(chip: ChipSpec) -> tuple[Layout, ...]:
    """Layouts to which no slice can be added, media extensions left out, in a fixed order."""
    profiles = tuple(p for p in mig.profiles(chip) if not p.media_extensions)
    found: set[Layout] = set()
    _place(profiles, 0, (), 0, found)
    return tuple(sorted(found, reverse=True))


def _place(
    profiles: tuple[MigProfileSpec, ...],
    taken: int,
    held: tuple[tuple[str, int], ...],
    compute: int,
    found: set[Layout],
) -> None:
    """Add every slice that still has a place, later ones at or after the last's position."""
    grew = False
    for profile in profiles:
        if compute + profile.compute_slice_count > mig.COMPUTE_SLICES:
            continue
        if sum(name == profile.name for name, _ in held) >= profile.instance_count:
            continue
        for start in profile.placement_starts:
            mask = ((1 << profile.memory_slice_count) - 1) << start
            if taken & mask or start + profile.memory_slice_count > mig.MEMORY_SLICES:
                continue
            grew = True
            if held and (start, profile.name) < (held[-1][1], held[-1][0]):
                continue
            after = (*held, (profile.name, start))
            _place(profiles, taken | mask, after, compute + profile.compute_slice_count, found)
    if not grew and held:
        found.add(tuple(sorted(Counter(name for name, _ in held).items())))
