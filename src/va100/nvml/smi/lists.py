"""Parts of ``nvidia-smi -q`` of which there are several: MIG devices, processes, clocks."""

from __future__ import annotations

from va100.errors import NvmlError
from va100.nvml import structs
from va100.nvml.client import NOT_SUPPORTED
from va100.nvml.readings import Gpu, MigDevice
from va100.nvml.smi.rows import (
    BAR1,
    FB,
    Leaf,
    Read,
    Section,
    fixed,
)
from va100.nvml.smi.table import instance_number
from va100.nvml.smi.text import bracketed, mebibytes, megahertz


def _mig_section(device: MigDevice) -> Section:
    parts = device.attributes

    def sram(_gpu: Gpu) -> str:
        errors = device.gpu.sram
        return str(errors.volatile_parity + errors.volatile_secded)

    def moved(section: Section) -> Section:
        rows = tuple(
            row._replace(read=_elsewhere(row.read, device))
            for row in section.rows
            if isinstance(row, Leaf)
        )
        return section._replace(rows=rows, topics="")

    shared = (
        ("multiprocessor_count", "Multiprocessor count", parts.multiprocessors),
        ("copy_engine_count", "Copy Engine count", parts.copy_engines),
        ("encoder_count", "Encoder count", parts.encoders),
        ("decoder_count", "Decoder count", parts.decoders),
        ("ofa_count", "OFA count", parts.ofas),
        ("jpg_count", "JPG count", parts.jpegs),
    )
    counts = tuple(Leaf(tag, label, fixed(str(count))) for tag, label, count in shared)
    volatile = (Leaf("sram_uncorrectable", "SRAM Uncorrectable", sram),)
    return Section(
        "mig_device",
        "MIG Device",
        (
            Leaf("index", "Index", fixed(str(device.index))),
            Leaf("gpu_instance_id", "GPU Instance ID", fixed(str(device.gpu_instance))),
            Leaf("compute_instance_id", "Compute Instance ID", fixed(str(device.compute_instance))),
            Section(
                "device_attributes", "Device Attributes", (Section("shared", "Shared", counts),)
            ),
            Section(
                "ecc_error_count", "ECC Errors", (Section("volatile_count", "Volatile", volatile),)
            ),
            moved(FB),
            moved(BAR1),
        ),
    )


def _elsewhere(read: Read, device: Gpu) -> Read:
    return lambda _gpu: read(device)


def mig_sections(gpu: Gpu) -> list[Section]:
    """MIG devices."""
    return [_mig_section(device) for device in gpu.mig_devices]


def process_sections(gpu: Gpu) -> list[Section]:
    """Processes that use a GPU."""
    return [_process_section(process) for process in gpu.processes]


def _process_section(process: structs.Process) -> Section:
    rows = (
        Leaf("gpu_instance_id", "GPU instance ID", fixed(instance_number(process.gpu_instance))),
        Leaf(
            "compute_instance_id",
            "Compute instance ID",
            fixed(instance_number(process.compute_instance)),
        ),
        Leaf("pid", "Process ID", fixed(str(process.pid))),
        Leaf("type", "    Type", fixed("C")),
        Leaf(
            "process_name", "    Name", lambda gpu: bracketed(lambda: gpu.process_name(process.pid))
        ),
        Leaf("used_memory", "    Used GPU Memory", fixed(f"{mebibytes(process.used_bytes)} MiB")),
    )
    return Section("process_info", None, rows)


def accounted_sections(gpu: Gpu) -> list[Section]:
    """Processes that are counted."""
    try:
        found = list(gpu.accounted())
    except NvmlError as error:
        if error.code != NOT_SUPPORTED:
            raise
        return []
    return [_accounted_section(pid, stats) for pid, stats in found]


def _accounted_section(pid: int, stats: structs.Accounting) -> Section:
    rows = (
        Leaf("pid", "Process ID", fixed(str(pid))),
        Leaf("gpu_util", "    GPU Utilization", fixed(f"{stats.gpu} %")),
        Leaf("memory_util", "    Memory Utilization", fixed(f"{stats.memory} %")),
        Leaf(
            "max_memory_usage", "    Max memory usage", fixed(f"{mebibytes(stats.most_bytes)} MiB")
        ),
        Leaf("time", "    Time", fixed(f"{stats.time_ms} ms")),
        Leaf("is_running", "    Is Running", fixed(str(stats.is_running))),
    )
    return Section("accounted_process_info", None, rows)


def clock_sections(gpu: Gpu) -> list[Section]:
    """Memory clocks, each with the graphics clocks beside it."""
    try:
        found = list(gpu.supported_clocks_hz())
    except NvmlError as error:
        if error.code != NOT_SUPPORTED:
            raise
        return []
    return [_clock_section(memory, graphics) for memory, graphics in found]


def _clock_section(memory: int, graphics: list[int]) -> Section:
    rows = (
        Leaf("value", "Memory", fixed(f"{megahertz(memory)} MHz")),
        *(
            Leaf("supported_graphics_clock", "    Graphics", fixed(f"{megahertz(clock)} MHz"))
            for clock in graphics
        ),
    )
    return Section("supported_mem_clock", None, rows)
