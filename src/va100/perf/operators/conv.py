"""Convolutions: as an implicit product, by Winograd's transform, or one channel at a time.

The library tries its algorithms and keeps the quickest; so does this.  Images are taken to be read
once from memory, however often a product's rows overlap in them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import Final

from va100.perf.operators import bands
from va100.perf.operators.chips import DEFAULT, Chip, find_chip
from va100.perf.operators.estimates import Demand, OperatorEstimate, filled, settle
from va100.perf.operators.formats import Format, find_format
from va100.perf.operators.gemm import require_positive
from va100.perf.operators.launches import launched
from va100.perf.operators.streams import Stream, missed_ratio, stream_demand
from va100.perf.operators.tile_fits import ORDINARY, TENSOR, Tile
from va100.perf.operators.tiles import Product, demand_of, quickest
from va100.units import US


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvEstimate(OperatorEstimate):
    """A convolution's predicted time."""

    algorithm: str
    """``implicit product``, ``Winograd``, ``Winograd, in steps`` or ``by channel``."""
    output: tuple[int, int, int, int]
    """Images, channels, height and width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Sizes of one convolution."""

    batch: int
    cin: int
    cout: int
    height: int
    width: int
    ksize: int
    stride: int
    pad: int
    groups: int
    number: Format

    @property
    def rows(self) -> int:
        """Height of the output."""
        return (self.height + 2 * self.pad - self.ksize) // self.stride + 1

    @property
    def columns(self) -> int:
        """Width of the output."""
        return (self.width + 2 * self.pad - self.ksize) // self.stride + 1

    @property
    def flop_count(self) -> float:
        """Operations of the definition, whatever the algorithm saves."""
        points = float(self.batch) * self.rows * self.columns
        return 2.0 * points * self.cout * self.cin // self.groups * self.ksize**2

    @property
    def input_bytes(self) -> float:
        """Of the images."""
        points = float(self.batch) * self.height * self.width
        return points * self.cin * self.number.activation_bytes

    @property
    def output_bytes(self) -> float:
        """Of the result."""
        points = float(self.batch) * self.rows * self.columns
        return points * self.cout * self.number.result_bytes

    @property
    def weight_bytes(self) -> float:
        """Of the filters."""
        return self.cout * self.cin / self.groups * self.ksize**2 * self.number.weight_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """What was fitted, on an A100 at 1410 MHz (docs/operators.md)."""

    implicit_ratio: float
    """Speed of an implicit product, of a plain one."""
    implicit_tensor_ratio: float
    """The same on tensor cores: ResNet-50 in half precision as a fused runtime runs it
    (AITEMPLATE, three batch sizes)."""
    fused_ratio: float
    """Of Winograd in one kernel, of a plain product of what it leaves to multiply."""
    stepped_ratio: float
    """Of Winograd's products alone, where its transforms are kernels of their own."""
    transform_ratio: float
    """Of the reading rate by those transforms."""
    kernel_s: float
    """What each further kernel adds."""


FITTED: Final = Constants(
    implicit_ratio=0.605,
    implicit_tensor_ratio=0.95,
    fused_ratio=0.45,
    stepped_ratio=0.61,
    transform_ratio=0.74,
    kernel_s=3.0 * US,
)
WHOLE: Final = replace(
    ORDINARY,
    tiles=(
        Tile(128, 128, 2),
        *(Tile(128, n, 3) for n in (64, 32)),
        *(Tile(n, 128, 3) for n in (64, 32)),
    ),
    splits=(1,),
)
"""Implicit products on the ordinary pipes: sums are not split."""
WHOLE_TENSOR: Final = replace(TENSOR, splits=(1,), vector_rows=0)
FUSED: Final = replace(ORDINARY, tiles=(Tile(32, 64, 1), Tile(64, 32, 1)), splits=(1,))
"""Winograd in one kernel: all sixteen products of a tile at once."""
EAGER_S: Final = 53 * US
"""What an eager call of a convolution takes of the host beyond a plain one's (NEUSIGHT): the
quickest of a thousand took 78 us in all."""
FUSED_PRODUCTS: Final = 16
FUSED_TILE: Final = 2
STEPPED_TILE: Final = 4
"""Output elements of a side that one transform yields."""
WINOGRAD_SIZES: Final = (3,)


