"""Nodes by name: which GPUs, how they are linked, and where they hang in PCIe and NUMA.

One row a kind.  What follows from a row (paths, relations, rates) is worked out in
:mod:`va100.node.topology` and :mod:`va100.perf.fabric`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from va100.spec.a100 import A100_PCIE_40GB, A100_PCIE_80GB, A100_SXM4_40GB, A100_SXM4_80GB
from va100.spec.hgx import HGX_A100_4, HGX_A100_8, HGX_A100_16
from va100.spec.model import BoardSpec, ChipSpec, Source, Spec, cited
from va100.spec.sources import assumed, datasheet, measured
from va100.units import GBIT, US


class LinkKind(Enum):
    """How GPUs of a node meet besides PCIe."""

    SWITCHED = "nvswitch"
    MESH = "mesh"
    BRIDGE = "bridge"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSpec(Spec):
    """How nodes of a kind meet."""

    name: str
    nic_count: int
    """Ports that carry GPU traffic."""
    nic_bytes_per_s: float
    """One port, one direction, as sold."""
    efficiency_ratio: float
    """Of a port's rate, what collectives reach."""
    hop_s: float
    """Added by one hop between nodes to what NCCL reckons for InfiniBand; zero for InfiniBand."""
    direct: bool
    """Whether the adapter reads GPU memory itself, past the host's."""


_HDR: Final = measured("AZURE-HEALTH", "acceptance limit of InfiniBand writes, 180 of 200 Gbit/s")
_HEARD: Final = assumed("RECALLED", "usual results of nccl-tests; no log was read")
_STAGED: Final = measured("VIDUR", "collectives of two DGX nodes; fitted: docs/collectives.md")


def _network(
    name: str, ports: tuple[int, float], efficiency: float, hop_s: float, source: Source
) -> NetworkSpec:
    nics, gigabits = ports
    return NetworkSpec(
        name=name,
        nic_count=nics,
        nic_bytes_per_s=float(gigabits * GBIT),
        efficiency_ratio=efficiency,
        hop_s=hop_s,
        direct=source is not _STAGED and "Ethernet" not in name,
        sources=cited(
            (source, "name nic_count nic_bytes_per_s efficiency_ratio hop_s direct"),
        ),
    )


HDR_8: Final = _network("8 x HDR InfiniBand", (8, 200), 0.9, 0.0, _HDR)
HDR_4: Final = _network("4 x HDR InfiniBand", (4, 200), 0.9, 0.0, _HDR)
EFA_4: Final = _network("4 x 100 Gbit/s EFA", (4, 100), 0.8, 20 * US, _HEARD)
ETHERNET_100: Final = _network("100 Gbit/s Ethernet", (1, 100), 0.75, 30 * US, _HEARD)
ETHERNET_80: Final = _network("80 Gbit/s Ethernet", (1, 80), 0.75, 30 * US, _HEARD)
ROCE_16: Final = _network("16 x 100 Gbit/s RoCE", (16, 100), 0.85, 2 * US, _HEARD)
STAGED_4: Final = _network("4 ports through host memory", (4, 80), 0.58, 25 * US, _STAGED)
NETWORKS: Final = {
    "hdr-8": HDR_8,
    "hdr-4": HDR_4,
    "efa-4": EFA_4,
    "ethernet-100": ETHERNET_100,
    "ethernet-80": ETHERNET_80,
    "roce-16": ROCE_16,
    "staged-4": STAGED_4,
}
"""By the names that ``network=`` takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NicSpec(Spec):
    """A network adapter of a node and where it hangs."""

    name: str
    numa_id: int
    switch_id: int
    """Of the PCIe switch it shares with GPUs; -1 when it has a root port of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec(Spec):
    """One kind of node."""

    name: str
    title: str
    chip: ChipSpec
    gpu_count: int
    links: LinkKind
    bridged_ids: tuple[tuple[int, int], ...]
    """Pairs of PCIe cards that a bridge joins."""
    bus_ids: tuple[str, ...]
    """PCI address of each GPU, domain first."""
    gpu_numa_ids: tuple[int, ...]
    gpu_switch_ids: tuple[int, ...]
    """PCIe switch above each GPU; -1: a root port of its own."""
    switch_level_count: int
    """PCIe switches in a row below one root port."""
    numa_count: int
    """NUMA nodes, those without GPUs among them."""
    socket_count: int
    core_count: int
    """Of the whole node; every core runs two threads."""
    pcie_generation: int
    nics: tuple[NicSpec, ...]
    network: NetworkSpec


