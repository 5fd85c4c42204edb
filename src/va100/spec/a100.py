"""The four A100 models: one GA100 silicon on two kinds of card with two sizes of memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from va100.spec.model import (
    ChipSpec,
    LinkSpec,
    MeasuredSpec,
    MmaKind,
    MmaTable,
    PcieSpec,
    SmSpec,
    ThroughputTable,
    cited,
)
from va100.spec.sources import assumed, datasheet, derived, measured
from va100.units import GB, GIB, KIB, MB, MHZ, MIB, MS, TERA, US
from va100.work import SHARED_UNIT_BYTES

_WP_CHIP: Final = datasheet("A100-WP", "A100 implementation of GA100")
_WP_SM: Final = datasheet("A100-WP", "A100 SM architecture")
_WP_RATES: Final = datasheet("A100-WP", "table 4, comparison of data-centre GPUs")
_PG_LIMITS: Final = datasheet("CUDA-PG", "technical specifications per compute capability, 8.0")
_PG_SHARED: Final = datasheet("CUDA-PG", "compute capability 8.x, shared memory")
_PG_RATES: Final = datasheet("CUDA-PG-11", "throughput of native arithmetic instructions, 8.0")
_PG_RATES_7: Final = assumed("CUDA-PG-11", "throughput table, 7.x column; 8.0 taken as equal")
_OCCUPANCY: Final = datasheet("CUDA-HEADERS", "cuda_occupancy.h, allocation granularity")
_QUERY: Final = measured("DEVICEQUERY", "A100 dumps")
_SMI: Final = measured("SMI-XML", "A100-SXM4-40GB, driver 570")
_BENCH: Final = measured("GPU-BENCHES", "A100 80 GB text results")
_RECALLED: Final = assumed("RECALLED", "not re-read")

GA100_THROUGHPUT: Final = ThroughputTable(
    fp16_fma_per_cycle=256,
    bf16_fma_per_cycle=128,
    fp32_fma_per_cycle=64,
    fp64_fma_per_cycle=32,
    special_per_cycle=16,
    int32_add_per_cycle=64,
    int32_mul_per_cycle=64,
    int32_shift_per_cycle=64,
    int32_compare_per_cycle=64,
    int32_logic_per_cycle=64,
    bit_count_per_cycle=16,
    shuffle_per_cycle=32,
    vote_per_cycle=64,
    redux_per_cycle=16,
    convert_narrow_per_cycle=64,
    convert_wide_per_cycle=16,
    convert_other_per_cycle=16,
    barrier_per_cycle=16,
    sources=cited(
        (
            _PG_RATES,
            "fp16_fma_per_cycle fp32_fma_per_cycle fp64_fma_per_cycle special_per_cycle"
            " int32_add_per_cycle",
        ),
        (derived("A100-WP", "39 TFLOPS of bfloat16 outside tensor cores"), "bf16_fma_per_cycle"),
        (
            _PG_RATES_7,
            "int32_mul_per_cycle int32_shift_per_cycle int32_compare_per_cycle"
            " int32_logic_per_cycle bit_count_per_cycle shuffle_per_cycle"
            " convert_wide_per_cycle barrier_per_cycle",
        ),
        (
            _RECALLED,
            "vote_per_cycle redux_per_cycle convert_narrow_per_cycle convert_other_per_cycle",
        ),
    ),
)

GA100_MMA: Final = MmaTable(
    fp64_fma_per_cycle=64,
    tf32_fma_per_cycle=512,
    bf16_fma_per_cycle=1024,
    fp16_fma_per_cycle=1024,
    fp8_fma_per_cycle=0,
    int8_fma_per_cycle=2048,
    int4_fma_per_cycle=4096,
    b1_fma_per_cycle=16384,
    sparse_ratio=2.0,
    sparse_kinds=frozenset({MmaKind.TF32, MmaKind.BF16, MmaKind.FP16, MmaKind.INT8, MmaKind.INT4}),
    sources=cited(
        (_WP_SM, "fp16_fma_per_cycle bf16_fma_per_cycle fp64_fma_per_cycle"),
        (
            datasheet("XLA-SPECS", "A100 tensor-core operations per cycle"),
            "tf32_fma_per_cycle int8_fma_per_cycle",
        ),
        (datasheet("CUDA-PG", "feature support, FP8 from 8.9"), "fp8_fma_per_cycle"),
        (derived("A100-WP", "table 4, 1248 TOPS of INT4"), "int4_fma_per_cycle"),
        (derived("KLOCKWOOD", "4992 TOPS of binary"), "b1_fma_per_cycle"),
        (datasheet("A100-DS", "rates with and without sparsity"), "sparse_ratio sparse_kinds"),
    ),
)

GA100_SM: Final = SmSpec(
    scheduler_count=4,
    issue_per_cycle=1,
    alu_lane_count=64,
    fma_lane_count=64,
    fp16_lane_count=128,
    fp64_lane_count=32,
    xu_lane_count=16,
    lsu_lane_count=32,
    tex_lane_count=4,
    tensor_core_count=4,
    throughput=GA100_THROUGHPUT,
    mma=GA100_MMA,
    l1_shared_bytes=192 * KIB,
    shared_bytes=164 * KIB,
    shared_carveout_bytes=tuple(size * KIB for size in (0, 8, 16, 32, 64, 100, 132, 164)),
    shared_reserved_bytes=1 * KIB,
    shared_block_bytes=48 * KIB,
    shared_block_optin_bytes=163 * KIB,
    shared_allocation_bytes=SHARED_UNIT_BYTES,
    shared_bank_count=32,
    shared_bank_bytes_per_cycle=4,
    l1_bytes_per_cycle=128,
    l1_line_bytes=128,
    sector_bytes=32,
    constant_bytes=64 * KIB,
    constant_cache_bytes=8 * KIB,
    local_thread_bytes=512 * KIB,
    register_count=65536,
    register_block_count=65536,
    register_thread_count=255,
    register_allocation_count=256,
    warp_allocation_count=4,
    resident_thread_count=2048,
    resident_warp_count=64,
    resident_block_count=32,
    block_thread_count=1024,
    block_barrier_count=16,
    sources=cited(
        (
            datasheet("CUDA-PG", "compute capability 8.x, architecture"),
            "scheduler_count issue_per_cycle alu_lane_count fma_lane_count fp64_lane_count"
            " xu_lane_count tensor_core_count",
        ),
        (derived("CUDA-PG-11", "256 half results a cycle, two a thread"), "fp16_lane_count"),
        (derived("GPU-BENCHES", "128 bytes a cycle, four a thread"), "lsu_lane_count"),
        (_RECALLED, "tex_lane_count block_barrier_count sector_bytes"),
        (
            _PG_SHARED,
            "l1_shared_bytes shared_bytes shared_carveout_bytes shared_reserved_bytes"
            " shared_block_bytes shared_block_optin_bytes",
        ),
        (
            _OCCUPANCY,
            "shared_allocation_bytes register_allocation_count warp_allocation_count",
        ),
        (
            _PG_LIMITS,
            "shared_bank_count shared_bank_bytes_per_cycle constant_bytes constant_cache_bytes"
            " local_thread_bytes register_count register_block_count register_thread_count"
            " resident_thread_count resident_warp_count resident_block_count block_thread_count",
        ),
        (_BENCH, "l1_bytes_per_cycle"),
        (_WP_SM, "l1_line_bytes"),
    ),
)

_NVLINK_SOURCES: Final = cited(
    (datasheet("A100-WP", "third-generation NVLink"), "nvlink_generation link_count"),
    (datasheet("A100-WP", "four pairs of 50 Gbit/s a direction"), "link_bytes_per_s"),
    (datasheet("A100-DS", "interconnect row"), "reach"),
)
SXM_NVLINK: Final = LinkSpec(
    nvlink_generation=3,
    link_count=12,
    link_bytes_per_s=25.0 * GB,
    reach="nvswitch or direct",
    sources=_NVLINK_SOURCES,
)
PCIE_NVLINK: Final = LinkSpec(
    nvlink_generation=3,
    link_count=12,
    link_bytes_per_s=25.0 * GB,
    reach="bridge",
    sources=_NVLINK_SOURCES,
)
PCIE_4_X16: Final = PcieSpec(
    pcie_generation=4,
    lane_count=16,
    lane_bytes_per_s=2.0 * GB,
    encoding_ratio=128 / 130,
    sources=cited(
        (datasheet("A100-WP", "PCIe Gen 4 with SR-IOV"), "pcie_generation lane_count"),
        (derived("A100-WP", "31.5 GB/s a direction"), "lane_bytes_per_s encoding_ratio"),
    ),
)

_L2_CURVE_FOOTPRINT: Final = tuple(size * MB for size in (25.0, 28.0, 30.7, 36.9, 40.4, 80.0))
_L2_CURVE_RATE: Final = tuple(rate * TERA for rate in (5.4, 5.17, 4.0, 3.0, 2.46))
"""Down to the edge of L2; beyond it comes the model's own DRAM rate."""