@lru_cache(maxsize=16384)
def estimate(
    batch: int,
    cin: int,
    cout: int,
    height: int,
    width: int | None = None,
    *,
    ksize: int = 3,
    stride: int = 1,
    pad: int | None = None,
    groups: int = 1,
    dtype: str = "fp16",
    launch: str = "graph",
    chip: str = DEFAULT,
) -> ConvEstimate:
    """Predict the time of one convolution of ``batch`` images.

    Parameters
    ----------
    width : int, optional
        As the height without it.
    pad : int, optional
        Half the filter without it.
    groups : int
        ``cin`` of them is a depthwise convolution.
    launch : str
        How the kernel is started, a name of :data:`va100.perf.operators.launches.LAUNCHES`.

    Raises
    ------
    ValueError
        Sizes that don't fit together, an unknown format, launch or chip.
    """
    wide = width or height
    require_positive(
        batch=batch, cin=cin, cout=cout, height=height, width=wide, ksize=ksize, stride=stride
    )
    if groups < 1 or cin % groups or cout % groups:
        raise ValueError(f"groups must divide cin and cout, not {groups} of {cin} and {cout}")
    layer = Layer(
        batch=batch,
        cin=cin,
        cout=cout,
        height=height,
        width=wide,
        ksize=ksize,
        stride=stride,
        pad=ksize // 2 if pad is None else pad,
        groups=groups,
        number=find_format(dtype),
    )
    if layer.rows < 1 or layer.columns < 1:
        raise ValueError(f"a filter of {ksize} does not fit an image of {height} by {wide}")
    target = find_chip(chip)
    algorithm, demand = quickest_way(layer, target, FITTED)
    started = launched(demand, launch, target)
    if launch == "eager":
        started = replace(started, fixed_s=started.fixed_s + EAGER_S)
    family = bands.UNMEASURED if layer.number.on_tensor_cores else bands.CONV
    return ConvEstimate(
        **filled(started, target, family, layer.flop_count),  # type: ignore[arg-type]
        algorithm=algorithm,
        output=(batch, cout, layer.rows, layer.columns),
    )


def quickest_way(layer: Layer, chip: Chip, fitted: Constants) -> tuple[str, Demand]:
    """Time every algorithm, and take the quickest."""
    if layer.groups == layer.cin > 1:
        return "by channel", _by_channel(layer, chip)
    ways = {"implicit product": _implicit(layer, chip, fitted)}
    if _suits_winograd(layer):
        ways["Winograd"] = _fused(layer, chip, fitted)
        ways["Winograd, in steps"] = _stepped(layer, chip, fitted)
    return min(ways.items(), key=lambda way: settle(way[1], chip).time_s)


def _suits_winograd(layer: Layer) -> bool:
    small = layer.ksize in WINOGRAD_SIZES and layer.stride == 1 and layer.groups == 1
    return small and not layer.number.on_tensor_cores


def _implicit(layer: Layer, chip: Chip, fitted: Constants) -> Demand:
    product = Product(
        m=layer.batch * layer.rows * layer.columns,
        n=layer.cout // layer.groups,
        k=layer.cin // layer.groups * layer.ksize**2,
        batch=layer.groups,
        number=layer.number,
    )
    tensor = layer.number.on_tensor_cores
    fit = WHOLE_TENSOR if tensor else WHOLE
    reached = fitted.implicit_tensor_ratio if tensor else fitted.implicit_ratio
    demand = demand_of(product, quickest(product, chip, fit), chip)
    return _with_images(demand, layer, chip, 1.0 / reached)


def _fused(layer: Layer, chip: Chip, fitted: Constants) -> Demand:
    product = Product(
        m=layer.batch * ceil(layer.rows / FUSED_TILE) * ceil(layer.columns / FUSED_TILE),
        n=layer.cout,
        k=layer.cin * FUSED_PRODUCTS,
        batch=1,
        number=layer.number,
    )
    demand = demand_of(product, quickest(product, chip, FUSED), chip)
    return _with_images(demand, layer, chip, 1.0 / fitted.fused_ratio)


def _stepped(layer: Layer, chip: Chip, fitted: Constants) -> Demand:
    side = STEPPED_TILE
    product = Product(
        m=layer.batch * ceil(layer.rows / side) * ceil(layer.columns / side),
        n=layer.cout,
        k=layer.cin,
        batch=(side + layer.ksize - 1) ** 2,
        number=layer.number,
    )
    demand = demand_of(product, quickest(product, chip), chip)
    grown = (STEPPED_TILE + layer.ksize - 1) ** 2 / STEPPED_TILE**2
    moved = (layer.input_bytes + layer.output_bytes) * (1.0 + grown)
    moved += layer.weight_bytes * (1.0 + (side + layer.ksize - 1) ** 2 / layer.ksize**2)
    missed = missed_ratio(moved, chip)
    rate = chip.dram_reached_bytes_per_s * fitted.transform_ratio
    transforms_s = moved * (missed / rate + (1.0 - missed) / chip.l2_bytes_per_s)
    return replace(
        demand,
        sm_s=demand.sm_s / fitted.stepped_ratio,
        fixed_s=demand.fixed_s + transforms_s + 3.0 * fitted.kernel_s,
        dram_bytes=demand.dram_bytes + moved * missed,
        l2_bytes=demand.l2_bytes + moved,
    )


def _with_images(demand: Demand, layer: Layer, chip: Chip, slower: float) -> Demand:
    """Memory as the images have it, not as a product's operands would."""
    moved = layer.input_bytes + layer.output_bytes + layer.weight_bytes
    missed = missed_ratio(moved, chip)
    seconds = moved * (missed / chip.dram_reached_bytes_per_s + (1 - missed) / chip.l2_bytes_per_s)
    return replace(
        demand,
        sm_s=demand.sm_s * slower,
        memory_s=seconds,
        dram_bytes=moved * missed,
    )


def _by_channel(layer: Layer, chip: Chip) -> Demand:
    points = float(layer.batch) * layer.rows * layer.columns * layer.cout
    stream = Stream(
        read_bytes=layer.input_bytes + layer.weight_bytes,
        written_bytes=layer.output_bytes,
        operation_count=points * layer.ksize**2,
        element_count=points,
    )
    return stream_demand(stream, chip)