class _Row(NamedTuple):
    name: str
    title: str
    chip: ChipSpec
    links: LinkKind
    buses: str
    numas: str
    switches: str
    levels: int
    numa_count: int
    sockets: int
    cores: int
    generation: int
    nics: str
    """``name@numa/switch``, space-separated."""
    network: NetworkSpec
    source: Source
    places: Source
    """Who says where the GPUs hang."""


_DGX: Final = measured("K8S-MOCK", "profile of DGX A100: bus addresses; matrices of nvidia-smi")
_DGX_NETWORK: Final = datasheet("A100-WP", "DGX A100 system")
_AWS: Final = measured("AWS-TOPOLOGY", "p4d and p4de topology files and captures")
_NDV4: Final = measured("AZURE-HEALTH", "NDv4 topology: four NUMA nodes, two GPUs and two adapters")
_NCV4: Final = measured("AZURE-HEALTH", "NCv4 topology: four NUMA nodes of one GPU")
_GCP: Final = assumed("GCP-PRICES", "machine catalogue; how PCIe runs is not told")
_GENERIC: Final = assumed("RECALLED", "a usual server; HGX says nothing about the host")

_DGX_BUSES: Final = "0000:07 0000:0F 0000:47 0000:4E 0000:87 0000:90 0000:B7 0000:BD"
_DGX_NUMAS: Final = "3 3 1 1 7 7 5 5"
_PAIRS: Final = "0 0 1 1 2 2 3 3"
_DGX_NICS: Final = (
    "mlx5_0@3/0 mlx5_1@3/0 mlx5_2@1/1 mlx5_3@1/1 mlx5_6@7/2 mlx5_7@7/2 mlx5_8@5/3 mlx5_9@5/3"
)
_FOUR_BUSES: Final = "0000:07 0000:0F 0000:47 0000:4E"
_AWS_BUSES: Final = (
    "0000:10:1C 0000:10:1D 0000:20:1C 0000:20:1D 0000:90:1C 0000:90:1D 0000:A0:1C 0000:A0:1D"
)
_AWS_NICS: Final = "rdmap16s27@0/0 rdmap32s27@0/1 rdmap144s27@1/2 rdmap160s27@1/3"
_AZURE_BUSES: Final = "0001 0002 0003 0004 000B 000C 000D 000E"
_AZURE_NICS: Final = (
    "mlx5_ib0@0/-1 mlx5_ib1@0/-1 mlx5_ib2@1/-1 mlx5_ib3@1/-1"
    " mlx5_ib4@2/-1 mlx5_ib5@2/-1 mlx5_ib6@3/-1 mlx5_ib7@3/-1"
)
_SLOT_BUSES: Final = tuple(
    f"0000:{bus:02X}" for bus in (0x17, 0x18, 0x31, 0x32, 0xB1, 0xB2, 0xCA, 0xCB)
)
_ALONE_8: Final = "-1 -1 -1 -1 -1 -1 -1 -1"
_GCP_BUSES: Final = (
    "0000:00:04 0000:00:05 0000:00:06 0000:00:07 0000:80:00 0000:80:01 0000:80:02 0000:80:03"
)


def _hgx_8(name: str, chip: ChipSpec, title: str) -> _Row:
    return _Row(
        name,
        title,
        chip,
        LinkKind.SWITCHED,
        _DGX_BUSES,
        _DGX_NUMAS,
        _PAIRS,
        2,
        8,
        2,
        128,
        4,
        _DGX_NICS,
        HDR_8,
        _DGX_NETWORK,
        _DGX,
    )


def _hgx_4(name: str, chip: ChipSpec) -> _Row:
    return _Row(
        name,
        f"HGX A100 4-GPU, {chip.name}",
        chip,
        LinkKind.MESH,
        _FOUR_BUSES,
        "0 0 1 1",
        "-1 -1 -1 -1",
        0,
        2,
        2,
        64,
        4,
        "mlx5_0@0/-1 mlx5_1@0/-1 mlx5_2@1/-1 mlx5_3@1/-1",
        HDR_4,
        _GENERIC,
        _GENERIC,
    )