def _measured(*, read: float, write: float, scale: float, idle_w: float) -> MeasuredSpec:
    """Measurements; only DRAM rates depend on the model, the rest is GA100's."""
    return MeasuredSpec(
        l1_latency_cycles=36.0,
        constant_l1_latency_cycles=75.0,
        constant_l2_latency_cycles=121.0,
        constant_l1_bytes=2112,
        shared_latency_cycles=23.0,
        l2_near_latency_cycles=211.0,
        l2_far_latency_cycles=316.0,
        dram_latency_cycles=570.0,
        alu_latency_cycles=4.0,
        fma_latency_cycles=4.0,
        fp64_latency_cycles=8.0,
        xu_latency_cycles=18.0,
        l1_bytes_per_s=19.1 * TERA,
        l2_bytes_per_s=5.4 * TERA,
        l2_curve_footprint_bytes=_L2_CURVE_FOOTPRINT,
        l2_curve_bytes_per_s=(*_L2_CURVE_RATE, read),
        dram_read_bytes_per_s=read,
        dram_write_bytes_per_s=write,
        dram_scale_bytes_per_s=scale,
        fp32_flop_per_s=19.1 * TERA,
        bf16_gemm_flop_per_s=299.0 * TERA,
        int8_gemm_flop_per_s=585.7 * TERA,
        stream_launch_s=2.61 * US,
        graph_node_s=1.31 * US,
        grid_sync_s=1.30 * US,
        pcie_copy_bytes_per_s=26.2 * GB,
        idle_w=idle_w,
        power_sensor_period_s=100 * MS,
        power_sensor_window_s=25 * MS,
        sources=_MEASURED_SOURCES,
    )


