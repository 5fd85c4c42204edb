"""Constants of tiled products, one set a kind of kernel: what was fitted, and to what.

Every set was fitted to a third of the shapes of one table (by weight shape, so that no weight shape
of that third is among the rest), by absolute relative error; ``docs/operators.md`` shows the errors
on the other two thirds.  Times are in cycles of an A100 at 1410 MHz, sizes in bytes.  Nothing here
belongs to a shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from va100.units import GB, MB, NS, US


class Tile(NamedTuple):
    """Shape of a CTA's part of the result, and how many CTAs share an SM."""

    rows: int
    columns: int
    resident_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TileFit:
    """One kind of kernel: the tiles it comes in and what they cost."""

    tiles: tuple[Tile, ...]
    splits: tuple[int, ...]
    step_bytes: int
    """Of a row of activations in a pipeline stage."""
    launch_s: float
    start_cycles: float
    """From a CTA's start to its first product."""
    end_cycles: float
    """From its last product to its end, beside storing the tile."""
    step_cycles: float
    """A step of a CTA that is alone."""
    peak_ratio: float
    """Of the peak by an endless tile."""
    edge_count: float
    """Elements of a tile's harmonic size at which half of that is reached."""
    shallow_ratio: float
    """Of that where ``k`` is too short for the pipeline (128 at most)."""
    unpack_cycles: float
    """Per weight of a tile that is unpacked, over the SM."""
    l2_busy_bytes_per_cycle: float
    """What an SM draws from L2 when all SMs do."""
    l2_alone_bytes_per_cycle: float
    store_bytes_per_cycle: float
    """What an SM stores of its tile."""
    hidden_ratio: float
    """Of start, end and storing that another CTA on the SM covers."""
    dram_bytes_per_s: float
    """Read from memory, of an A100 80 GB's 2,039e9."""
    wait_cycles: float
    """From asking memory to having it."""
    flight_count: float
    """Elements of ``k`` that a CTA has asked for at a time."""
    exponent: float
    """Norm in which SM and memory time are added."""
    reduce_s: float
    """Adding the parts of a split, beside their traffic."""
    reduce_bytes_per_s: float
    reduce_bias: float
    """How much dearer the library takes that to be when it chooses."""
    large_bias: float
    """Power of a tile's area by which the library prefers large ones."""
    resident_bytes: float
    """Of L2 in which operands are found again."""
    copies_count: float
    """Weights that are used before these come again, as layers of a model are."""
    vector_rows: int
    """Products of so few rows also have a kernel of their own; 0 without."""
    vector_only: bool = False
    """Whether they always take it, rather than where it is the quicker."""
    vector_s: float = 0.0
    vector_element_s: float = 0.0
    """Per element of ``k``."""
    vector_bytes_per_s: float = 1e12


TENSOR: Final = TileFit(
    tiles=(
        Tile(256, 128, 1),
        Tile(128, 256, 1),
        Tile(128, 128, 2),
        Tile(256, 64, 2),
        Tile(64, 256, 2),
        Tile(128, 64, 3),
        Tile(64, 128, 3),
        Tile(64, 64, 5),
        Tile(32, 128, 5),
        Tile(128, 32, 5),
        Tile(32, 64, 6),
        Tile(64, 32, 6),
        Tile(32, 32, 8),
        Tile(16, 64, 8),
        Tile(64, 16, 8),
        Tile(16, 128, 6),
        Tile(16, 32, 8),
    ),
    splits=(1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32),
    step_bytes=64,
    launch_s=2.769 * US,
    start_cycles=347.4,
    end_cycles=155.9,
    step_cycles=224.5,
    peak_ratio=0.9937,
    edge_count=10.49,
    shallow_ratio=0.4739,
    unpack_cycles=0.0,
    l2_busy_bytes_per_cycle=21.14,
    l2_alone_bytes_per_cycle=83.91,
    store_bytes_per_cycle=13.69,
    hidden_ratio=0.2252,
    dram_bytes_per_s=1809.0 * GB,
    wait_cycles=626.5,
    flight_count=114.4,
    exponent=2.966,
    reduce_s=2.486 * US,
    reduce_bytes_per_s=7518.0 * GB,
    reduce_bias=1.074,
    large_bias=0.02526,
    resident_bytes=1.921 * MB,
    copies_count=6,
    vector_rows=1,
    vector_s=0.8934 * US,
    vector_element_s=0.1053 * NS,
    vector_bytes_per_s=519.5 * GB,
)
"""Half, TF32 and FP64 on tensor cores; fitted to bf16 of four library stacks (AICONFIG)."""

INT8: Final = TileFit(
    tiles=(
        Tile(256, 128, 1),
        Tile(128, 256, 1),
        Tile(128, 128, 1),
        Tile(128, 64, 2),
        Tile(64, 128, 2),
        Tile(64, 64, 3),
        Tile(32, 128, 3),
    ),
    splits=(1, 2, 3, 4, 5, 6, 7),
    step_bytes=64,
    launch_s=8.049 * US,
    start_cycles=441.9,
    end_cycles=187.2,
    step_cycles=821.9,
    peak_ratio=0.9961,
    edge_count=4.404,
    shallow_ratio=1.0,
    unpack_cycles=0.0,
    l2_busy_bytes_per_cycle=67.35,
    l2_alone_bytes_per_cycle=64.93,
    store_bytes_per_cycle=7.884,
    hidden_ratio=0.2659,
    dram_bytes_per_s=1842.0 * GB,
    wait_cycles=408.9,
    flight_count=105.5,
    exponent=3.14,
    reduce_s=0.8411 * US,
    reduce_bytes_per_s=10870.0 * GB,
    reduce_bias=1.725,
    large_bias=0.004735,
    resident_bytes=5.761 * MB,
    copies_count=6,
    vector_rows=4,
    vector_only=True,
    vector_s=0.9225 * US,
    vector_element_s=0.1667 * NS,
    vector_bytes_per_s=1850.0 * GB,
)
"""Eight- and four-bit products with scales; fitted to one library (AICONFIG)."""

