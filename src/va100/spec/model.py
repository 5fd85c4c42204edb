"""The shapes of facts: sourced, frozen, in base units that the field names end in.

The values live in the sibling modules, headline rates in :mod:`va100.spec.rates`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum

from va100.work import Pipe


class Confidence(Enum):
    """How far a number may be trusted, best first."""

    DATASHEET = "datasheet"
    """Printed by the vendor: datasheet, white paper, programming guide, header or driver source."""
    MEASURED = "measured"
    """Read from a real machine."""
    DERIVED = "derived"
    """Arithmetic on numbers of the two kinds above."""
    ASSUMED = "assumed"
    """From memory or a third party alone; to be replaced when a better source is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a number was read; ``key`` resolves in ``docs/sources.md``."""

    key: str
    where: str
    confidence: Confidence


class Sources(Mapping[str, Source]):
    """Field name to source; immutable, so that specs hash and pickle."""

    __slots__ = ("_by_field",)

    def __init__(self, by_field: Mapping[str, Source]) -> None:
        self._by_field = dict(by_field)

    def __getitem__(self, name: str) -> Source:
        """Source of one field."""
        return self._by_field[name]

    def __iter__(self) -> Iterator[str]:
        """Field names, in the order they were cited."""
        return iter(self._by_field)

    def __len__(self) -> int:
        """Count of cited fields."""
        return len(self._by_field)

    def revised(self, *groups: tuple[Source, str]) -> Sources:
        """Copy with other sources for some of the fields, grouped as in :func:`cited`."""
        changes = cited(*groups)
        unknown = set(changes) - set(self)
        if unknown:
            raise ValueError(f"no such fields: {sorted(unknown)}")
        return Sources({**self._by_field, **changes})


def cited(*groups: tuple[Source, str]) -> Sources:
    """Gather sources: each group is a source and the names, space-separated, it vouches for.

    Raises
    ------
    ValueError
        A field is cited twice.
    """
    by_field: dict[str, Source] = {}
    for source, names in groups:
        for name in names.split():
            if name in by_field:
                raise ValueError(f"field {name} is cited twice")
            by_field[name] = source
    return Sources(by_field)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Base of all facts: every plain field has a source, nested specs carry their own."""

    sources: Sources = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse a fact without a source, and a source without a fact."""
        plain, cited_names = set(plain_fields(self)), set(self.sources)
        if plain != cited_names:
            missing, surplus = sorted(plain - cited_names), sorted(cited_names - plain)
            raise ValueError(
                f"{type(self).__name__}: without source {missing}, source without field {surplus}"
            )


def plain_fields(spec: Spec) -> list[str]:
    """Names of the fields that hold values rather than further specs."""
    return [
        entry.name
        for entry in fields(spec)
        if entry.name != "sources" and not _is_nested(getattr(spec, entry.name))
    ]


def nested_specs(spec: Spec) -> list[tuple[str, Spec]]:
    """Specs held by this one, one level down, with the field each is in."""
    found: list[tuple[str, Spec]] = []
    for entry in fields(spec):
        value = getattr(spec, entry.name)
        if isinstance(value, Spec):
            found.append((entry.name, value))
        elif _is_nested(value):
            found += [(entry.name, part) for part in value]
    return found


def _is_nested(value: object) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(isinstance(part, Spec) for part in value)
    return isinstance(value, Spec)


class Operation(Enum):
    """Classes of instructions by their throughput; the value is the field's stem."""

    FP16_FMA = "fp16_fma"
    BF16_FMA = "bf16_fma"
    FP32_FMA = "fp32_fma"
    FP64_FMA = "fp64_fma"
    SPECIAL = "special"
    INT32_ADD = "int32_add"
    INT32_MUL = "int32_mul"
    INT32_SHIFT = "int32_shift"
    INT32_COMPARE = "int32_compare"
    INT32_LOGIC = "int32_logic"
    BIT_COUNT = "bit_count"
    SHUFFLE = "shuffle"
    VOTE = "vote"
    REDUX = "redux"
    CONVERT_NARROW = "convert_narrow"
    CONVERT_WIDE = "convert_wide"
    CONVERT_OTHER = "convert_other"
    BARRIER = "barrier"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputTable(Spec):
    """Results per cycle and SM, one result a thread (two for packed half types)."""

    fp16_fma_per_cycle: int
    bf16_fma_per_cycle: int
    fp32_fma_per_cycle: int
    fp64_fma_per_cycle: int
    special_per_cycle: int
    """Reciprocal, reciprocal square root, base-2 logarithm and exponential, sine, cosine."""
    int32_add_per_cycle: int
    int32_mul_per_cycle: int
    int32_shift_per_cycle: int
    int32_compare_per_cycle: int
    int32_logic_per_cycle: int
    bit_count_per_cycle: int
    """Population count, leading zeros, bit reversal."""
    shuffle_per_cycle: int
    vote_per_cycle: int
    redux_per_cycle: int
    convert_narrow_per_cycle: int
    """From 8- and 16-bit integers to 32-bit ones."""
    convert_wide_per_cycle: int
    """From and to 64-bit types."""
    convert_other_per_cycle: int
    barrier_per_cycle: int

    def per_cycle(self, operation: Operation) -> int:
        """Results per cycle and SM of one class."""
        rate: int = getattr(self, f"{operation.value}_per_cycle")
        return rate


