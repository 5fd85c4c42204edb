"""Tables of the databases that NVIDIA's system profiler exports: names, columns, enumerations.

All of them are made, since queries name them whether they hold anything or not.  What goes into
them is in :mod:`va100.profile.nsys_sqlite`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_WORK: Final = (
    "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
    "contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, "
    "correlationId INTEGER, globalPid INTEGER"
)
_CALL: Final = (
    "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, "
    "correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL"
)
_ENUM: Final = "id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT"

TABLES: Final[Mapping[str, str]] = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        f"{_WORK}, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, "
        "mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER, "
        "registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, "
        "gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, "
        "blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, "
        "dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, "
        "localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, "
        "sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        f"{_WORK}, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, "
        "srcKind INTEGER, dstKind INTEGER, srcDeviceId INTEGER, srcContextId INTEGER, "
        "dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER, "
        "graphNodeId INTEGER, virtualAddress INTEGER, copyCount INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        f"{_WORK}, value INTEGER, bytes INTEGER NOT NULL, graphNodeId INTEGER, "
        "memKind INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
        f"{_WORK}, syncType INTEGER NOT NULL, eventId INTEGER NOT NULL, eventSyncId INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": f"{_CALL}, callchainId INTEGER",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (
        f"{_WORK}, graphId INTEGER NOT NULL, graphExecId INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": (
        "deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, "
        "streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, "
        "eventId INTEGER NOT NULL, eventSyncId INTEGER"
    ),
    "CUDA_GPU_MEMORY_USAGE_EVENTS": (
        "start INTEGER NOT NULL, globalPid INTEGER, deviceId INTEGER NOT NULL, "
        "contextId INTEGER NOT NULL, address INTEGER NOT NULL, pc INTEGER NOT NULL, "
        "bytes INTEGER NOT NULL, memKind INTEGER NOT NULL, memoryOperationType INTEGER NOT NULL, "
        "name TEXT, correlationId INTEGER, streamId INTEGER, localMemoryPoolAddress INTEGER"
    ),
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": (
        "start INTEGER NOT NULL, globalPid INTEGER NOT NULL, address INTEGER NOT NULL, "
        "CpuInstructionPointer INTEGER, originalFaultPc INTEGER, CpuInstructionPointerModule TEXT"
    ),
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, globalPid INTEGER NOT NULL, "
        "deviceId INTEGER NOT NULL, address INTEGER NOT NULL, numberOfPageFaults INTEGER NOT NULL, "
        "faultAccessType INTEGER NOT NULL"
    ),
    "CUDA_CALLCHAINS": (
        "id INTEGER NOT NULL, symbol INTEGER, module INTEGER, unresolved INTEGER, "
        "originalIP INTEGER, stackDepth INTEGER NOT NULL"
    ),
    "NVTX_EVENTS": (
        "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, "
        "category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, "
        "textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, "
        "doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, "
        "jsonTextId INTEGER, jsonText TEXT, binaryData TEXT"
    ),
    "OSRT_API": f"{_CALL}, nestingLevel INTEGER, callchainId INTEGER NOT NULL",
    "CUBLAS_EVENTS": f"{_CALL}",
    "CUDNN_EVENTS": f"{_CALL}",
    "GPU_METRICS": (
        "rawTimestamp INTEGER, timestamp INTEGER, typeId INTEGER NOT NULL, "
        "metricId INTEGER NOT NULL, value INTEGER NOT NULL"
    ),
    "TARGET_INFO_GPU_METRICS": (
        "typeId INTEGER NOT NULL, sourceId INTEGER NOT NULL, typeName TEXT NOT NULL, "
        "metricId INTEGER NOT NULL, metricName TEXT NOT NULL"
    ),
    "TARGET_INFO_GPU": (
        "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, "
        "isDiscrete INTEGER, l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, "
        "clockRate INTEGER, smCount INTEGER, pwGpuId INTEGER, uuid TEXT, luid INTEGER, "
        "chipName TEXT, cuDevice INTEGER, ctxswDevPath TEXT, ctrlDevPath TEXT, revision INTEGER, "
        "nodeMask INTEGER, constantMemory INTEGER, maxIPC INTEGER, maxRegistersPerBlock INTEGER, "
        "maxShmemPerBlock INTEGER, maxShmemPerBlockOptin INTEGER, maxShmemPerSm INTEGER, "
        "maxRegistersPerSm INTEGER, threadsPerWarp INTEGER, asyncEngines INTEGER, "
        "maxWarpsPerSm INTEGER, maxBlocksPerSm INTEGER, maxThreadsPerBlock INTEGER, "
        "maxBlockDimX INTEGER, maxBlockDimY INTEGER, maxBlockDimZ INTEGER, maxGridDimX INTEGER, "
        "maxGridDimY INTEGER, maxGridDimZ INTEGER, computeMajor INTEGER, computeMinor INTEGER, "
        "smMajor INTEGER, smMinor INTEGER"
    ),
    "TARGET_INFO_CUDA_DEVICE": (
        "gpuId INTEGER NOT NULL, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, "
        "uuid TEXT, numMultiprocessors INTEGER NOT NULL"
    ),
    "TARGET_INFO_CUDA_CONTEXT_INFO": (
        "nullStreamId INTEGER NOT NULL, hwId INTEGER NOT NULL, vmId INTEGER NOT NULL, "
        "processId INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, "
        "parentContextId INTEGER, isGreenContext INTEGER"
    ),
    "TARGET_INFO_CUDA_STREAM": (
        "streamId INTEGER NOT NULL, hwId INTEGER NOT NULL, vmId INTEGER NOT NULL, "
        "processId INTEGER NOT NULL, contextId INTEGER NOT NULL, priority INTEGER NOT NULL, "
        "flag INTEGER NOT NULL"
    ),
    "TARGET_INFO_SYSTEM_ENV": (
        "globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT NOT NULL, "
        "nameEnum INTEGER NOT NULL, value TEXT NOT NULL"
    ),
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "ANALYSIS_DETAILS": (
        "globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, startTime INTEGER NOT NULL, "
        "stopTime INTEGER NOT NULL"
    ),
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "PROFILER_OVERHEAD": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER, "
        "nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, nestingLevel INTEGER, "
        "callchainId INTEGER NOT NULL"
    ),
    "DIAGNOSTIC_EVENT": (
        "timestamp INTEGER NOT NULL, timestampType INTEGER NOT NULL, source INTEGER NOT NULL, "
        "severity INTEGER NOT NULL, text TEXT NOT NULL, globalPid INTEGER"
    ),
    "META_DATA_CAPTURE": "name TEXT NOT NULL, value TEXT",
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    "ENUM_CUDA_MEMCPY_OPER": _ENUM,
    "ENUM_CUDA_MEM_KIND": _ENUM,
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": _ENUM,
    "ENUM_CUPTI_SYNC_TYPE": _ENUM,
    "ENUM_NSYS_EVENT_CLASS": _ENUM,
}  # fmt: skip
"""Table to its columns."""

UNKNOWN_KIND, PAGEABLE, DEVICE = 7, 0, 2
"""Of memory, by ``ENUM_CUDA_MEM_KIND``."""

ENUMERATIONS: Final[Mapping[str, tuple[tuple[int, str, str], ...]]] = {
    "ENUM_CUDA_MEMCPY_OPER": (
        (0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"),
        (1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"),
        (2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"),
        (8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"),
        (9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host"),
        (10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"),
    ),
    "ENUM_CUDA_MEM_KIND": (
        (PAGEABLE, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"),
        (1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"),
        (DEVICE, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"),
        (3, "CUDA_MEMOPR_MEMORY_KIND_ARRAY", "Array"),
        (4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed"),
        (UNKNOWN_KIND, "CUDA_MEMOPR_MEMORY_KIND_UNKNOWN", "Unknown"),
    ),
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": (
        (0, "CUDA_KERNEL_LAUNCH_TYPE_UNKNOWN", "Unknown"),
        (1, "CUDA_KERNEL_LAUNCH_TYPE_REGULAR", "Regular"),
    ),
    "ENUM_CUPTI_SYNC_TYPE": (
        (0, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN", "Unknown"),
        (1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync"),
        (2, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT", "Stream wait event"),
        (3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync"),
        (4, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync"),
    ),
    "ENUM_NSYS_EVENT_CLASS": ((0, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime call"),),
}
"""Rows of the tables that explain numbers."""

COPY_KINDS: Final[Mapping[str, tuple[int, int, int]]] = {
    "HtoD": (1, UNKNOWN_KIND, DEVICE),
    "DtoH": (2, DEVICE, UNKNOWN_KIND),
    "DtoD": (8, DEVICE, DEVICE),
    "PtoP": (10, DEVICE, DEVICE),
}
"""Kind of copy to its number and those of both ends' memory; of the host's no kind was recorded."""
