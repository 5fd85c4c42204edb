"""What an A100 answers to ``cuDeviceGetAttribute``.

Attributes that describe the machine the card sits in (bus address, NUMA, MPS) are named in
``NODE_ATTRIBUTES`` and answered elsewhere.
"""

from __future__ import annotations

from typing import Final

from va100.spec.mig import MEMORY_SLICES, SM_PER_SLICE
from va100.spec.model import AttributeSpec, ChipSpec, MigProfileSpec, Source, cited
from va100.spec.sources import assumed, datasheet, derived, measured
from va100.units import KHZ

_QUERY: Final = measured("DEVICEQUERY", "A100 dumps")
_GUIDE: Final = datasheet("CUDA-PG", "technical specifications per compute capability, 8.0")
_FEATURES: Final = datasheet("CUDA-PG", "feature support per compute capability, 8.x")
_RECALLED: Final = assumed("RECALLED", "no full attribute dump of an A100 was found")
_CHIP: Final = derived("DEVICEQUERY", "equal to the chip's own fact")

NODE_ATTRIBUTES: Final = frozenset({33, 34, 50, 85, 131, 133, 134})
"""Bus, slot, domain, board group, NUMA node, MPS, host NUMA node."""

_FIXED: Final[tuple[tuple[Source, tuple[tuple[int, str, int], ...]], ...]] = (
    (
        _QUERY,
        (
            (2, "MAX_BLOCK_DIM_X", 1024),
            (3, "MAX_BLOCK_DIM_Y", 1024),
            (4, "MAX_BLOCK_DIM_Z", 64),
            (5, "MAX_GRID_DIM_X", 2147483647),
            (6, "MAX_GRID_DIM_Y", 65535),
            (7, "MAX_GRID_DIM_Z", 65535),
            (10, "WARP_SIZE", 32),
            (11, "MAX_PITCH", 2147483647),
            (14, "TEXTURE_ALIGNMENT", 512),
            (15, "GPU_OVERLAP", 1),
            (17, "KERNEL_EXEC_TIMEOUT", 0),
            (18, "INTEGRATED", 0),
            (19, "CAN_MAP_HOST_MEMORY", 1),
            (20, "COMPUTE_MODE", 0),
            (21, "MAXIMUM_TEXTURE1D_WIDTH", 131072),
            (22, "MAXIMUM_TEXTURE2D_WIDTH", 131072),
            (23, "MAXIMUM_TEXTURE2D_HEIGHT", 65536),
            (24, "MAXIMUM_TEXTURE3D_WIDTH", 16384),
            (25, "MAXIMUM_TEXTURE3D_HEIGHT", 16384),
            (26, "MAXIMUM_TEXTURE3D_DEPTH", 16384),
            (27, "MAXIMUM_TEXTURE2D_LAYERED_WIDTH", 32768),
            (28, "MAXIMUM_TEXTURE2D_LAYERED_HEIGHT", 32768),
            (29, "MAXIMUM_TEXTURE2D_LAYERED_LAYERS", 2048),
            (31, "CONCURRENT_KERNELS", 1),
            (32, "ECC_ENABLED", 1),
            (35, "TCC_DRIVER", 0),
            (41, "UNIFIED_ADDRESSING", 1),
            (42, "MAXIMUM_TEXTURE1D_LAYERED_WIDTH", 32768),
            (43, "MAXIMUM_TEXTURE1D_LAYERED_LAYERS", 2048),
            (83, "MANAGED_MEMORY", 1),
            (90, "COMPUTE_PREEMPTION_SUPPORTED", 1),
            (95, "COOPERATIVE_LAUNCH", 1),
            (96, "COOPERATIVE_MULTI_DEVICE_LAUNCH", 1),
        ),
    ),
    (
        _GUIDE,
        (
            (44, "CAN_TEX2D_GATHER", 1),
            (45, "MAXIMUM_TEXTURE2D_GATHER_WIDTH", 32768),
            (46, "MAXIMUM_TEXTURE2D_GATHER_HEIGHT", 32768),
            (52, "MAXIMUM_TEXTURECUBEMAP_WIDTH", 32768),
            (53, "MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH", 32768),
            (54, "MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS", 2046),
            (55, "MAXIMUM_SURFACE1D_WIDTH", 32768),
            (56, "MAXIMUM_SURFACE2D_WIDTH", 131072),
            (57, "MAXIMUM_SURFACE2D_HEIGHT", 65536),
            (58, "MAXIMUM_SURFACE3D_WIDTH", 16384),
            (59, "MAXIMUM_SURFACE3D_HEIGHT", 16384),
            (60, "MAXIMUM_SURFACE3D_DEPTH", 16384),
            (61, "MAXIMUM_SURFACE1D_LAYERED_WIDTH", 32768),
            (62, "MAXIMUM_SURFACE1D_LAYERED_LAYERS", 2048),
            (63, "MAXIMUM_SURFACE2D_LAYERED_WIDTH", 32768),
            (64, "MAXIMUM_SURFACE2D_LAYERED_HEIGHT", 32768),
            (65, "MAXIMUM_SURFACE2D_LAYERED_LAYERS", 2048),
            (66, "MAXIMUM_SURFACECUBEMAP_WIDTH", 32768),
            (67, "MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH", 32768),
            (68, "MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS", 2046),
            (69, "MAXIMUM_TEXTURE1D_LINEAR_WIDTH", 268435456),
            (70, "MAXIMUM_TEXTURE2D_LINEAR_WIDTH", 131072),
            (71, "MAXIMUM_TEXTURE2D_LINEAR_HEIGHT", 65000),
        ),
    ),
    (
        _FEATURES,
        (
            (120, "CLUSTER_LAUNCH", 0),
            (127, "TENSOR_MAP_ACCESS_SUPPORTED", 0),
            (128, "HANDLE_TYPE_FABRIC_SUPPORTED", 0),
            (132, "MULTICAST_SUPPORTED", 0),
        ),
    ),
    (measured("SMI-XML", "A100-SXM4-40GB, multi-GPU board: no"), ((84, "MULTI_GPU_BOARD", 0),)),
    (
        _RECALLED,
        (
            (30, "SURFACE_ALIGNMENT", 512),
            (47, "MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE", 8192),
            (48, "MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE", 8192),
            (49, "MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE", 32768),
            (51, "TEXTURE_PITCH_ALIGNMENT", 32),
            (72, "MAXIMUM_TEXTURE2D_LINEAR_PITCH", 2097120),
            (73, "MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH", 32768),
            (74, "MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT", 32768),
            (77, "MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH", 32768),
            (78, "STREAM_PRIORITIES_SUPPORTED", 1),
            (79, "GLOBAL_L1_CACHE_SUPPORTED", 1),
            (80, "LOCAL_L1_CACHE_SUPPORTED", 1),
            (86, "HOST_NATIVE_ATOMIC_SUPPORTED", 0),
            (88, "PAGEABLE_MEMORY_ACCESS", 0),
            (89, "CONCURRENT_MANAGED_ACCESS", 1),
            (91, "CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM", 1),
            (92, "CAN_USE_STREAM_MEM_OPS_V1", 0),
            (93, "CAN_USE_64_BIT_STREAM_MEM_OPS_V1", 0),
            (94, "CAN_USE_STREAM_WAIT_VALUE_NOR_V1", 0),
            (98, "CAN_FLUSH_REMOTE_WRITES", 0),
            (99, "HOST_REGISTER_SUPPORTED", 1),
            (100, "PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES", 0),
            (101, "DIRECT_MANAGED_MEM_ACCESS_FROM_HOST", 0),
            (102, "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED", 1),
            (103, "HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED", 1),
            (104, "HANDLE_TYPE_WIN32_HANDLE_SUPPORTED", 0),
            (105, "HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED", 0),
            (107, "GENERIC_COMPRESSION_SUPPORTED", 1),
            (109, "MAX_ACCESS_POLICY_WINDOW_SIZE", 134213632),
            (110, "GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED", 1),
            (112, "SPARSE_CUDA_ARRAY_SUPPORTED", 1),
            (113, "READ_ONLY_HOST_REGISTER_SUPPORTED", 0),
            (114, "TIMELINE_SEMAPHORE_INTEROP_SUPPORTED", 1),
            (115, "MEMORY_POOLS_SUPPORTED", 1),
            (116, "GPU_DIRECT_RDMA_SUPPORTED", 1),
            (117, "GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS", 1),
            (118, "GPU_DIRECT_RDMA_WRITES_ORDERING", 100),
            (119, "MEMPOOL_SUPPORTED_HANDLE_TYPES", 1),
            (121, "DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED", 1),
            (122, "CAN_USE_64_BIT_STREAM_MEM_OPS", 1),
            (123, "CAN_USE_STREAM_WAIT_VALUE_NOR", 1),
            (124, "DMA_BUF_SUPPORTED", 1),
            (125, "IPC_EVENT_SUPPORTED", 1),
            (126, "MEM_SYNC_DOMAIN_COUNT", 1),
            (129, "UNIFIED_FUNCTION_POINTERS", 0),
            (130, "NUMA_CONFIG", 0),
            (135, "D3D12_CIG_SUPPORTED", 0),
            (136, "MEM_DECOMPRESS_ALGORITHM_MASK", 0),
            (137, "MEM_DECOMPRESS_MAXIMUM_LENGTH", 0),
            (138, "VULKAN_CIG_SUPPORTED", 0),
            (141, "HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED", 1),
            (142, "HOST_NUMA_MEMORY_POOLS_SUPPORTED", 1),
            (143, "HOST_NUMA_MULTINODE_IPC_SUPPORTED", 0),
            (144, "HOST_MEMORY_POOLS_SUPPORTED", 1),
            (145, "HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED", 1),
        ),
    ),
)