_MEASURED_SOURCES: Final = cited(
    (
        measured("GPU-BENCHES", "gpu-latency, A100 80 GB"),
        "l1_latency_cycles l2_near_latency_cycles dram_latency_cycles",
    ),
    (
        measured("MT4G", "A100-PCIE-40GB, upper of two plateaus; gpu-latency goes on to 424"),
        "l2_far_latency_cycles",
    ),
    (
        measured("MT4G", "A100-PCIE-40GB, constant L1 and L1.5"),
        "constant_l1_latency_cycles constant_l2_latency_cycles constant_l1_bytes",
    ),
    (
        assumed("AMPERE-MICRO", "instruction and memory latencies, not re-read"),
        "shared_latency_cycles alu_latency_cycles fma_latency_cycles fp64_latency_cycles"
        " xu_latency_cycles",
    ),
    (
        measured("GPU-BENCHES", "gpu-cache and gpu-l2-cache, A100 80 GB"),
        "l1_bytes_per_s l2_bytes_per_s l2_curve_footprint_bytes l2_curve_bytes_per_s",
    ),
    (
        measured("GPU-BENCHES", "gpu-stream, the model's memory size"),
        "dram_read_bytes_per_s dram_write_bytes_per_s dram_scale_bytes_per_s",
    ),
    (measured("GPU-BENCHES", "gpu-roofline, A100"), "fp32_flop_per_s"),
    (measured("AICONFIG", "GEMM sweep, best point"), "bf16_gemm_flop_per_s int8_gemm_flop_per_s"),
    (
        derived("GPU-BENCHES", "gpu-small-kernels, least squares over stream, graph, grid sync"),
        "stream_launch_s graph_node_s grid_sync_s",
    ),
    (measured("SUPERBENCH", "copies of pinned memory, one way"), "pcie_copy_bytes_per_s"),
    (measured("SMI-XML", "A100-SXM4-40GB idle, 49.7 W; other models taken as equal"), "idle_w"),
    (
        measured("GPU-POWER", "GA100 rows"),
        "power_sensor_period_s power_sensor_window_s",
    ),
)

