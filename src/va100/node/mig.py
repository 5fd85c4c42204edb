"""Plans of MIG layouts: from instances that are wished for to placements, exactly.

The rules are those of ``native/node/mig.h``, written a second time so that they check each other:
memory ranges do not overlap, compute slices are at most seven, one instance has the media
extensions.  What is there already stays where it is unless it has to move, and moves only while
nothing uses it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Final

from va100.spec.mig import COMPUTE_SLICES, MEMORY_SLICES
from va100.spec.model import MigProfileSpec

_HALF: Final = 4


@dataclass(frozen=True, slots=True)
class Instance:
    """A GPU instance in its place."""

    profile: MigProfileSpec
    start: int
    busy: bool = False
    """Whether something uses it, so that it cannot move."""

    @property
    def span(self) -> int:
        """A bit for each memory slice that it takes."""
        return ((1 << self.profile.memory_slice_count) - 1) << self.start

    @property
    def identifier(self) -> int:
        """The number that its placement gives it."""
        size = self.profile.memory_slice_count
        return {8: 0, _HALF: 1 + self.start // _HALF, 2: 3 + self.start // 2, 1: 7 + self.start}[
            size
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPlan:
    """What happens to one GPU."""

    gpu: int
    stay: tuple[Instance, ...]
    moves: tuple[tuple[Instance, Instance], ...]
    """Where an idle instance is, and where it has to go."""
    create: tuple[Instance, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Placements for all wishes, or why there are none."""

    gpus: tuple[GpuPlan, ...] = ()
    reason: str = ""
    """Empty: there are."""


def plan(current: Sequence[Sequence[Instance]], wishes: Sequence[MigProfileSpec]) -> Plan:
    """Place wishes on GPUs that hold instances already, with as few moves as there can be.

    Parameters
    ----------
    current : sequence of sequences
        What each GPU holds.
    wishes : sequence
        Profiles of further instances, of one model.
    """
    for allowance in range(sum(len(gpu) for gpu in current) + 1):
        shared = _share(current, sorted(wishes, key=_size, reverse=True), allowance)
        if shared is not None:
            return Plan(gpus=tuple(shared))
    return Plan(reason=_reason(current, wishes))


def is_legal(instances: Iterable[Instance]) -> bool:
    """Whether instances can be on one GPU together."""
    taken = slices = media = 0
    for instance in instances:
        if instance.start not in instance.profile.placement_starts or taken & instance.span:
            return False
        taken |= instance.span
        slices += instance.profile.compute_slice_count
        media += instance.profile.media_extensions
    return slices <= COMPUTE_SLICES and media <= 1


def _size(profile: MigProfileSpec) -> tuple[int, int, str]:
    return profile.memory_slice_count, profile.compute_slice_count, profile.name


def _share(
    current: Sequence[Sequence[Instance]], wishes: Sequence[MigProfileSpec], allowance: int
) -> list[GpuPlan] | None:
    """Deal wishes out to GPUs; at most so many instances move altogether."""
    dealt: list[list[MigProfileSpec]] = [[] for _ in current]
    layouts = [tuple(gpu) for gpu in current]

    @cache
    def moves_needed(
        layout: tuple[Instance, ...], wanted: tuple[MigProfileSpec, ...]
    ) -> int | None:
        found = _on_one(0, layout, wanted, allowance)
        return None if found is None else len(found.moves)

    def deal(at: int, spent: tuple[int, ...]) -> bool:
        if at == len(wishes):
            return True
        tried: set[tuple[tuple[Instance, ...], tuple[MigProfileSpec, ...]]] = set()
        for index, layout in enumerate(layouts):
            wanted = (*dealt[index], wishes[at])
            if (layout, wanted) in tried:  # a GPU like one that was tried
                continue
            tried.add((layout, wanted))
            moves = moves_needed(layout, wanted)
            total = (*spent[:index], moves or 0, *spent[index + 1 :])
            if moves is None or sum(total) > allowance:
                continue
            dealt[index].append(wishes[at])
            if deal(at + 1, total):
                return True
            dealt[index].pop()
        return False

    if not deal(0, (0,) * len(current)):
        return None
    plans = [_on_one(i, layouts[i], tuple(dealt[i]), allowance) for i in range(len(current))]
    return [found for found in plans if found is not None]


