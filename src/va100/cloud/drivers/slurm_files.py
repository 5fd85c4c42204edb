"""Slurm's files for nodes with cards and MIG slices: ``gres.conf`` and its lines of ``slurm.conf``.

A slice is a GRES of a type of its own (``gpu:a100_1g.10gb``), as Slurm's own detection names it.
:func:`mismatches` reads a pair of files that someone has and names what does not fit, which Slurm
itself only hints at before it drains the node.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from va100.cloud.geometry import EMPTY, PROFILES, WHOLE, arrange, fit
from va100.cloud.models import Shape
from va100.errors import BadRequest

CARD = "a100"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLayout:
    """A node as Slurm is to see it: what each card is cut into."""

    name: str
    model: str
    cards: tuple[tuple[str, ...], ...]
    """Profiles on each card; empty: it is given whole."""
    cpus: int = 1

    def counts(self) -> Counter[str]:
        """How many GRES of each type there are."""
        found: Counter[str] = Counter()
        for profiles in self.cards:
            found.update([gres_type(Shape(self.model, profile)) for profile in profiles or [WHOLE]])
        return found


def gres_type(shape: Shape) -> str:
    """The type of a shape's GRES."""
    return f"{CARD}_{shape.profile}" if shape.is_slice else CARD


def gres_request(shape: Shape) -> str:
    """What a job asks for to get a shape."""
    return f"gpu:{gres_type(shape)}:{1 if shape.is_slice else shape.cards}"


def require_possible(layout: NodeLayout) -> None:
    """Refuse a layout that no card can be cut into.

    Raises
    ------
    BadRequest
    """
    names = {spec.name for spec in PROFILES[layout.model]}
    for number, profiles in enumerate(layout.cards):
        strange = sorted(set(profiles) - names)
        if strange:
            raise BadRequest(f"{layout.name}, card {number}: no MIG profile {strange[0]}")
        wanted = tuple(fit(layout.model, profile) for profile in profiles)
        if arrange(EMPTY, wanted) is None:
            raise BadRequest(
                f"{layout.name}, card {number}: {', '.join(profiles)} do not fit one card"
            )


def gres_conf(layouts: Sequence[NodeLayout], devices: str) -> str:
    """The text of ``gres.conf``.

    Parameters
    ----------
    devices : str
        Where the devices' files are, with ``{number}`` for each GRES of a node in turn.
    """
    lines = ["# GPUs and their MIG slices; slurm.conf has the counts.", "AutoDetect=off"]
    for layout in layouts:
        require_possible(layout)
        number = 0
        for kind, count in sorted(layout.counts().items()):
            for _ in range(count):
                file = devices.format(number=number)
                lines.append(f"NodeName={layout.name} Name=gpu Type={kind} File={file}")
                number += 1
    return "\n".join(lines) + "\n"


def slurm_conf_lines(layouts: Sequence[NodeLayout], partition: str = "gpu") -> str:
    """The lines of ``slurm.conf`` that nodes and their GRES need."""
    lines = ["GresTypes=gpu", "SelectType=select/cons_tres"]
    for layout in layouts:
        counts = sorted(layout.counts().items())
        gres = ",".join(f"gpu:{kind}:{count}" for kind, count in counts)
        lines.append(f"NodeName={layout.name} CPUs={layout.cpus} Gres={gres} State=UNKNOWN")
    names = ",".join(layout.name for layout in layouts)
    lines.append(
        f"PartitionName={partition} Nodes={names} Default=YES State=UP OverSubscribe=FORCE"
    )
    return "\n".join(lines) + "\n"


