"""MIG layouts carried out on a node's GPUs through NVML; nothing is decided here.

What a layout asks is in :mod:`va100.node.parted`, what has to happen in :mod:`va100.node.arrange`.
All GPUs are looked at before the first is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from va100.errors import NodeError, NvmlError
from va100.node.arrange import (
    Arrangement,
    Held,
    Kept,
    Part,
    arrange,
    device_names,
    wanted_instances,
)
from va100.node.mig import Instance
from va100.node.parted import Rule, rule_for
from va100.nvml.client import Nvml
from va100.nvml.instances import GpuInstance, MigGpu
from va100.nvml.readings import Gpu, gpus
from va100.spec.mig import COMPUTE_PROFILES, profiles
from va100.spec.model import ChipSpec, MigProfileSpec
from va100.spec.names import find_models

NO_INSTANCE = 0xFFFFFFFF
Tell = Callable[[str], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A GPU as it is: its mode, its instances, who uses it."""

    gpu: Gpu
    device_id: int
    enabled: bool
    pending: bool
    held: tuple[Held, ...]
    pids: tuple[int, ...]
    offered: tuple[MigProfileSpec, ...]

    @property
    def devices(self) -> Mapping[str, int]:
        """MIG devices by name."""
        return device_names(self.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What has to happen to one GPU."""

    card: Card
    enabled: bool
    arrangement: Arrangement | None
    """None: instances stay as they are."""

    @property
    def is_still(self) -> bool:
        """Whether nothing has to happen."""
        return self.card.enabled == self.card.pending == self.enabled and (
            self.arrangement is None or self.arrangement.is_still
        )


def look(nvml: Nvml) -> list[Card]:
    """Look at all GPUs.

    Raises
    ------
    NvmlError
        One cannot be read.
    """
    found = []
    for gpu in gpus(nvml):
        if isinstance(gpu, NvmlError):
            raise gpu
        found.append(_card(gpu))
    return found


def _card(gpu: Gpu) -> Card:
    chip = next(c for c in find_models(gpu.name) if isinstance(c, ChipSpec))
    offered = profiles(chip)
    used = {(p.gpu_instance, p.compute_instance) for p in gpu.processes}
    enabled, pending = gpu.mig_mode
    instances = MigGpu(gpu).gpu_instances() if enabled else []
    return Card(
        gpu=gpu,
        device_id=gpu.pci.pci_device_id,
        enabled=bool(enabled),
        pending=bool(pending),
        held=tuple(_held(instance, offered, used) for instance in instances),
        pids=tuple(p.pid for p in gpu.processes),
        offered=offered,
    )


def _held(
    instance: GpuInstance, offered: Sequence[MigProfileSpec], used: set[tuple[int, int]]
) -> Held:
    number = instance.info.id
    profile = next(p for p in offered if p.profile_id == instance.info.profile_id)
    parts = tuple(
        Part(one.span[1], one.span[0], (number, one.info.id) in used)
        for one in instance.compute_instances()
    )
    busy = any(gpu_instance == number for gpu_instance, _ in used)
    return Held(Instance(profile, instance.span[0], busy), parts)


def changes(cards: Sequence[Card], rules: Sequence[Rule], *, mode_only: bool) -> list[Change]:
    """Work out what a layout asks of each GPU that it names.

    Raises
    ------
    NodeError
        A rule names a GPU that is not there, its instances do not fit or cannot be because of what
        is used; nothing was changed.
    """
    for rule in rules:
        missing = sorted(index for index in rule.devices or () if index >= len(cards))
        if missing:
            raise _refused(f"there is no GPU {missing[0]}; the node has {len(cards)}", "bad-name")
    found = []
    for index, card in enumerate(cards):
        asked = rule_for(rules, index, card.device_id)
        if asked is not None:
            found.append(_change(card, asked, mode_only=mode_only))
    return found


def _change(card: Card, rule: Rule, *, mode_only: bool) -> Change:
    where = f"GPU {card.gpu.index}"
    if (card.enabled != rule.enabled or card.pending != rule.enabled) and card.pids:
        mode = "on" if rule.enabled else "off"
        raise _refused(f"{where}: process {card.pids[0]} uses it, so MIG cannot be turned {mode}")
    if mode_only and rule.enabled:
        return Change(card=card, enabled=True, arrangement=None)
    try:
        wanted = wanted_instances(rule.counts, card.offered)
    except ValueError as error:
        raise _refused(f"{where}: {error}", "bad-name") from error
    arrangement = arrange(card.held, wanted)
    if arrangement.reason:
        raise _refused(f"{where}: {arrangement.reason}")
    return Change(card=card, enabled=rule.enabled, arrangement=arrangement)


def is_as_asked(cards: Sequence[Card], rules: Sequence[Rule], *, mode_only: bool) -> Iterator[str]:
    """Tell how GPUs differ from a layout; nothing where they do not."""
    for index, card in enumerate(cards):
        rule = rule_for(rules, index, card.device_id)
        if rule is None:
            continue
        if card.enabled != rule.enabled:
            yield f"GPU {index}: MIG is {'on' if card.enabled else 'off'}"
        elif not mode_only and dict(card.devices) != dict(rule.counts):
            yield f"GPU {index}: it has {_counted(card.devices)}, not {_counted(dict(rule.counts))}"


def _counted(devices: Mapping[str, int]) -> str:
    parts = [f"{count} x {name}" for name, count in sorted(devices.items())]
    return ", ".join(parts) if parts else "no MIG devices"


def carry_out(change: Change, tell: Tell) -> None:
    """Change one GPU: what goes, the mode, what comes.

    Raises
    ------
    NvmlError
        NVML refused, as when a process came meanwhile; what was told of is done.
    """
    card, mig = change.card, MigGpu(change.card.gpu)
    if change.arrangement is not None and card.enabled:
        _remove(mig, change.arrangement, tell)
    if (card.enabled, card.pending) != (change.enabled, change.enabled):
        status = card.gpu.number("SetMigMode", int(change.enabled))
        if status:
            text = card.gpu.nvml.error_text(status)
            raise NvmlError(code=status, function="nvmlDeviceSetMigMode", text=text)
        tell(f"GPU {card.gpu.index}: MIG is {'on' if change.enabled else 'off'}")
    if change.arrangement is not None and change.enabled:
        _add(mig, change.arrangement, tell)


def _remove(mig: MigGpu, arrangement: Arrangement, tell: Tell) -> None:
    there = {instance.span[0]: instance for instance in mig.gpu_instances()}
    for held in arrangement.destroy:
        instance = there[held.instance.start]
        for one in instance.compute_instances():
            one.destroy()
        instance.destroy()
        tell(f"GPU {mig.gpu.index}: destroyed {_spelled(held)}")
    for kept in arrangement.keep:
        spans = {(part.start, part.slices) for part in kept.drop}
        for one in there[kept.held.instance.start].compute_instances():
            if one.span in spans:
                one.destroy()
                tell(f"GPU {mig.gpu.index}: destroyed {one.span[1]}c of {_spelled(kept.held)}")


def _add(mig: MigGpu, arrangement: Arrangement, tell: Tell) -> None:
    by_id = {profile.id: profile for profile in mig.profiles}
    there = {instance.span[0]: instance for instance in mig.gpu_instances()}
    for kept in arrangement.keep:
        _add_parts(there[kept.held.instance.start], kept.add)
        for part in kept.add:
            tell(f"GPU {mig.gpu.index}: created {part.slices}c of {_spelled(kept.held)}")
    for held in arrangement.create:
        profile = by_id[held.instance.profile.profile_id]
        _add_parts(mig.create(profile, held.instance.start), held.parts)
        tell(f"GPU {mig.gpu.index}: created {_spelled(held)}")


def _add_parts(instance: GpuInstance, parts: Sequence[Part]) -> None:
    numbers = {p.compute_slice_count: p.profile_id for p in COMPUTE_PROFILES}
    by_id = {profile.id: profile for profile in instance.profiles}
    for part in parts:
        instance.create(by_id[numbers[part.slices]], part.start)


def _spelled(held: Held) -> str:
    parts = "+".join(f"{part.slices}c" for part in held.parts)
    whole = f"{held.instance.profile.compute_slice_count}c"
    inside = f" with {parts}" if parts and parts != whole else ""
    span = f"{held.instance.start}:{held.instance.profile.memory_slice_count}"
    return f"{held.instance.profile.name} at {span}{inside}"


def steps_of(change: Change) -> Mapping[str, object]:
    """What happens to a GPU, for programs."""
    arrangement = change.arrangement or Arrangement()
    return {
        "gpu": change.card.gpu.index,
        "mig_enabled": change.enabled,
        "keep": [_kept(kept) for kept in arrangement.keep],
        "destroy": [_spelled(held) for held in arrangement.destroy],
        "create": [_spelled(held) for held in arrangement.create],
    }


def _kept(kept: Kept) -> str:
    changed = [f"-{part.slices}c" for part in kept.drop] + [f"+{p.slices}c" for p in kept.add]
    return " ".join([_spelled(kept.held), *changed])


def _refused(problem: str, why: str = "in-use") -> NodeError:
    return NodeError(name="", why=why, problem=problem)