def _on_one(
    gpu: int, layout: tuple[Instance, ...], wanted: tuple[MigProfileSpec, ...], allowance: int
) -> GpuPlan | None:
    idle = [instance for instance in layout if not instance.busy]
    for count in range(min(allowance, len(idle)) + 1):
        for moving in combinations(idle, count):
            stay = tuple(instance for instance in layout if instance not in moving)
            profiles = (*(instance.profile for instance in moving), *wanted)
            found = placed(stay, profiles)
            if found is not None:
                moves = tuple(zip(moving, found, strict=False))
                return GpuPlan(gpu=gpu, stay=stay, moves=moves, create=found[count:])
    return None


def placed(
    stay: tuple[Instance, ...], profiles: tuple[MigProfileSpec, ...]
) -> tuple[Instance, ...] | None:
    """Place profiles beside what stays, from the back, the largest first; none: it cannot be."""
    if (
        sum(i.profile.compute_slice_count for i in stay)
        + sum(p.compute_slice_count for p in profiles)
        > COMPUTE_SLICES
        or sum(p.media_extensions for p in profiles) + sum(i.profile.media_extensions for i in stay)
        > 1
    ):
        return None
    taken = sum(instance.span for instance in stay)
    order = sorted(range(len(profiles)), key=lambda i: _size(profiles[i]), reverse=True)
    found: dict[int, Instance] = {}

    def place(at: int, taken: int) -> bool:
        if at == len(order):
            return True
        profile = profiles[order[at]]
        for start in _starts(profile, taken):
            instance = Instance(profile, start)
            found[order[at]] = instance
            if place(at + 1, taken | instance.span):
                return True
        return False

    return tuple(found[i] for i in range(len(profiles))) if place(0, taken) else None


def _starts(profile: MigProfileSpec, taken: int) -> Iterator[int]:
    """Free placements, from the back: what only fits at the front keeps its place longest."""
    span = (1 << profile.memory_slice_count) - 1
    for start in sorted(profile.placement_starts, reverse=True):
        if not taken & span << start:
            yield start


def _reason(current: Sequence[Sequence[Instance]], wishes: Sequence[MigProfileSpec]) -> str:
    everything = [*(i.profile for gpu in current for i in gpu), *wishes]
    gpus = len(current)
    where = "the GPU has" if gpus == 1 else f"{gpus} GPUs have"
    counts = Counter(profile.name for profile in everything)
    by_name = {profile.name: profile for profile in everything}
    memory = sum(profile.memory_slice_count for profile in everything)
    compute = sum(profile.compute_slice_count for profile in everything)
    if memory > MEMORY_SLICES * gpus:
        parts = ", ".join(
            f"{count} x {name} takes {count * by_name[name].memory_slice_count}"
            for name, count in counts.items()
        )
        return f"{where} {MEMORY_SLICES * gpus} memory slices, {memory} are wanted: {parts}"
    if compute > COMPUTE_SLICES * gpus:
        parts = ", ".join(
            f"{count} x {name} takes {count * by_name[name].compute_slice_count}"
            for name, count in counts.items()
        )
        return f"{where} {COMPUTE_SLICES * gpus} compute slices, {compute} are wanted: {parts}"
    if sum(profile.media_extensions for profile in everything) > gpus:
        return f"{where} one set of media extensions each, more +me instances are wanted"
    starts = "; ".join(
        f"{name} begins at {', '.join(map(str, by_name[name].placement_starts))}"
        f" and takes {by_name[name].memory_slice_count}"
        for name in counts
    )
    held = [i for gpu in current for i in gpu if i.busy]
    busy = ", ".join(f"{i.profile.name} at {i.start}" for i in held)
    return f"no placement keeps them apart: {starts}" + (f"; in use: {busy}" if busy else "")