class MmaKind(Enum):
    """Tensor-core operand formats; the value is the field's stem."""

    FP64 = "fp64"
    TF32 = "tf32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    INT8 = "int8"
    INT4 = "int4"
    B1 = "b1"


@dataclass(frozen=True, slots=True, kw_only=True)
class MmaTable(Spec):
    """Dense multiply-adds per cycle and SM, and the gain of 2:4 sparsity; 0 where absent."""

    fp64_fma_per_cycle: int
    tf32_fma_per_cycle: int
    bf16_fma_per_cycle: int
    fp16_fma_per_cycle: int
    fp8_fma_per_cycle: int
    int8_fma_per_cycle: int
    int4_fma_per_cycle: int
    b1_fma_per_cycle: int
    sparse_ratio: float
    """Speed of a 2:4 sparse product over the dense one of the same shape."""
    sparse_kinds: frozenset[MmaKind]

    def fma_per_cycle(self, kind: MmaKind, *, sparse: bool = False) -> float:
        """Multiply-adds per cycle and SM, counted as if dense; 0 when the kind is absent."""
        rate: int = getattr(self, f"{kind.value}_fma_per_cycle")
        if not sparse:
            return float(rate)
        return rate * self.sparse_ratio if kind in self.sparse_kinds else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SmSpec(Spec):
    """One streaming multiprocessor: issue, pipes, on-chip memory, and the limits of occupancy."""

    scheduler_count: int
    """Sub-partitions, each with one warp scheduler."""
    issue_per_cycle: int
    """Warp instructions one scheduler issues in a cycle."""
    alu_lane_count: int
    fma_lane_count: int
    fp16_lane_count: int
    """Threads a cycle of a packed half instruction, each of which gives two results."""
    fp64_lane_count: int
    xu_lane_count: int
    lsu_lane_count: int
    tex_lane_count: int
    tensor_core_count: int
    throughput: ThroughputTable
    mma: MmaTable

    l1_shared_bytes: int
    """L1 cache and shared memory together."""
    shared_bytes: int
    shared_carveout_bytes: tuple[int, ...]
    shared_reserved_bytes: int
    """Taken by the system from shared memory for each resident CTA."""
    shared_block_bytes: int
    """Limit of a CTA that has not opted in to more."""
    shared_block_optin_bytes: int
    shared_allocation_bytes: int
    shared_bank_count: int
    shared_bank_bytes_per_cycle: int
    l1_bytes_per_cycle: int
    l1_line_bytes: int
    sector_bytes: int
    constant_bytes: int
    constant_cache_bytes: int
    local_thread_bytes: int
    """Limit of local memory of one thread."""

    register_count: int
    """32-bit registers."""
    register_block_count: int
    register_thread_count: int
    """Limit of one thread."""
    register_allocation_count: int
    """Registers are given to a warp in multiples of this."""
    warp_allocation_count: int
    """Warps of a CTA are given registers in multiples of this."""
    resident_thread_count: int
    resident_warp_count: int
    resident_block_count: int
    block_thread_count: int
    """Limit of threads in a CTA."""
    block_barrier_count: int

    def lane_count(self, pipe: Pipe) -> int:
        """Threads a pipe takes in a cycle, over the whole SM."""
        lanes = {
            Pipe.ALU: self.alu_lane_count,
            Pipe.FMA: self.fma_lane_count,
            Pipe.FP16: self.fp16_lane_count,
            Pipe.FP64: self.fp64_lane_count,
            Pipe.XU: self.xu_lane_count,
            Pipe.LSU: self.lsu_lane_count,
            Pipe.TEX: self.tex_lane_count,
        }
        if pipe not in lanes:
            raise ValueError(f"pipe {pipe.value} has no lanes: its rate depends on the instruction")
        return lanes[pipe]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSpec(Spec):
    """NVLink ports of a chip."""

    nvlink_generation: int
    link_count: int
    link_bytes_per_s: float
    """One link, one direction."""
    reach: str
    """``nvswitch or direct``: any peer on the board; ``bridge``: the one bridged card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PcieSpec(Spec):
    """The host connection."""

    pcie_generation: int
    lane_count: int
    lane_bytes_per_s: float
    """Raw, one lane, one direction."""
    encoding_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSpec(Spec):
    """What A100s were seen to reach; latencies are pointer chases at the boost clock."""

    l1_latency_cycles: float
    constant_l1_latency_cycles: float
    """Of constant memory at an address that is reckoned."""
    constant_l2_latency_cycles: float
    """Where the level next to the SM does not hold it."""
    constant_l1_bytes: int
    """What that level holds."""
    shared_latency_cycles: float
    l2_near_latency_cycles: float
    """In the L2 partition next to the SM."""
    l2_far_latency_cycles: float
    dram_latency_cycles: float
    """Before address translation misses."""
    alu_latency_cycles: float
    """From issue to a dependent issue."""
    fma_latency_cycles: float
    fp64_latency_cycles: float
    xu_latency_cycles: float
    l1_bytes_per_s: float
    """All SMs together."""
    l2_bytes_per_s: float
    """All SMs reading the same data that fits in one L2 partition."""
    l2_curve_footprint_bytes: tuple[float, ...]
    l2_curve_bytes_per_s: tuple[float, ...]
    """Read rate at each footprint, from inside L2 to out of it."""
    dram_read_bytes_per_s: float
    dram_write_bytes_per_s: float
    dram_scale_bytes_per_s: float
    """One stream read, one written."""
    fp32_flop_per_s: float
    bf16_gemm_flop_per_s: float
    """Best of a large sweep of matrix products."""
    int8_gemm_flop_per_s: float
    stream_launch_s: float
    """Time a tiny kernel adds to a full stream."""
    graph_node_s: float
    """Time a tiny kernel adds to a graph."""
    grid_sync_s: float
    pcie_copy_bytes_per_s: float
    """Pinned host memory, one direction."""
    idle_w: float
    power_sensor_period_s: float
    power_sensor_window_s: float
    """Part of each period that the sensor averages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipSpec(Spec):
    """One GPU model: the silicon and the card around it."""

    name: str
    product_name: str
    """As the driver reports it."""
    architecture: str
    chip: str
    compute_capability: tuple[int, int]
    form_factor: str
    announced: str
    """ISO month."""
    gpc_count: int
    tpc_count: int
    sm_count: int
    sm: SmSpec
    transistor_count: int

    base_clock_hz: int
    boost_clock_hz: int
    application_clock_hz: int
    """Default application clock."""
    idle_clock_hz: int
    clock_step_hz: int

    memory_kind: str
    memory_bytes: int
    memory_stack_count: int
    memory_bus_bits: int
    memory_clock_hz: int
    """Two transfers a cycle."""
    memory_reserved_bytes: int
    """Kept by the driver."""
    memory_cuda_bytes: int
    """What CUDA reports as total global memory."""
    bar1_bytes: int

    l2_bytes: int
    l2_partition_count: int
    l2_slice_count: int
    l2_line_bytes: int
    l2_read_bytes_per_cycle: int
    """All L2 slices together."""
    l2_persisting_bytes: int
    """Most that may be set aside for persisting accesses."""

    nvlink: LinkSpec
    pcie: PcieSpec

    power_default_w: int
    power_min_w: int
    power_max_w: int
    shutdown_c: int
    slowdown_c: int
    operating_c: int
    memory_operating_c: int

    copy_engine_count: int
    nvdec_count: int
    nvjpeg_count: int
    ofa_count: int
    nvenc_count: int
    mig_instance_count: int
    """Most GPU instances; 0 without MIG."""

    pci_vendor_id: int
    pci_device_id: int
    pci_subsystem_ids: tuple[int, ...]
    measured: MeasuredSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineSpec(Spec):
    """A comparison GPU as its vendor prints it, dense rates.

    0 where it has none; ``None`` where no figure was found.
    """

    name: str
    product_name: str
    architecture: str
    compute_capability: tuple[int, int]
    form_factor: str
    sm_count: int
    fp64_flop_per_s: float | None
    fp64_tensor_flop_per_s: float | None
    fp32_flop_per_s: float | None
    tf32_tensor_flop_per_s: float | None
    fp16_tensor_flop_per_s: float | None
    bf16_tensor_flop_per_s: float | None
    fp8_tensor_flop_per_s: float | None
    int8_tensor_flop_per_s: float | None
    sparse_ratio: float
    """2 where the tensor cores take 2:4 sparse operands, else 1."""
    memory_kind: str
    memory_bytes: int
    memory_bytes_per_s: float
    link_count: int
    nvlink_bytes_per_s: float
    """All links, both directions."""
    power_default_w: int
    mig_instance_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSpec(Spec):
    """An HGX baseboard and its NVLink wiring."""

    name: str
    gpu_count: int
    baseboard_count: int
    nvswitch_count: int
    nvswitch_port_count: int
    links_per_gpu_count: int
    links_per_peer_count: int
    """Direct links between two GPUs; 0 where they meet in switches."""
    links_per_switch_count: int
    """Links from one GPU to one switch of its baseboard; 0 without switches."""
    trunks_per_switch_count: int
    """Links from one switch to the other baseboard."""
    link_bytes_per_s: float
    """One link, one direction."""
    fabric_manager: bool
    """CUDA starts only after the fabric manager."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricPartitionSpec(Spec):
    """One legal way to hand part of an HGX board to a virtual machine."""

    gpu_count: int
    nvswitch_count: int
    links_per_gpu_count: int
    links_per_switch_count: int
    sets_per_board_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MigProfileSpec(Spec):
    """One GPU-instance profile."""

    name: str
    profile_id: int
    nvml_id: int
    instance_count: int
    memory_bytes: int
    sm_count: int
    compute_slice_count: int
    memory_slice_count: int
    l2_bytes: int
    copy_engine_count: int
    nvdec_count: int
    nvjpeg_count: int
    ofa_count: int
    nvenc_count: int
    placement_starts: tuple[int, ...]
    """First memory slice of each placement; its size is ``memory_slice_count``."""
    media_extensions: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MigComputeProfileSpec(Spec):
    """One compute-instance profile, and the GPU instances that take it."""

    name: str
    profile_id: int
    nvml_id: int
    compute_slice_count: int
    gpu_instance_slices_count: tuple[int, ...]
    """Compute slices of each GPU instance that offers it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeSpec(Spec):
    """One ``CUdevice_attribute`` and what a chip answers."""

    attribute_id: int
    name: str
    value: int
    """In the attribute's own unit (CUDA uses kHz for clocks)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceSpec(Spec):
    """A price as seen on one day, for the whole instance."""

    price_usd_per_h: float
    market: str
    """``on-demand`` or ``spot``."""
    region: str
    date: str
    """ISO and as precise as known; ``by`` or ``before`` where only a bound is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudInstanceSpec(Spec):
    """An instance type that carries A100s; ``None`` where no figure was found."""

    provider: str
    name: str
    gpu_model: str
    gpu_count: int
    vcpu_count: int | None
    memory_bytes: int | None
    network_bytes_per_s: float | None
    """One direction, all ports."""
    network: str
    pcie_generation: int | None
    numa_count: int | None
    """NUMA nodes with GPUs."""
    gpu_link: str
    """``nvswitch``, ``bridge``, ``none`` or ``unknown``: how GPUs meet besides PCIe."""
    disk_bytes: int | None
    """Local NVMe."""
    prices: tuple[PriceSpec, ...]
