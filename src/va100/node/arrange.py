"""From the MIG devices that a GPU holds to those wanted, with as little made anew as can be.

What is used stays where it is.  The search is exact: a GPU holds seven instances at most, so that
every choice of those that stay is tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Final

from va100.node.mig import Instance, placed, plan
from va100.spec.mig import COMPUTE_PROFILES
from va100.spec.model import MigProfileSpec

_SIZES: Final = {
    gpu_slices: tuple(
        profile.compute_slice_count
        for profile in COMPUTE_PROFILES
        if gpu_slices in profile.gpu_instance_slices_count
    )
    for gpu_slices in {g for p in COMPUTE_PROFILES for g in p.gpu_instance_slices_count}
}
"""Compute slices of the compute instances that a GPU instance of so many takes."""
_STEPS: Final = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}
"""Where a compute instance of so many slices may begin: at multiples of this."""


@dataclass(frozen=True, slots=True)
class Part:
    """A compute instance: its slices within the GPU instance."""

    slices: int
    start: int
    busy: bool = False

    @property
    def span(self) -> int:
        """A bit for each compute slice that it takes."""
        return ((1 << self.slices) - 1) << self.start


@dataclass(frozen=True, slots=True)
class Held:
    """A GPU instance that is there, and what it holds."""

    instance: Instance
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A GPU instance that is to be there: the sizes of its compute instances, largest first."""

    profile: MigProfileSpec
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """A GPU instance that stays; of its compute instances some go and some come."""

    held: Held
    drop: tuple[Part, ...]
    add: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """What has to happen to one GPU, or why it cannot be."""

    keep: tuple[Kept, ...] = ()
    destroy: tuple[Held, ...] = ()
    create: tuple[Held, ...] = ()
    reason: str = ""
    """Empty: it can be."""

    @property
    def is_still(self) -> bool:
        """Whether nothing has to happen."""
        return not (self.destroy or self.create or any(k.drop or k.add for k in self.keep))


def wanted_instances(
    counts: Sequence[tuple[str, int]], offered: Sequence[MigProfileSpec]
) -> tuple[Wanted, ...]:
    """GPU instances for MIG devices by name; compute instances share one where their slices allow.

    Raises
    ------
    ValueError
        There is no such device; the message says which there are.
    """
    by_name = {profile.name: profile for profile in offered}
    found: list[Wanted] = []
    sizes: dict[str, list[int]] = {}
    for name, count in counts:
        level, dot, rest = name.partition("c.")
        profile = by_name.get(rest if dot else name)
        if profile is None:
            raise ValueError(f"there is no profile {name}; there are {', '.join(by_name)}")
        slices = int(level) if dot else profile.compute_slice_count
        offered_sizes = _SIZES[profile.compute_slice_count]
        if slices not in offered_sizes:
            names = ", ".join(f"{size}c" for size in offered_sizes)
            raise ValueError(f"{profile.name} takes compute instances of {names}, none for {name}")
        sizes.setdefault(profile.name, []).extend([slices] * count)
    for name, parts in sizes.items():
        found += (Wanted(by_name[name], tuple(group)) for group in _shared(by_name[name], parts))
    return tuple(found)


def _shared(profile: MigProfileSpec, sizes: Sequence[int]) -> list[list[int]]:
    """Put compute instances into as few GPU instances as the largest first leaves them."""
    groups: list[list[int]] = []
    for size in sorted(sizes, reverse=True):
        for group in groups:
            if parts_placed(profile.compute_slice_count, (), (*group, size)) is not None:
                group.append(size)
                break
        else:
            groups.append([size])
    return groups


def parts_placed(
    gpu_slices: int, stay: Sequence[Part], sizes: Sequence[int]
) -> tuple[Part, ...] | None:
    """Place compute instances beside those that stay; none: it cannot be."""
    order = sorted(sizes, reverse=True)

    def place(at: int, taken: int) -> tuple[Part, ...] | None:
        if at == len(order):
            return ()
        size = order[at]
        for start in range(0, gpu_slices - size + 1, _STEPS[size]):
            part = Part(size, start)
            if not taken & part.span:
                rest = place(at + 1, taken | part.span)
                if rest is not None:
                    return (part, *rest)
        return None

    return place(0, sum(part.span for part in stay))