MEASURED_40GB: Final = _measured(read=1490 * GB, write=1503 * GB, scale=1381 * GB, idle_w=49.7)
MEASURED_PCIE_40GB: Final = replace(
    MEASURED_40GB,
    idle_w=35.0,
    sources=_MEASURED_SOURCES.revised(
        (
            derived("KTUNER-ENERGY", "burn of multiply-adds at ten clocks, continued to no work"),
            "idle_w",
        ),
    ),
)
MEASURED_80GB: Final = _measured(read=1890 * GB, write=1890 * GB, scale=1732 * GB, idle_w=49.7)
_SLOWER_CLOCK: Final = 1512 / 1593
"""Of the PCIe card's memory to the SXM module's; on one with 80 GB nobody published a stream."""
MEASURED_PCIE_80GB: Final = replace(
    MEASURED_80GB,
    dram_read_bytes_per_s=MEASURED_80GB.dram_read_bytes_per_s * _SLOWER_CLOCK,
    dram_write_bytes_per_s=MEASURED_80GB.dram_write_bytes_per_s * _SLOWER_CLOCK,
    dram_scale_bytes_per_s=MEASURED_80GB.dram_scale_bytes_per_s * _SLOWER_CLOCK,
    l2_curve_bytes_per_s=(
        *_L2_CURVE_RATE,
        MEASURED_80GB.dram_read_bytes_per_s * _SLOWER_CLOCK,
    ),
    sources=_MEASURED_SOURCES.revised(
        (
            derived("GPU-BENCHES", "gpu-stream, SXM module of 80 GB, by the memory clocks"),
            "dram_read_bytes_per_s dram_write_bytes_per_s dram_scale_bytes_per_s",
        ),
    ),
)

_OGKM_IDS: Final = datasheet("OGKM", "README, table of GPUs")
_THIRD_PARTY_CLOCK: Final = assumed("GPU-DB", "base clock")
_LIMIT_40: Final = measured("SMI-XML", "power limits, A100-SXM4-40GB")
_THERMAL_EQUAL: Final = assumed("SMI-XML", "read on A100-SXM4-40GB; taken as equal here")

A100_SXM4_40GB: Final = ChipSpec(
    name="A100-SXM4-40GB",
    product_name="NVIDIA A100-SXM4-40GB",
    architecture="Ampere",
    chip="GA100",
    compute_capability=(8, 0),
    form_factor="SXM4",
    announced="2020-05",
    gpc_count=7,
    tpc_count=54,
    sm_count=108,
    sm=GA100_SM,
    transistor_count=54_200_000_000,
    base_clock_hz=1095 * MHZ,
    boost_clock_hz=1410 * MHZ,
    application_clock_hz=1095 * MHZ,
    idle_clock_hz=210 * MHZ,
    clock_step_hz=15 * MHZ,
    memory_kind="HBM2",
    memory_bytes=40 * GIB,
    memory_stack_count=5,
    memory_bus_bits=5120,
    memory_clock_hz=1215 * MHZ,
    memory_reserved_bytes=518 * MIB,
    memory_cuda_bytes=42_405_855_232,
    bar1_bytes=65536 * MIB,
    l2_bytes=40 * MIB,
    l2_partition_count=2,
    l2_slice_count=80,
    l2_line_bytes=128,
    l2_read_bytes_per_cycle=5120,
    l2_persisting_bytes=30 * MIB,
    nvlink=SXM_NVLINK,
    pcie=PCIE_4_X16,
    power_default_w=400,
    power_min_w=100,
    power_max_w=400,
    shutdown_c=92,
    slowdown_c=89,
    operating_c=85,
    memory_operating_c=95,
    copy_engine_count=3,
    nvdec_count=5,
    nvjpeg_count=1,
    ofa_count=1,
    nvenc_count=0,
    mig_instance_count=7,
    pci_vendor_id=0x10DE,
    pci_device_id=0x20B0,
    pci_subsystem_ids=(0x134F, 0x1450),
    measured=MEASURED_40GB,
    sources=cited(
        (_OGKM_IDS, "name product_name pci_vendor_id pci_device_id pci_subsystem_ids"),
        (
            _WP_CHIP,
            "architecture chip form_factor gpc_count tpc_count sm_count transistor_count"
            " memory_kind memory_bytes memory_stack_count memory_bus_bits l2_bytes"
            " l2_partition_count l2_slice_count l2_line_bytes l2_read_bytes_per_cycle",
        ),
        (datasheet("CUDA-PG", "compute capability 8.0"), "compute_capability"),
        (assumed("GPU-DB", "release date"), "announced"),
        (_THIRD_PARTY_CLOCK, "base_clock_hz"),
        (
            _SMI,
            "boost_clock_hz application_clock_hz idle_clock_hz clock_step_hz memory_clock_hz"
            " memory_reserved_bytes bar1_bytes shutdown_c slowdown_c operating_c"
            " memory_operating_c",
        ),
        (_QUERY, "memory_cuda_bytes copy_engine_count"),
        (assumed("RECALLED", "three quarters of L2; no dump was found"), "l2_persisting_bytes"),
        (_LIMIT_40, "power_default_w power_min_w power_max_w"),
        (datasheet("A100-WP", "video engines"), "nvdec_count nvjpeg_count ofa_count nvenc_count"),
        (datasheet("A100-DS", "Multi-Instance GPU row"), "mig_instance_count"),
    ),
)

