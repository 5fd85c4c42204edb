"""Files of MIG layouts in mig-parted's form: what one asks of each GPU; not how it comes about.

``version``, then ``mig-configs``: by label, rules of ``devices``, ``device-filter``,
``mig-enabled`` and ``mig-devices``.  A later rule goes before an earlier one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from va100.errors import SetupError
from va100.node.documents import malformed, read_document
from va100.spec.mig import COMPUTE_SLICES

VERSION: Final = "v1"
_FIELDS: Final = frozenset({"devices", "device-filter", "mig-enabled", "mig-devices"})
_NAME: Final = re.compile(r"(?:\dc\.)?\dg\.\d+gb(?:\+me)?")
_ID: Final = re.compile(r"0[xX][0-9a-fA-F]{1,8}")
_EXAMPLE: Final = (
    "{version: v1, mig-configs: {halves: [{devices: all, mig-enabled: true, "
    "mig-devices: {3g.20gb: 2}}]}}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What some GPUs are to be."""

    enabled: bool
    counts: tuple[tuple[str, int], ...] = ()
    """How many MIG devices of each name there are."""
    devices: frozenset[int] | None = None
    """Indices of GPUs; none: all."""
    device_ids: frozenset[int] | None = None
    """PCI device and vendor numbers as one word, such as 0x20B010DE; none: any."""

    def covers(self, index: int, device_id: int) -> bool:
        """Whether a GPU is meant."""
        return (self.devices is None or index in self.devices) and (
            self.device_ids is None or device_id in self.device_ids
        )


def rule_for(rules: Sequence[Rule], index: int, device_id: int) -> Rule | None:
    """Find the rule that a GPU follows; none: it stays as it is."""
    return next((rule for rule in reversed(rules) if rule.covers(index, device_id)), None)


def read_layouts(path: Path) -> Mapping[str, tuple[Rule, ...]]:
    """Read all layouts of a file, by label.

    Raises
    ------
    SetupError
        It cannot be read, or does not follow the form; the message says where.
    """
    told = read_document(path, _EXAMPLE)
    if not isinstance(told, Mapping):
        raise _wrong(path, "it holds no mapping")
    unknown = sorted(map(str, set(told) - {"version", "mig-configs"}))
    if unknown:
        raise _wrong(path, f"{unknown[0]} is unknown; there are `version` and `mig-configs`")
    if told.get("version") != VERSION:
        raise _wrong(path, f"`version` is {told.get('version')!r}; {VERSION} is read")
    layouts = told.get("mig-configs")
    if not isinstance(layouts, Mapping) or not layouts:
        raise _wrong(path, "`mig-configs` is to be a mapping from labels to lists of rules")
    return {str(label): _rules(path, str(label), rules) for label, rules in layouts.items()}


def chosen_layout(
    layouts: Mapping[str, tuple[Rule, ...]], label: str, path: Path
) -> tuple[Rule, ...]:
    """Take one layout; the only one where no label is given.

    Raises
    ------
    SetupError
        There is none of that label, or several to choose from.
    """
    names = ", ".join(layouts)
    if not label and len(layouts) > 1:
        raise SetupError(f"{path} holds {len(layouts)} layouts", remedy=f"-c with one of {names}")
    if label and label not in layouts:
        raise SetupError(f"{path} holds no layout {label}", remedy=f"-c with one of {names}")
    return layouts[label] if label else next(iter(layouts.values()))


def _rules(path: Path, label: str, rules: Any) -> tuple[Rule, ...]:
    if not isinstance(rules, list) or not rules:
        raise _wrong(path, f"mig-configs.{label} is to be a list of rules")
    return tuple(_rule(path, f"mig-configs.{label}[{i}]", rule) for i, rule in enumerate(rules))