def mismatches(gres_text: str, slurm_text: str) -> list[str]:
    """What does not fit between a ``gres.conf`` and a ``slurm.conf``; nothing if all does."""
    slurm = [_pairs(line) for line in _lines(slurm_text)]
    gres = [_pairs(line) for line in _lines(gres_text)]
    found = []
    if "gpu" not in _values(slurm, "gresTypes".lower()):
        found.append("slurm.conf: GresTypes does not name gpu, so no node's GPUs count")
    if "select/cons_tres" not in _values(slurm, "selecttype"):
        found.append("slurm.conf: SelectType is not select/cons_tres, which GPUs by type need")
    nodes = [pairs for pairs in slurm if "nodename" in pairs]
    detects = any(p.get("autodetect", "off").lower() == "nvml" for p in gres)
    for pairs in nodes:
        for name in _expanded(pairs["nodename"]):
            wanted = _wanted(pairs.get("gres", ""))
            there = _there(gres, name)
            found += _differences(name, wanted, there, detects=detects)
    named = {name for pairs in nodes for name in _expanded(pairs["nodename"])}
    for pairs in gres:
        for name in _expanded(pairs.get("nodename", "")):
            if name not in named:
                found.append(f"gres.conf: node {name} is not in slurm.conf")
    return list(dict.fromkeys(found))


def _differences(
    name: str, wanted: Mapping[str, int], there: Mapping[str, int], *, detects: bool
) -> list[str]:
    found = []
    for kind in sorted({*wanted, *there}):
        asked, given = wanted.get(kind, 0), there.get(kind, 0)
        if asked == given:
            continue
        if detects and given == 0 and "g." in kind:
            found.append(
                f"node {name}: slurm.conf has {asked} of gpu:{kind}, and AutoDetect=nvml finds "
                "slices only while MIG is on and cut so; name them in gres.conf, or cut the cards"
            )
        elif given == 0:
            found.append(
                f"node {name}: slurm.conf has {asked} of gpu:{kind}, gres.conf none: Slurm will "
                "drain it (gres/gpu count too low)"
            )
        elif asked == 0:
            found.append(
                f"node {name}: gres.conf has {given} of gpu:{kind}, slurm.conf none: they are "
                "ignored"
            )
        else:
            found.append(
                f"node {name}: slurm.conf has {asked} of gpu:{kind}, gres.conf {given}: "
                + ("Slurm will drain it" if given < asked else "the rest are ignored")
            )
    return found


def _lines(text: str) -> list[str]:
    joined = re.sub(r"\\\n", " ", text)
    return [line.partition("#")[0].strip() for line in joined.splitlines()]


def _pairs(line: str) -> dict[str, str]:
    return {key.lower(): value for key, _, value in (w.partition("=") for w in line.split()) if key}


def _values(lines: Sequence[Mapping[str, str]], key: str) -> set[str]:
    return {value.lower() for pairs in lines for value in pairs.get(key, "").split(",") if value}


def _wanted(text: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for word in text.split(","):
        parts = word.split("(")[0].split(":")
        if parts[0] != "gpu":
            continue
        count = int(parts[-1]) if parts[-1].isdecimal() else 1
        kind = parts[1] if len(parts) > 1 and not parts[1].isdecimal() else ""
        found[kind] += count
    return found


def _there(lines: Sequence[Mapping[str, str]], node: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for pairs in lines:
        mine = "nodename" not in pairs or node in _expanded(pairs["nodename"])
        if pairs.get("name") == "gpu" and mine:
            files = _expanded(pairs["file"]) if "file" in pairs else []
            count = int(pairs["count"]) if pairs.get("count", "").isdecimal() else len(files) or 1
            found[pairs.get("type", "")] += count
    return found


def _expanded(text: str) -> list[str]:
    """Names of a host list such as ``node[1-3,7]``."""
    found: list[str] = []
    for word in re.split(r",(?![^\[]*\])", text):
        match = re.fullmatch(r"(.*?)\[([0-9,-]+)\](.*)", word)
        if match is None:
            found += [word] if word else []
            continue
        head, ranges, tail = match.groups()
        for piece in ranges.split(","):
            first, _, last = piece.partition("-")
            for number in range(int(first), int(last or first) + 1):
                found.append(f"{head}{number:0{len(first)}}{tail}")
    return found
