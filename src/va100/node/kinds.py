"""Kinds of node: which cards, where they sit, how they are joined; not what they are set to.

The table is the one truth: the native core's copy is generated from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from va100.spec.a100 import A100_PCIE_40GB, A100_PCIE_80GB, A100_SXM4_40GB, A100_SXM4_80GB
from va100.spec.model import ChipSpec, Source
from va100.spec.sources import assumed, measured


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


_DGX: Final = measured("SMI-XML", "topo -m of a DGX A100; bus numbers of a published profile")
_P4D: Final = measured("AWS-TOPOLOGY", "p4d-24xl-topo.xml")
_NC: Final = measured("AZURE-HEALTH", "ncv4-topo.xml")
_CHOSEN: Final = assumed("RECALLED", "bus numbers chosen here, in the order of the sockets")

_DGX_SEATS: Final = tuple(
    Seat(0, bus, 0, numa)
    for bus, numa in zip(
        (0x07, 0x0F, 0x47, 0x4E, 0x87, 0x90, 0xB7, 0xBD), (3, 3, 1, 1, 7, 7, 5, 5), strict=True
    )
)
_FOUR: Final = tuple(Seat(0, bus, 0, i // 2) for i, bus in enumerate((0x07, 0x0F, 0x47, 0x4E)))
_P4D_SEATS: Final = tuple(
    Seat(0, bus, slot, numa)
    for bus, numa in ((0x10, 0), (0x20, 0), (0x90, 1), (0xA0, 1))
    for slot in (0x1C, 0x1D)
)
_ND_SEATS: Final = tuple(
    Seat(domain, 0, 0, i // 2) for i, domain in enumerate((1, 2, 3, 4, 11, 12, 13, 14))
)
_NC_SEATS: Final = tuple(Seat(i + 1, 0, 0, i) for i in range(4))
_ONE: Final = (Seat(0, 0x07, 0, 0),)


def _slots(count: int) -> tuple[Seat, ...]:
    """Cards in slots of a server: pairs beside each other, half on each socket."""
    buses = (0x17, 0x18, 0x31, 0x32, 0xB1, 0xB2, 0xCA, 0xCB)
    return tuple(Seat(0, bus, 0, 2 * i // max(count, 2)) for i, bus in enumerate(buses[:count]))


def _kind(
    name: str, chip: ChipSpec, board: Board, seats: tuple[Seat, ...], source: Source
) -> NodeKind:
    return NodeKind(name=name, chip=chip, board=board, seats=seats, source=source)


KINDS: Final = (
    _kind("hgx-a100-8x80gb", A100_SXM4_80GB, Board.SWITCHED, _DGX_SEATS, _DGX),
    _kind("hgx-a100-8x40gb", A100_SXM4_40GB, Board.SWITCHED, _DGX_SEATS, _DGX),
    _kind("hgx-a100-4x80gb", A100_SXM4_80GB, Board.MESHED, _FOUR, _CHOSEN),
    _kind("hgx-a100-4x40gb", A100_SXM4_40GB, Board.MESHED, _FOUR, _CHOSEN),
    _kind("dgx-a100-640gb", A100_SXM4_80GB, Board.SWITCHED, _DGX_SEATS, _DGX),
    _kind("dgx-a100-320gb", A100_SXM4_40GB, Board.SWITCHED, _DGX_SEATS, _DGX),
    _kind("pcie-a100-80gb-x8", A100_PCIE_80GB, Board.BRIDGED, _slots(8), _CHOSEN),
    _kind("pcie-a100-40gb-x8", A100_PCIE_40GB, Board.BRIDGED, _slots(8), _CHOSEN),
    _kind("pcie-a100-80gb-x4", A100_PCIE_80GB, Board.BRIDGED, _slots(4), _CHOSEN),
    _kind("pcie-a100-40gb-x4", A100_PCIE_40GB, Board.BRIDGED, _slots(4), _CHOSEN),
    _kind("pcie-a100-80gb-x2", A100_PCIE_80GB, Board.BRIDGED, _slots(2), _CHOSEN),
    _kind("pcie-a100-40gb-x2", A100_PCIE_40GB, Board.BRIDGED, _slots(2), _CHOSEN),
    _kind("pcie-a100-80gb", A100_PCIE_80GB, Board.UNLINKED, _slots(1), _CHOSEN),
    _kind("pcie-a100-40gb", A100_PCIE_40GB, Board.UNLINKED, _slots(1), _CHOSEN),
    _kind("sxm-a100-80gb", A100_SXM4_80GB, Board.UNLINKED, _ONE, _CHOSEN),
    _kind("sxm-a100-40gb", A100_SXM4_40GB, Board.UNLINKED, _ONE, _CHOSEN),
    _kind("aws-p4d.24xlarge", A100_SXM4_40GB, Board.SWITCHED, _P4D_SEATS, _P4D),
    _kind("aws-p4de.24xlarge", A100_SXM4_80GB, Board.SWITCHED, _P4D_SEATS, _P4D),
    _kind("azure-nd96asr-v4", A100_SXM4_40GB, Board.SWITCHED, _ND_SEATS, _CHOSEN),
    _kind("azure-nd96amsr-a100-v4", A100_SXM4_80GB, Board.SWITCHED, _ND_SEATS, _CHOSEN),
    _kind("azure-nc96ads-a100-v4", A100_PCIE_80GB, Board.BRIDGED, _NC_SEATS, _NC),
)
BY_NAME: Final[Mapping[str, NodeKind]] = MappingProxyType({kind.name: kind for kind in KINDS})
