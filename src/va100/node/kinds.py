"""Kinds of node that state can be made of: which cards, where they sit, how they are joined.

They follow from the rows of :mod:`va100.spec.nodes`; the native core's copy is generated from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from va100.spec.model import ChipSpec, Source
from va100.spec.nodes import NODES, LinkKind, NodeSpec, board_of


class Board(IntEnum):
    """How the cards of a node are joined, as the native core numbers it."""

    UNLINKED = 0
    """PCIe alone."""
    SWITCHED = 1
    """Every link ends in an NVSwitch, two in each of six."""
    MESHED = 2
    """Four links to each of three peers."""
    BRIDGED = 3
    """Pairs of PCIe cards under bridges of twelve links."""


_BOARDS: Final[Mapping[LinkKind, Board]] = MappingProxyType(
    {
        LinkKind.NONE: Board.UNLINKED,
        LinkKind.SWITCHED: Board.SWITCHED,
        LinkKind.MESH: Board.MESHED,
        LinkKind.BRIDGE: Board.BRIDGED,
    }
)


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a card sits on the machine's PCIe."""

    domain: int
    bus: int
    slot: int = 0
    numa: int = -1
    """Node of the processors beside it; -1: the machine does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKind:
    """A node that people ask for by name."""

    name: str
    chip: ChipSpec
    board: Board
    seats: tuple[Seat, ...]
    source: Source
    """Of the seats; the cards' own facts have theirs."""
    pcie_generation: int
    """Of the machine; a card's may be newer."""


def _kind(node: NodeSpec) -> NodeKind:
    return NodeKind(
        name=node.name,
        chip=node.chip,
        board=_BOARDS[node.links],
        seats=tuple(map(_seat, node.bus_ids, node.gpu_numa_ids)),
        source=node.sources["bus_ids"],
        pcie_generation=node.pcie_generation,
    )


def _seat(bus_id: str, numa: int) -> Seat:
    """Read ``0000:10:1C.0``."""
    domain, bus, slot = bus_id.partition(".")[0].split(":")
    return Seat(int(domain, 16), int(bus, 16), int(slot, 16), numa)


def _has_one_baseboard(node: NodeSpec) -> bool:
    """Whether the native core's six switches, or none, are all there are."""
    board = board_of(node)
    return board is None or board.baseboard_count == 1


KINDS: Final = tuple(_kind(node) for node in NODES if _has_one_baseboard(node))
BY_NAME: Final[Mapping[str, NodeKind]] = MappingProxyType({kind.name: kind for kind in KINDS})