def _rule(path: Path, where: str, rule: Any) -> Rule:
    if not isinstance(rule, Mapping):
        raise _wrong(path, f"{where} is to be a mapping")
    unknown = sorted(map(str, set(rule) - _FIELDS))
    if unknown:
        raise _wrong(path, f"{where}.{unknown[0]} is unknown; a rule has {', '.join(_FIELDS)}")
    enabled = rule.get("mig-enabled")
    if not isinstance(enabled, bool):
        raise _wrong(path, f"{where}.mig-enabled is to be true or false")
    counts = _counts(path, f"{where}.mig-devices", rule.get("mig-devices"))
    if counts and not enabled:
        raise _wrong(path, f"{where} lists mig-devices, but its mig-enabled is false")
    return Rule(
        enabled=enabled,
        counts=counts,
        devices=_devices(path, f"{where}.devices", rule.get("devices")),
        device_ids=_device_ids(path, f"{where}.device-filter", rule.get("device-filter")),
    )


def _counts(path: Path, where: str, told: Any) -> tuple[tuple[str, int], ...]:
    if told is None:
        return ()
    if not isinstance(told, Mapping):
        raise _wrong(path, f"{where} is to be a mapping from profiles to counts")
    for name, count in told.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise _wrong(path, f"{where}: {name} is no profile such as 3g.20gb or 1c.3g.20gb")
        if not _is_index(count) or count > COMPUTE_SLICES:
            raise _wrong(path, f"{where}.{name} is to be a number from 0 to {COMPUTE_SLICES}")
    return tuple((name, count) for name, count in told.items() if count)


def _devices(path: Path, where: str, told: Any) -> frozenset[int] | None:
    if told == "all":
        return None
    if not isinstance(told, list) or not all(map(_is_index, told)):
        raise _wrong(path, f"{where} is to be `all` or a list of indices")
    return frozenset(told)


def _device_ids(path: Path, where: str, told: Any) -> frozenset[int] | None:
    # YAML reads 0x20B010DE without quotes as a number, which is as good.
    ids = told if isinstance(told, list) else [told]
    if told is None or told == "" or not ids:
        return None
    for one in ids:
        if not _is_index(one) and not (isinstance(one, str) and _ID.fullmatch(one)):
            raise _wrong(path, f"{where}: {one} is no PCI number such as 0x20B010DE")
    return frozenset(one if isinstance(one, int) else int(one, 16) for one in ids)


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _wrong(path: Path, problem: str) -> SetupError:
    return malformed(path, problem, _EXAMPLE)


# ------------------------------------------------------------------ writing


def layout_of(gpus: Iterable[tuple[bool, Mapping[str, int]]]) -> list[dict[str, Any]]:
    """Write what GPUs are as rules, in order; GPUs that are alike share one.

    Parameters
    ----------
    gpus : iterable
        Of each GPU whether its MIG mode is on, and how many devices of each name it has.
    """
    alike: list[tuple[bool, dict[str, int], list[int]]] = []
    count = 0
    for index, (enabled, devices) in enumerate(gpus):
        count += 1
        for other_enabled, other_devices, indices in alike:
            if (other_enabled, other_devices) == (enabled, dict(devices)):
                indices.append(index)
                break
        else:
            alike.append((enabled, dict(devices), [index]))
    return [
        {
            "devices": "all" if len(indices) == count else indices,
            "mig-enabled": enabled,
            "mig-devices": dict(sorted(devices.items())),
        }
        for enabled, devices, indices in alike
    ]


def as_yaml(label: str, rules: Sequence[Mapping[str, Any]]) -> str:
    """Spell a layout in YAML."""
    lines = [f"version: {VERSION}", "mig-configs:", f"  {json.dumps(label)}:"]
    for rule in rules:
        lines.append(f"  - devices: {_inline(rule['devices'])}")
        lines.append(f"    mig-enabled: {json.dumps(rule['mig-enabled'])}")
        devices = rule["mig-devices"]
        lines.append("    mig-devices:" + ("" if devices else " {}"))
        lines += [f"      {json.dumps(name)}: {count}" for name, count in devices.items()]
    return "\n".join(lines) + "\n"


def as_json(label: str, rules: Sequence[Mapping[str, Any]]) -> str:
    """Spell a layout in JSON."""
    told = {"version": VERSION, "mig-configs": {label: list(rules)}}
    return json.dumps(told, indent=2) + "\n"


def _inline(devices: Any) -> str:
    return devices if devices == "all" else json.dumps(devices)
