"""HGX A100 baseboards: GPUs, NVSwitches and how the links run between them."""

from __future__ import annotations

from typing import Final

from va100.spec.model import BoardSpec, FabricPartitionSpec, cited
from va100.spec.sources import assumed, datasheet, derived
from va100.units import GB

_FM_TOPOLOGY: Final = datasheet("FM-UG", "HGX A100 system topologies")
_LINK: Final = datasheet("A100-WP", "third-generation NVLink")
_NO_SWITCH: Final = derived("FM-UG", "a board without switches")
_SWITCH: Final = datasheet("OGKM", "lr10.h, count of NVLink ports")
_TRUNKS: Final = derived("FM-UG", "ports used of a switch less those of its own GPUs")

HGX_A100_4: Final = BoardSpec(
    name="HGX A100 4-GPU",
    gpu_count=4,
    baseboard_count=1,
    nvswitch_count=0,
    nvswitch_port_count=0,
    links_per_gpu_count=12,
    links_per_peer_count=4,
    links_per_switch_count=0,
    trunks_per_switch_count=0,
    link_bytes_per_s=25.0 * GB,
    fabric_manager=False,
    sources=cited(
        (_FM_TOPOLOGY, "name gpu_count baseboard_count nvswitch_count fabric_manager"),
        (_LINK, "links_per_gpu_count link_bytes_per_s"),
        (assumed("RECALLED", "four links to each of three peers"), "links_per_peer_count"),
        (_NO_SWITCH, "nvswitch_port_count links_per_switch_count trunks_per_switch_count"),
    ),
)

HGX_A100_8: Final = BoardSpec(
    name="HGX A100 8-GPU",
    gpu_count=8,
    baseboard_count=1,
    nvswitch_count=6,
    nvswitch_port_count=36,
    links_per_gpu_count=12,
    links_per_peer_count=0,
    links_per_switch_count=2,
    trunks_per_switch_count=0,
    link_bytes_per_s=25.0 * GB,
    fabric_manager=True,
    sources=cited(
        (_FM_TOPOLOGY, "name gpu_count baseboard_count nvswitch_count fabric_manager"),
        (_SWITCH, "nvswitch_port_count"),
        (_LINK, "links_per_gpu_count link_bytes_per_s"),
        (derived("FM-UG", "every link ends in a switch"), "links_per_peer_count"),
        (derived("FM-UG", "16 ports used of a switch, eight GPUs"), "links_per_switch_count"),
        (_TRUNKS, "trunks_per_switch_count"),
    ),
)

HGX_A100_16: Final = BoardSpec(
    name="HGX A100 16-GPU",
    gpu_count=16,
    baseboard_count=2,
    nvswitch_count=12,
    nvswitch_port_count=36,
    links_per_gpu_count=12,
    links_per_peer_count=0,
    links_per_switch_count=2,
    trunks_per_switch_count=16,
    link_bytes_per_s=25.0 * GB,
    fabric_manager=True,
    sources=HGX_A100_8.sources,
)

BOARDS: Final = (HGX_A100_4, HGX_A100_8, HGX_A100_16)

_PARTITION_SOURCES: Final = cited(
    (
        datasheet("FM-UG", "GPU and NVSwitch assignment to virtual machines, HGX A100"),
        "gpu_count nvswitch_count links_per_gpu_count links_per_switch_count sets_per_board_count",
    )
)


def _partition(
    gpus: int, switches: int, per_gpu: int, per_switch: int, sets: int
) -> FabricPartitionSpec:
    return FabricPartitionSpec(
        gpu_count=gpus,
        nvswitch_count=switches,
        links_per_gpu_count=per_gpu,
        links_per_switch_count=per_switch,
        sets_per_board_count=sets,
        sources=_PARTITION_SOURCES,
    )


FABRIC_PARTITIONS: Final = (
    _partition(16, 12, 12, 32, 1),
    _partition(8, 6, 12, 16, 1),
    _partition(4, 3, 6, 6, 2),
    _partition(2, 1, 2, 4, 4),
    _partition(1, 0, 0, 0, 8),
)
"""What a virtual machine may be given of a board; the first takes two boards together."""