def attributes(chip: ChipSpec) -> tuple[AttributeSpec, ...]:
    """Every attribute a chip answers by itself, in order of number."""
    rows = [_attribute(row, source) for source, group in _FIXED for row in group] + [
        _attribute(row, _CHIP) for row in (*_sm_rows(chip), *_chip_rows(chip))
    ]
    return tuple(sorted(rows, key=lambda row: row.attribute_id))


def attribute_values(chip: ChipSpec, mig: MigProfileSpec | None = None) -> dict[int, int]:
    """Attribute number to value, of a whole chip or of a MIG instance as large as its profile."""
    values = {row.attribute_id: row.value for row in attributes(chip)}
    if mig is not None:
        values.update(mig_values(chip, mig, mig.compute_slice_count))
    return values


def mig_values(chip: ChipSpec, mig: MigProfileSpec, compute_slices: int) -> dict[int, int]:
    """Attributes that differ from the chip's inside a compute instance.

    Read in a 1g.10gb instance of an A100 80GB PCIe; larger ones are scaled by their slices.
    """
    return {
        16: compute_slices * SM_PER_SLICE,
        37: chip.memory_bus_bits * mig.memory_slice_count // MEMORY_SLICES,
        38: mig.l2_bytes,
        40: min(mig.copy_engine_count, chip.copy_engine_count),
        108: 0,
    }