A100_SXM4_80GB: Final = replace(
    A100_SXM4_40GB,
    name="A100-SXM4-80GB",
    product_name="NVIDIA A100-SXM4-80GB",
    announced="2020-11",
    base_clock_hz=1275 * MHZ,
    application_clock_hz=1275 * MHZ,
    memory_kind="HBM2e",
    memory_bytes=80 * GIB,
    memory_clock_hz=1593 * MHZ,
    memory_cuda_bytes=85_100_068_864,
    bar1_bytes=131072 * MIB,
    power_max_w=400,
    pci_device_id=0x20B2,
    pci_subsystem_ids=(0x1463, 0x147F, 0x1622, 0x1623),
    measured=MEASURED_80GB,
    sources=A100_SXM4_40GB.sources.revised(
        (_RECALLED, "application_clock_hz bar1_bytes"),
        (datasheet("A100-DS", "memory and power rows"), "memory_kind memory_bytes power_default_w"),
        (_QUERY, "memory_clock_hz boost_clock_hz"),
        (
            assumed("SMI-XML", "read on A100-SXM4-40GB; taken as equal here"),
            "memory_reserved_bytes idle_clock_hz clock_step_hz power_min_w",
        ),
        (datasheet("A100-DS", "400 W; custom thermal variants go to 500 W"), "power_max_w"),
        (_THERMAL_EQUAL, "shutdown_c slowdown_c operating_c memory_operating_c"),
    ),
)

A100_PCIE_40GB: Final = replace(
    A100_SXM4_40GB,
    name="A100-PCIE-40GB",
    product_name="NVIDIA A100-PCIE-40GB",
    form_factor="PCIe",
    announced="2020-06",
    base_clock_hz=765 * MHZ,
    application_clock_hz=765 * MHZ,
    memory_cuda_bytes=42_331_013_120,
    nvlink=PCIE_NVLINK,
    measured=MEASURED_PCIE_40GB,
    power_default_w=250,
    power_min_w=150,
    power_max_w=250,
    pci_device_id=0x20F1,
    pci_subsystem_ids=(0x145F,),
    sources=A100_SXM4_40GB.sources.revised(
        (_RECALLED, "application_clock_hz bar1_bytes power_min_w announced"),
        (measured("MLPERF", "system description of a 250 W card"), "power_default_w power_max_w"),
        (_QUERY, "memory_clock_hz boost_clock_hz"),
        (
            assumed("SMI-XML", "read on A100-SXM4-40GB; taken as equal here"),
            "memory_reserved_bytes idle_clock_hz clock_step_hz",
        ),
        (_THERMAL_EQUAL, "shutdown_c slowdown_c operating_c memory_operating_c"),
    ),
)

A100_PCIE_80GB: Final = replace(
    A100_SXM4_80GB,
    name="A100-PCIE-80GB",
    product_name="NVIDIA A100 80GB PCIe",
    form_factor="PCIe",
    announced="2021-06",
    base_clock_hz=1065 * MHZ,
    application_clock_hz=1065 * MHZ,
    memory_clock_hz=1512 * MHZ,
    memory_cuda_bytes=84_974_239_744,
    measured=MEASURED_PCIE_80GB,
    nvlink=PCIE_NVLINK,
    power_default_w=300,
    power_min_w=150,
    power_max_w=300,
    pci_device_id=0x20B5,
    pci_subsystem_ids=(0x1533, 0x1642),
    sources=A100_SXM4_80GB.sources.revised(
        (_RECALLED, "base_clock_hz power_min_w announced"),
        (datasheet("A100-DS", "maximum thermal design power row"), "power_max_w"),
    ),
)

MODELS: Final = (A100_PCIE_40GB, A100_PCIE_80GB, A100_SXM4_40GB, A100_SXM4_80GB)
"""The four A100s, in the order tables show them."""