PACKED8: Final = TileFit(
    tiles=(
        Tile(128, 128, 1),
        Tile(64, 128, 2),
        Tile(32, 128, 3),
        Tile(16, 128, 3),
    ),
    splits=(1, 2, 3, 4, 5, 6, 7),
    step_bytes=64,
    launch_s=8.929 * US,
    start_cycles=329.4,
    end_cycles=210.6,
    step_cycles=346.7,
    peak_ratio=0.9994,
    edge_count=9.159,
    shallow_ratio=1.0,
    unpack_cycles=0.01257,
    l2_busy_bytes_per_cycle=39.38,
    l2_alone_bytes_per_cycle=79.19,
    store_bytes_per_cycle=14.89,
    hidden_ratio=0.2201,
    dram_bytes_per_s=1849.0 * GB,
    wait_cycles=207.6,
    flight_count=105.5,
    exponent=3.078,
    reduce_s=7.956 * US,
    reduce_bytes_per_s=7937.0 * GB,
    reduce_bias=1.029,
    large_bias=0.01096,
    resident_bytes=3.902 * MB,
    copies_count=6,
    vector_rows=4,
    vector_only=True,
    vector_s=0.3127 * US,
    vector_element_s=0.997 * NS,
    vector_bytes_per_s=1755.0 * GB,
)
"""Eight-bit weights with half-precision activations; fitted to one library (AICONFIG)."""

PACKED4: Final = TileFit(
    tiles=(
        Tile(128, 128, 1),
        Tile(64, 128, 2),
        Tile(32, 128, 3),
        Tile(16, 128, 3),
    ),
    splits=(1, 2, 3, 4, 5, 6, 7),
    step_bytes=64,
    launch_s=8.367 * US,
    start_cycles=43.51,
    end_cycles=210.6,
    step_cycles=387.9,
    peak_ratio=0.9204,
    edge_count=2.093,
    shallow_ratio=1.0,
    unpack_cycles=0.01381,
    l2_busy_bytes_per_cycle=37.52,
    l2_alone_bytes_per_cycle=79.19,
    store_bytes_per_cycle=11.32,
    hidden_ratio=0.2201,
    dram_bytes_per_s=1756.0 * GB,
    wait_cycles=246.1,
    flight_count=105.5,
    exponent=3.835,
    reduce_s=7.005 * US,
    reduce_bytes_per_s=7937.0 * GB,
    reduce_bias=1.029,
    large_bias=0.04965,
    resident_bytes=16.63 * MB,
    copies_count=6,
    vector_rows=4,
    vector_only=True,
    vector_s=4.366 * US,
    vector_element_s=1.131 * NS,
    vector_bytes_per_s=1850.0 * GB,
)
"""Four-bit weights likewise; fitted to one library (AICONFIG)."""

ORDINARY: Final = TileFit(
    tiles=(
        Tile(128, 64, 3),
        Tile(64, 128, 3),
        Tile(64, 64, 4),
        Tile(32, 128, 4),
        Tile(128, 32, 4),
        Tile(32, 64, 4),
        Tile(64, 32, 4),
        Tile(32, 32, 4),
    ),
    splits=(1, 2, 4, 8, 16),
    step_bytes=32,
    launch_s=2.698 * US,
    start_cycles=8528.0,
    end_cycles=152.5,
    step_cycles=200.2,
    peak_ratio=0.9858,
    edge_count=6.534,
    shallow_ratio=1.0,
    unpack_cycles=0.0,
    l2_busy_bytes_per_cycle=33.54,
    l2_alone_bytes_per_cycle=74.42,
    store_bytes_per_cycle=191.5,
    hidden_ratio=0.9927,
    dram_bytes_per_s=1324.0 * GB,
    wait_cycles=4886.0,
    flight_count=98.14,
    exponent=3.18,
    reduce_s=24.26 * US,
    reduce_bytes_per_s=10700.0 * GB,
    reduce_bias=0.3475,
    large_bias=0.3994,
    resident_bytes=49.08 * MB,
    copies_count=0,
    vector_rows=0,
)
"""FP32 and FP64 on the ordinary pipes; fitted to FP32 (NEUSIGHT)."""

ORDINARY_BATCHED: Final = TileFit(
    tiles=(Tile(128, 128, 2),),
    splits=(1,),
    step_bytes=32,
    launch_s=2.698 * US,
    start_cycles=1087.0,
    end_cycles=191.2,
    step_cycles=48.5,
    peak_ratio=0.9989,
    edge_count=3.023,
    shallow_ratio=1.0,
    unpack_cycles=0.0,
    l2_busy_bytes_per_cycle=16.88,
    l2_alone_bytes_per_cycle=74.42,
    store_bytes_per_cycle=32.58,
    hidden_ratio=0.2653,
    dram_bytes_per_s=1850.0 * GB,
    wait_cycles=1405.0,
    flight_count=98.14,
    exponent=4.999,
    reduce_s=5.0 * US,
    reduce_bytes_per_s=10700.0 * GB,
    reduce_bias=1.0,
    large_bias=0.05111,
    resident_bytes=22.17 * MB,
    copies_count=0,
    vector_rows=0,
)
"""The same batched, which the library has one tile for."""