def arrange(held: Sequence[Held], wanted: Sequence[Wanted]) -> Arrangement:
    """Find what has to go and what has to come; what is used is never touched."""
    idle = [one for one in held if not one.instance.busy]
    busy = [one for one in held if one.instance.busy]
    for dropped in range(len(idle) + 1):
        found = [
            arrangement
            for gone in combinations(idle, dropped)
            if (arrangement := _with(busy, [o for o in idle if o not in gone], gone, wanted))
        ]
        if found:
            return min(found, key=_made_anew)
    fits = plan([()], [one.profile for one in wanted])
    if fits.reason:
        return Arrangement(reason=fits.reason)
    names = ", ".join(f"{o.instance.profile.name} at {o.instance.start}" for o in busy)
    return Arrangement(reason=f"what is used cannot stay as it is: {names}")


def _made_anew(arrangement: Arrangement) -> int:
    return sum(len(kept.drop) + len(kept.add) for kept in arrangement.keep)


def _with(
    busy: Sequence[Held], idle: Sequence[Held], gone: tuple[Held, ...], wanted: Sequence[Wanted]
) -> Arrangement | None:
    stay = (*busy, *idle)
    matched = _matched(stay, wanted)
    if matched is None:
        return None
    kept, fresh = matched
    found = placed(tuple(one.instance for one in stay), tuple(one.profile for one in fresh))
    if found is None:
        return None
    create = tuple(
        Held(instance, parts_placed(one.profile.compute_slice_count, (), one.sizes) or ())
        for instance, one in zip(found, fresh, strict=True)
    )
    return Arrangement(keep=kept, destroy=gone, create=create)


def _matched(
    stay: Sequence[Held], wanted: Sequence[Wanted]
) -> tuple[tuple[Kept, ...], tuple[Wanted, ...]] | None:
    """Give each instance that stays one that is wanted, so that least is made anew inside."""

    @cache
    def best(at: int, taken: int) -> tuple[int, tuple[Kept, ...], int] | None:
        if at == len(stay):
            return 0, (), taken
        found = None
        for index, one in enumerate(wanted):
            kept = None if taken >> index & 1 else _kept(stay[at], one)
            rest = None if kept is None else best(at + 1, taken | 1 << index)
            if kept is None or rest is None:
                continue
            cost = len(kept.drop) + len(kept.add) + rest[0]
            if found is None or cost < found[0]:
                found = cost, (kept, *rest[1]), rest[2]
        return found

    result = best(0, 0)
    if result is None:
        return None
    left = tuple(one for index, one in enumerate(wanted) if not result[2] >> index & 1)
    return result[1], left


def _kept(held: Held, wanted: Wanted) -> Kept | None:
    """Keep an instance for one that is wanted; none: another kind, or what is used differs."""
    if held.instance.profile != wanted.profile:
        return None
    for dropped in range(len(held.parts) + 1):
        for drop in combinations([part for part in held.parts if not part.busy], dropped):
            left = [part for part in held.parts if part not in drop]
            missing = Counter(wanted.sizes)
            missing.subtract(part.slices for part in left)
            if min(missing.values(), default=0) < 0:
                continue
            sizes = tuple(missing.elements())
            add = parts_placed(held.instance.profile.compute_slice_count, left, sizes)
            if add is not None:
                return Kept(held, drop, add)
    return None


def device_names(held: Sequence[Held]) -> Mapping[str, int]:
    """Count MIG devices by name, as files of layouts call them."""
    names: Counter[str] = Counter()
    for one in held:
        whole = one.instance.profile.compute_slice_count
        for part in one.parts:
            level = "" if part.slices == whole else f"{part.slices}c."
            names[f"{level}{one.instance.profile.name}"] += 1
    return names