def _cards(name: str, chip: ChipSpec, count: int, *, bridged: bool = True) -> _Row:
    """PCIe cards in a server with two sockets, neighbours bridged."""
    numas = [str(2 * index // max(count, 2)) for index in range(count)]
    pairs = count >= 2 and bridged
    return _Row(
        name,
        f"{count} x {chip.name}" + (", neighbours bridged" if pairs else ""),
        chip,
        LinkKind.BRIDGE if pairs else LinkKind.NONE,
        " ".join(_SLOT_BUSES[:count]),
        " ".join(numas),
        " ".join(["-1"] * count),
        0,
        2,
        2,
        64,
        4,
        "mlx5_0@0/-1",
        ETHERNET_100,
        _GENERIC,
        _GENERIC,
    )


def _one(name: str, chip: ChipSpec) -> _Row:
    row = _cards(name, chip, 1)
    # A module alone sits where the first one of a board does.
    return row._replace(buses=_DGX_BUSES.split()[0]) if name.startswith("sxm") else row


def _aws(name: str, chip: ChipSpec) -> _Row:
    return _Row(
        f"aws-{name}.24xlarge",
        f"AWS {name}.24xlarge",
        chip,
        LinkKind.SWITCHED,
        _AWS_BUSES,
        "0 0 0 0 1 1 1 1",
        _PAIRS,
        1,
        2,
        2,
        48,
        3,
        _AWS_NICS,
        EFA_4,
        _AWS,
        _AWS,
    )


def _azure(name: str, chip: ChipSpec) -> _Row:
    return _Row(
        f"azure-{name.lower().replace('_', '-')}",
        f"Azure Standard_{name}",
        chip,
        LinkKind.SWITCHED,
        _AZURE_BUSES,
        "0 0 1 1 2 2 3 3",
        _ALONE_8,
        0,
        4,
        2,
        96,
        4,
        _AZURE_NICS,
        HDR_8,
        _NDV4,
        _NDV4,
    )


def _gcp(name: str, chip: ChipSpec, count: int) -> _Row:
    buses = [f"0000:{bus:02X}:{slot:02X}" for bus in (0, 0x80) for slot in range(4, 12)]
    half = max(1, count // 2)
    chosen = buses[:half] + (buses[8 : 8 + count - half] if count > 1 else [])
    return _Row(
        f"gcp-{name}",
        f"GCP {name}",
        chip,
        LinkKind.SWITCHED if count > 1 else LinkKind.NONE,
        " ".join(chosen),
        " ".join("0" if index < half else "1" for index in range(count)),
        " ".join(["-1"] * count),
        0,
        2 if count > 1 else 1,
        2 if count > 1 else 1,
        6 * min(count, 8),
        4,
        "gvnic0@0/-1",
        ETHERNET_100,
        _GCP,
        _GCP,
    )


_ROWS: Final = (
    _hgx_8("hgx-a100-8x80gb", A100_SXM4_80GB, "HGX A100 8-GPU, A100-SXM4-80GB"),
    _hgx_8("hgx-a100-8x40gb", A100_SXM4_40GB, "HGX A100 8-GPU, A100-SXM4-40GB"),
    _hgx_4("hgx-a100-4x80gb", A100_SXM4_80GB),
    _hgx_4("hgx-a100-4x40gb", A100_SXM4_40GB),
    _hgx_8("dgx-a100-640gb", A100_SXM4_80GB, "DGX A100 640 GB"),
    _hgx_8("dgx-a100-320gb", A100_SXM4_40GB, "DGX A100 320 GB"),
    _cards("pcie-a100-80gb-x2", A100_PCIE_80GB, 2),
    _cards("pcie-a100-40gb-x2", A100_PCIE_40GB, 2),
    _cards("pcie-a100-80gb-x4", A100_PCIE_80GB, 4),
    _cards("pcie-a100-40gb-x4", A100_PCIE_40GB, 4),
    _cards("pcie-a100-80gb-x8", A100_PCIE_80GB, 8),
    _cards("pcie-a100-40gb-x8", A100_PCIE_40GB, 8),
    _cards("pcie-a100-80gb-x8-unbridged", A100_PCIE_80GB, 8, bridged=False),
    _one("sxm-a100-80gb", A100_SXM4_80GB),
    _one("sxm-a100-40gb", A100_SXM4_40GB),
    _one("pcie-a100-80gb", A100_PCIE_80GB),
    _one("pcie-a100-40gb", A100_PCIE_40GB),
    _aws("p4d", A100_SXM4_40GB),
    _aws("p4de", A100_SXM4_80GB),
    _azure("ND96asr_v4", A100_SXM4_40GB),
    _azure("ND96amsr_A100_v4", A100_SXM4_80GB),
    _Row(
        "azure-nc96ads-a100-v4",
        "Azure Standard_NC96ads_A100_v4",
        A100_PCIE_80GB,
        LinkKind.BRIDGE,
        "0001 0002 0003 0004",
        "0 1 2 3",
        "-1 -1 -1 -1",
        0,
        4,
        2,
        96,
        4,
        "eth0@0/-1",
        ETHERNET_80,
        _NCV4,
        _NCV4,
    ),
    _gcp("a2-highgpu-1g", A100_SXM4_40GB, 1),
    _gcp("a2-highgpu-2g", A100_SXM4_40GB, 2),
    _gcp("a2-highgpu-4g", A100_SXM4_40GB, 4),
    _gcp("a2-highgpu-8g", A100_SXM4_40GB, 8),
    _gcp("a2-megagpu-16g", A100_SXM4_40GB, 16),
    _gcp("a2-ultragpu-8g", A100_SXM4_80GB, 8),
)


def _bus_id(text: str) -> str:
    """Complete an address: ``0000:07`` is device 0 of that bus, ``0001`` bus 0 of a domain."""
    parts = text.split(":")
    domain, bus, slot = (*parts, *("00", "00")[len(parts) - 1 :]) if len(parts) < 3 else parts
    return f"{domain}:{bus}:{slot}.0"


def _nic(text: str, source: Source) -> NicSpec:
    name, place = text.split("@")
    numa, switch = place.split("/")
    return NicSpec(
        name=name,
        numa_id=int(numa),
        switch_id=int(switch),
        sources=cited((source, "name numa_id switch_id")),
    )


def _node(row: _Row) -> NodeSpec:
    count = len(row.buses.split())
    pairs = range(0, count - 1, 2) if row.links is LinkKind.BRIDGE else ()
    return NodeSpec(
        name=row.name,
        title=row.title,
        chip=row.chip,
        gpu_count=count,
        links=row.links,
        bridged_ids=tuple((first, first + 1) for first in pairs),
        bus_ids=tuple(_bus_id(text) for text in row.buses.split()),
        gpu_numa_ids=tuple(map(int, row.numas.split())),
        gpu_switch_ids=tuple(map(int, row.switches.split())),
        switch_level_count=row.levels,
        numa_count=row.numa_count,
        socket_count=row.sockets,
        core_count=row.cores,
        pcie_generation=row.generation,
        nics=tuple(_nic(text, row.places) for text in row.nics.split()),
        network=row.network,
        sources=cited(
            (
                row.source,
                "name title gpu_count links bridged_ids numa_count socket_count core_count"
                " pcie_generation",
            ),
            (row.places, "bus_ids gpu_numa_ids gpu_switch_ids switch_level_count"),
        ),
    )


NODES: Final = tuple(_node(row) for row in _ROWS)
BY_NAME: Final = {node.name: node for node in NODES}


def find_node(name: str) -> NodeSpec:
    """Kind of node of this name.

    Raises
    ------
    ValueError
        No such kind; the message lists those there are.
    """
    node = BY_NAME.get(name.strip().lower())
    if node is None:
        known = ", ".join(sorted(BY_NAME))
        raise ValueError(f"no kind of node is called {name!r}; there are: {known}")
    return node


def board_of(node: NodeSpec) -> BoardSpec | None:
    """Baseboard that a kind's SXM modules sit on; none for cards.

    A cloud instance of two or four switched GPUs has a part of an eight-GPU board.
    """
    if node.links is LinkKind.MESH:
        return HGX_A100_4
    if node.links is LinkKind.SWITCHED:
        return HGX_A100_8 if node.gpu_count <= HGX_A100_8.gpu_count else HGX_A100_16
    return None
