"""What fits on one card: states of its MIG slices as small integers, with tables of what follows.

A state packs the occupied memory slices (eight bits), the compute slices in use (0 to 7) and
whether the one GPU instance with media extensions is there.  Rules and figures come from
:mod:`va100.spec.mig`; which card to choose is :mod:`va100.cloud.placement`'s matter.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from va100.spec import mig
from va100.spec.a100 import MODELS
from va100.spec.model import ChipSpec, MigProfileSpec

WHOLE: Final = ""
"""The profile of a whole card."""
EIGHTHS: Final = mig.MEMORY_SLICES
"""Memory slices of a card, the unit in which shares of a card are counted and charged."""
EMPTY: Final = 0
_COMPUTE: Final = 8
_MEDIA: Final = 11
_ALL: Final = (1 << EIGHTHS) - 1
FULL: Final = _ALL | mig.COMPUTE_SLICES << _COMPUTE | 1 << _MEDIA

CHIPS: Final[Mapping[str, ChipSpec]] = MappingProxyType({chip.name: chip for chip in MODELS})
"""Cards that the cloud can offer, by name."""


class Fit(NamedTuple):
    """A profile's needs, without its name."""

    memory: int
    compute: int
    media: bool
    starts: tuple[int, ...]


def _fit(spec: MigProfileSpec) -> Fit:
    return Fit(
        spec.memory_slice_count,
        spec.compute_slice_count,
        spec.media_extensions,
        spec.placement_starts,
    )


PROFILES: Final[Mapping[str, tuple[MigProfileSpec, ...]]] = MappingProxyType(
    {name: mig.profiles(chip) for name, chip in CHIPS.items()}
)
"""MIG profiles of each card, smallest first."""


def fit(model: str, profile: str) -> Fit:
    """Look up what a profile needs on a model.

    Raises
    ------
    KeyError
        The model has no such profile.
    """
    return _FITS[model, profile]


_CARD: Final = Fit(memory=EIGHTHS, compute=mig.COMPUTE_SLICES, media=True, starts=(0,))
_FITS: Final[Mapping[tuple[str, str], Fit]] = MappingProxyType(
    {
        (model, name): needs
        for model, specs in PROFILES.items()
        for name, needs in [(WHOLE, _CARD), *((spec.name, _fit(spec)) for spec in specs)]
    }
)


def added(state: int, needs: Fit, start: int) -> int | None:
    """The state with one more GPU instance at a start; none if it does not fit there."""
    mask = ((1 << needs.memory) - 1) << start
    compute = (state >> _COMPUTE & 7) + needs.compute
    if state & mask or compute > mig.COMPUTE_SLICES or (needs.media and state >> _MEDIA & 1):
        return None
    return state & _ALL | mask | compute << _COMPUTE | (state >> _MEDIA | needs.media) << _MEDIA


def removed(state: int, needs: Fit, start: int) -> int:
    """The state without a GPU instance that is part of it."""
    mask = ((1 << needs.memory) - 1) << start
    return state - mask - (needs.compute << _COMPUTE) - (needs.media << _MEDIA)


@functools.cache
def starts(state: int, needs: Fit) -> tuple[tuple[int, int], ...]:
    """Every legal start with the state that follows."""
    found = ((start, added(state, needs, start)) for start in needs.starts)
    return tuple((start, after) for start, after in found if after is not None)


@functools.cache
def capacity(state: int, needs: Fit) -> int:
    """How many more GPU instances of a profile fit, placed as well as can be."""
    options = starts(state, needs)
    return max((1 + capacity(after, needs) for _, after in options), default=0)


@functools.cache
def room(state: int, model: str) -> int:
    """How much a card can still become: what of each profile fits, weighed by its width."""
    return sum(
        capacity(state, needs) * needs.memory for (name, _), needs in _FITS.items() if name == model
    )


def best_start(state: int, model: str, needs: Fit) -> tuple[int, int] | None:
    """The start that leaves a card most room, with the room it costs; none if none fits."""
    options = starts(state, needs)
    if not options:
        return None
    before = room(state, model)
    return min(((before - room(after, model), start) for start, after in options))[::-1]


@functools.cache
def arrange(state: int, wanted: tuple[Fit, ...]) -> tuple[int, ...] | None:
    """Starts for several GPU instances together, found if there are any.

    Parameters
    ----------
    wanted : tuple of Fit
        In any order; the result follows it.
    """
    if not wanted:
        return ()
    first, rest = wanted[0], wanted[1:]
    for start, after in starts(state, first):
        others = arrange(after, rest)
        if others is not None:
            return (start, *others)
    return None


def state_of(parts: Iterable[tuple[Fit, int]]) -> int:
    """The state of a card that holds GPU instances at their starts.

    Raises
    ------
    ValueError
        They do not fit together.
    """
    state = EMPTY
    for needs, start in parts:
        after = added(state, needs, start)
        if after is None:
            raise ValueError(f"{needs} at {start} does not fit state {state:#x}")
        state = after
    return state


def free_memory(state: int) -> int:
    """Memory slices that nothing holds."""
    return EIGHTHS - (state & _ALL).bit_count()


def largest(state: int, model: str) -> MigProfileSpec | None:
    """The largest profile that still fits."""
    for spec in sorted(
        PROFILES[model],
        key=lambda spec: (spec.memory_slice_count, spec.compute_slice_count),
        reverse=True,
    ):
        if starts(state, _fit(spec)):
            return spec
    return None


def merged(parts: Iterable[tuple[Fit, int]]) -> tuple[int, int, bool]:
    """Mask, compute slices and media of GPU instances that may overlap, as those to come do."""
    mask = compute = 0
    media = False
    for needs, start in parts:
        mask |= ((1 << needs.memory) - 1) << start
        compute += needs.compute
        media = media or needs.media
    return mask, compute, media


def packed(mask: int, compute: int, media: bool) -> int:  # noqa: FBT001 -- a field of a state
    """The state of a mask, compute slices in use, and media extensions in use."""
    return mask | min(compute, mig.COMPUTE_SLICES) << _COMPUTE | media << _MEDIA


def overlap(one: Fit, start: int, other: Fit, other_start: int) -> bool:
    """Whether two GPU instances would share a memory slice."""
    return start < other_start + other.memory and other_start < start + one.memory