def _attribute(row: tuple[int, str, int], source: Source) -> AttributeSpec:
    number, name, value = row
    return AttributeSpec(
        attribute_id=number,
        name=f"CU_DEVICE_ATTRIBUTE_{name}",
        value=value,
        sources=cited(
            (datasheet("CUDA-HEADERS", "cuda.h, device attributes"), "attribute_id name"),
            (source, "value"),
        ),
    )


def _sm_rows(chip: ChipSpec) -> tuple[tuple[int, str, int], ...]:
    sm = chip.sm
    return (
        (1, "MAX_THREADS_PER_BLOCK", sm.block_thread_count),
        (8, "MAX_SHARED_MEMORY_PER_BLOCK", sm.shared_block_bytes),
        (9, "TOTAL_CONSTANT_MEMORY", sm.constant_bytes),
        (12, "MAX_REGISTERS_PER_BLOCK", sm.register_block_count),
        (39, "MAX_THREADS_PER_MULTIPROCESSOR", sm.resident_thread_count),
        (81, "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", sm.shared_bytes),
        (82, "MAX_REGISTERS_PER_MULTIPROCESSOR", sm.register_count),
        (87, "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO", sm.fma_lane_count // sm.fp64_lane_count),
        (97, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", sm.shared_block_optin_bytes),
        (106, "MAX_BLOCKS_PER_MULTIPROCESSOR", sm.resident_block_count),
        (111, "RESERVED_SHARED_MEMORY_PER_BLOCK", sm.shared_reserved_bytes),
    )


def _chip_rows(chip: ChipSpec) -> tuple[tuple[int, str, int], ...]:
    vendor = chip.pci_vendor_id
    return (
        (13, "CLOCK_RATE", chip.boost_clock_hz // KHZ),
        (16, "MULTIPROCESSOR_COUNT", chip.sm_count),
        (36, "MEMORY_CLOCK_RATE", chip.memory_clock_hz // KHZ),
        (37, "GLOBAL_MEMORY_BUS_WIDTH", chip.memory_bus_bits),
        (38, "L2_CACHE_SIZE", chip.l2_bytes),
        (40, "ASYNC_ENGINE_COUNT", chip.copy_engine_count),
        (75, "COMPUTE_CAPABILITY_MAJOR", chip.compute_capability[0]),
        (76, "COMPUTE_CAPABILITY_MINOR", chip.compute_capability[1]),
        (108, "MAX_PERSISTING_L2_CACHE_SIZE", chip.l2_persisting_bytes),
        (139, "GPU_PCI_DEVICE_ID", chip.pci_device_id << 16 | vendor),
        (140, "GPU_PCI_SUBSYSTEM_ID", chip.pci_subsystem_ids[0] << 16 | vendor),
    )
