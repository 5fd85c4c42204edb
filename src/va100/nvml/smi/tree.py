"""What ``nvidia-smi -q`` tells, as a tree: rows of an XML element, words and a reading.

One table serves text and XML.  XML has the elements of a captured A100 of an R570 driver, in their
order; text has the lines of R580.  Rows that only one of them has lack the other's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from va100.errors import NvmlError
from va100.nvml import structs
from va100.nvml.client import NOT_SUPPORTED
from va100.nvml.readings import (
    AGGREGATE,
    ARCHITECTURES,
    BRANDS,
    COMPUTE_MODES,
    CORRECTED,
    GPU_MAX,
    GRAPHICS,
    MEMORY,
    MEMORY_MAX,
    POWER_AVERAGE_FIELD,
    POWER_INSTANT_FIELD,
    REASONS,
    REPLAY_ROLLOVER_FIELD,
    SHUTDOWN,
    SLOWDOWN,
    SM,
    VIDEO,
    VIOLATION_FIELDS,
    VIRTUALIZATION,
    VOLATILE,
    Gpu,
    MigDevice,
    deprecated,
)
from va100.nvml.smi.fields import recovery
from va100.nvml.smi.table import instance_number
from va100.nvml.smi.text import ABSENT, active, enabled, mebibytes, megahertz, watts, yes

Read = Callable[[Gpu], str]


class Leaf(NamedTuple):
    """One reading."""

    tag: str | None
    label: str | None
    read: Read
    prefix: str = ""
    """Stands before the value in text."""


class Section(NamedTuple):
    """Readings under a heading."""

    tag: str | None
    label: str | None
    rows: tuple[Row, ...]
    topics: str = ""
    """Words of ``-d`` that ask for it."""
    is_whole: bool = True
    """Stands in the text that no ``-d`` narrows."""


class Several(NamedTuple):
    """As many sections as there are of something."""

    tag: str | None
    label: str | None
    make: Callable[[Gpu], list[Section]]
    empty_xml: str = ""
    empty_text: str | None = None
    """None: no line at all."""
    topics: str = ""
    is_whole: bool = True
    is_flat: bool = False
    """In text, the sections' rows stand under the heading of all."""


Row = Leaf | Section | Several


def _absent(_gpu: Gpu) -> str:
    return ABSENT


def _deprecated(_gpu: Gpu) -> str:
    raise deprecated("reset status")


def _fixed(text: str) -> Read:
    return lambda _gpu: text


def _number(name: str, *arguments: int, after: str = "") -> Read:
    return lambda gpu: f"{gpu.number(name, *arguments)}{after}"


def _mode(name: str) -> Read:
    return lambda gpu: enabled(gpu.number(name))


def _pair(name: str, place: int) -> Read:
    return lambda gpu: enabled(gpu.numbers(name)[place])


def _text(name: str, *arguments: int) -> Read:
    return lambda gpu: gpu.text(name, *arguments)


def _of(table: dict[int, str], name: str) -> Read:
    return lambda gpu: table.get(gpu.number(name), "Unknown")


def _in(table: tuple[str, ...], name: str) -> Read:
    return lambda gpu: table[gpu.number(name)]


def _percent(read: Callable[[Gpu], int]) -> Read:
    return lambda gpu: f"{read(gpu)} %"


def _busy(engine: str) -> Callable[[Gpu], int]:
    return lambda gpu: gpu.busy(engine)


def _power_field(number: int) -> Callable[[Gpu], float]:
    return lambda gpu: gpu.power_field_w(number)


def _of_domain(read: Callable[[Gpu, int], int], domain: int) -> Callable[[Gpu], int]:
    return lambda gpu: read(gpu, domain)


def _mib(read: Callable[[Gpu], int]) -> Read:
    return lambda gpu: f"{mebibytes(read(gpu))} MiB"


def _watts(read: Callable[[Gpu], float]) -> Read:
    return lambda gpu: f"{watts(read(gpu))} W"


def _mhz(read: Callable[[Gpu], int]) -> Read:
    return lambda gpu: f"{megahertz(read(gpu))} MHz"


def _celsius(read: Callable[[Gpu], int]) -> Read:
    return lambda gpu: f"{read(gpu)} C"


def _sram(name: str) -> Read:
    return lambda gpu: str(getattr(gpu.sram, name))


def _dram(kind: int, counter: int) -> Read:
    location = 2
    return lambda gpu: str(gpu.errors(kind, counter, location))


def _bank(name: str) -> Read:
    return lambda gpu: f"{getattr(gpu.histogram, name)} bank(s)"


def _reason(name: str) -> Read:
    return lambda gpu: active(gpu.reasons & REASONS[name])


def _violation(name: str) -> Read:
    return lambda gpu: f"{int(gpu.field(VIOLATION_FIELDS[name])) // 1000} us"


def _sessions(name: str, place: int) -> Read:
    return lambda gpu: str(gpu.numbers(name, 3)[place])


def _memory(
    tag: str, label: str, make: Callable[[str], Callable[[Gpu], int]], names: str
) -> Section:
    """Amounts of one kind of memory."""
    rows = tuple(Leaf(name, name.capitalize(), _mib(make(name))) for name in names.split())
    return Section(tag, label, rows, "MEMORY")


def _fb(name: str) -> Callable[[Gpu], int]:
    return lambda gpu: int(getattr(gpu.memory, name))


def _bar1(name: str) -> Callable[[Gpu], int]:
    return lambda gpu: int(getattr(gpu.bar1, name))


FB: Final = _memory("fb_memory_usage", "FB Memory Usage", _fb, "total reserved used free")
BAR1: Final = _memory("bar1_memory_usage", "BAR1 Memory Usage", _bar1, "total used free")


def _absents(tag: str, label: str, *rows: tuple[str, str]) -> Section:
    """What an A100 has not."""
    return Section(tag, label, tuple(Leaf(name, words, _absent) for name, words in rows))


def _pending(
    tag: str, label: str, suffix: str, read: Callable[[int], Read], topics: str = ""
) -> Section:
    rows = (
        Leaf(f"current_{suffix}", "Current", read(0)),
        Leaf(f"pending_{suffix}", "Pending", read(1)),
    )
    return Section(tag, label, rows, topics)


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
    counts = tuple(Leaf(tag, label, _fixed(str(count))) for tag, label, count in shared)
    volatile = (Leaf("sram_uncorrectable", "SRAM Uncorrectable", sram),)
    return Section(
        "mig_device",
        "MIG Device",
        (
            Leaf("index", "Index", _fixed(str(device.index))),
            Leaf("gpu_instance_id", "GPU Instance ID", _fixed(str(device.gpu_instance))),
            Leaf(
                "compute_instance_id", "Compute Instance ID", _fixed(str(device.compute_instance))
            ),
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


def _mig_sections(gpu: Gpu) -> list[Section]:
    return [_mig_section(device) for device in gpu.mig_devices]


def _process_sections(gpu: Gpu) -> list[Section]:
    return [_process_section(process) for process in gpu.processes]


def _process_section(process: structs.Process) -> Section:
    rows = (
        Leaf("gpu_instance_id", "GPU instance ID", _fixed(instance_number(process.gpu_instance))),
        Leaf(
            "compute_instance_id",
            "Compute instance ID",
            _fixed(instance_number(process.compute_instance)),
        ),
        Leaf("pid", "Process ID", _fixed(str(process.pid))),
        Leaf("type", "    Type", _fixed("C")),
        Leaf("process_name", "    Name", lambda gpu: gpu.process_name(process.pid)),
        Leaf("used_memory", "    Used GPU Memory", _fixed(f"{mebibytes(process.used_bytes)} MiB")),
    )
    return Section("process_info", None, rows)


def _accounted_sections(gpu: Gpu) -> list[Section]:
    try:
        found = list(gpu.accounted())
    except NvmlError as error:
        if error.code != NOT_SUPPORTED:
            raise
        return []
    return [_accounted_section(pid, stats) for pid, stats in found]


def _accounted_section(pid: int, stats: structs.Accounting) -> Section:
    rows = (
        Leaf("pid", "Process ID", _fixed(str(pid))),
        Leaf("gpu_util", "    GPU Utilization", _fixed(f"{stats.gpu} %")),
        Leaf("memory_util", "    Memory Utilization", _fixed(f"{stats.memory} %")),
        Leaf(
            "max_memory_usage", "    Max memory usage", _fixed(f"{mebibytes(stats.most_bytes)} MiB")
        ),
        Leaf("time", "    Time", _fixed(f"{stats.time_ms} ms")),
        Leaf("is_running", "    Is Running", _fixed(str(stats.is_running))),
    )
    return Section("accounted_process_info", None, rows)


def _clock_sections(gpu: Gpu) -> list[Section]:
    try:
        found = list(gpu.supported_clocks_hz())
    except NvmlError as error:
        if error.code != NOT_SUPPORTED:
            raise
        return []
    return [_clock_section(memory, graphics) for memory, graphics in found]


def _clock_section(memory: int, graphics: list[int]) -> Section:
    rows = (
        Leaf("value", "Memory", _fixed(f"{megahertz(memory)} MHz")),
        *(
            Leaf("supported_graphics_clock", "    Graphics", _fixed(f"{megahertz(clock)} MHz"))
            for clock in graphics
        ),
    )
    return Section("supported_mem_clock", None, rows)


def _identity() -> Iterator[Row]:
    yield Leaf("product_name", "Product Name", lambda gpu: gpu.name)
    yield Leaf("product_brand", "Product Brand", _of(BRANDS, "GetBrand"))
    yield Leaf(
        "product_architecture", "Product Architecture", _of(ARCHITECTURES, "GetArchitecture")
    )
    yield Leaf("display_mode", "Display Mode", _mode("GetDisplayMode"))
    yield Leaf("display_active", "Display Active", _mode("GetDisplayActive"))
    yield Leaf("persistence_mode", "Persistence Mode", _mode("GetPersistenceMode"))
    yield Leaf("addressing_mode", "Addressing Mode", lambda gpu: gpu.addressing_mode)
    yield _pending("mig_mode", "MIG Mode", "mig", lambda place: _pair("GetMigMode", place))
    yield Several("mig_devices", None, _mig_sections, empty_xml="None")
    yield Leaf("accounting_mode", "Accounting Mode", _mode("GetAccountingMode"))
    yield Leaf(
        "accounting_mode_buffer_size",
        "Accounting Mode Buffer Size",
        _number("GetAccountingBufferSize"),
    )
    yield _pending("driver_model", "Driver Model", "dm", lambda _place: _absent)
    yield Leaf("serial", "Serial Number", _text("GetSerial"))
    yield Leaf("uuid", "GPU UUID", lambda gpu: gpu.uuid)
    yield Leaf(None, "GPU PDI", _absent)
    yield Leaf("minor_number", "Minor Number", _number("GetMinorNumber"))
    yield Leaf("vbios_version", "VBIOS Version", _text("GetVbiosVersion"))
    yield Leaf("multigpu_board", "MultiGPU Board", lambda gpu: yes(gpu.number("GetMultiGpuBoard")))
    yield Leaf("board_id", "Board ID", lambda gpu: f"0x{gpu.number('GetBoardId'):x}")
    yield Leaf("board_part_number", "Board Part Number", _text("GetBoardPartNumber"))
    yield Leaf("gpu_part_number", "GPU Part Number", lambda gpu: gpu.part_number)
    yield Leaf("gpu_fru_part_number", "FRU Part Number", _absent)
    yield Section("platformInfo", "Platform Info", tuple(_platform()))
    yield Section(
        "inforom_version",
        "Inforom Version",
        (
            Leaf("img_version", "Image Version", _text("GetInforomImageVersion")),
            Leaf("oem_object", "OEM Object", _text("GetInforomVersion", 0)),
            Leaf("ecc_object", "ECC Object", _text("GetInforomVersion", 1)),
            Leaf("pwr_object", "Power Management Object", _text("GetInforomVersion", 2)),
        ),
    )
    yield _absents(
        "inforom_bbx_flush",
        "Inforom BBX Object Flush",
        ("latest_timestamp", "Latest Timestamp"),
        ("latest_duration", "Latest Duration"),
    )
    yield _pending("gpu_operation_mode", "GPU Operation Mode", "gom", lambda _place: _absent)
    yield Leaf("c2c_mode", "GPU C2C Mode", _absent)


def _platform() -> Iterator[Leaf]:
    yield Leaf("chassis_serial_number", "Chassis Serial Number", _absent)
    yield Leaf("slot_number", "Slot Number", _absent)
    yield Leaf("tray_index", "Tray Index", _absent)
    yield Leaf("host_id", "Host ID", _absent)
    yield Leaf("peer_type", "Peer Type", _absent)
    yield Leaf("module_id", "Module Id", _number("GetModuleId"))
    yield Leaf("gpu_fabric_guid", "GPU Fabric GUID", _absent)


def _health() -> Iterator[Row]:
    yield Section(
        "gpu_virtualization_mode",
        "GPU Virtualization Mode",
        (
            Leaf(
                "virtualization_mode",
                "Virtualization Mode",
                _in(VIRTUALIZATION, "GetVirtualizationMode"),
            ),
            Leaf("host_vgpu_mode", "Host VGPU Mode", _absent),
            Leaf("vgpu_heterogeneous_mode", "vGPU Heterogeneous Mode", _absent),
        ),
    )
    yield Section(
        "gpu_reset_status",
        "GPU Reset Status",
        (
            Leaf("reset_required", "Reset Required", _deprecated),
            Leaf("drain_and_reset_recommended", "Drain and Reset Recommended", _deprecated),
        ),
        "RESET_STATUS",
        is_whole=False,
    )
    yield Leaf("gpu_recovery_action", "GPU Recovery Action", recovery)
    yield Leaf("gsp_firmware_version", "GSP Firmware Version", lambda gpu: gpu.gsp_version)
    yield _absents("ibmnpu", "IBMNPU", ("relaxed_ordering_mode", "Relaxed Ordering Mode"))


def _pci() -> Iterator[Row]:
    yield Leaf("pci_bus", "Bus", lambda gpu: f"{gpu.pci.bus:02X}", "0x")
    yield Leaf("pci_device", "Device", lambda gpu: f"{gpu.pci.device:02X}", "0x")
    yield Leaf("pci_domain", "Domain", lambda gpu: f"{gpu.pci.domain:04X}", "0x")
    yield Leaf(
        "pci_base_class", "Base Classcode", lambda gpu: f"{gpu.pci_class.base_class:X}", "0x"
    )
    yield Leaf("pci_sub_class", "Sub Classcode", lambda gpu: f"{gpu.pci_class.sub_class:X}", "0x")
    yield Leaf("pci_device_id", "Device Id", lambda gpu: f"{gpu.pci.pci_device_id:08X}", "0x")
    yield Leaf("pci_bus_id", "Bus Id", lambda gpu: gpu.bus_id)
    yield Leaf(
        "pci_sub_system_id", "Sub System Id", lambda gpu: f"{gpu.pci.pci_subsystem_id:08X}", "0x"
    )
    yield Section("pci_gpu_link_info", "GPU Link Info", tuple(_pci_link()))
    yield _absents(
        "pci_bridge_chip",
        "Bridge Chip",
        ("bridge_chip_type", "Type"),
        ("bridge_chip_fw", "Firmware"),
    )
    yield Leaf("replay_counter", "Replays Since Reset", _number("GetPcieReplayCounter"))
    yield Leaf(
        "replay_rollover_counter",
        "Replay Number Rollovers",
        lambda gpu: str(int(gpu.field(REPLAY_ROLLOVER_FIELD))),
    )
    yield Leaf("tx_util", "Tx Throughput", _throughput(0))
    yield Leaf("rx_util", "Rx Throughput", _throughput(1))
    yield Leaf("atomic_caps_outbound", "Atomic Caps Outbound", _absent)
    yield Leaf("atomic_caps_inbound", "Atomic Caps Inbound", _absent)


def _throughput(direction: int) -> Read:
    return lambda gpu: f"{gpu.throughput_bytes_per_s(direction) // 1024} KB/s"


def _pci_link() -> Iterator[Section]:
    current, most = "GetCurrPcieLinkGeneration", "GetMaxPcieLinkGeneration"
    own = "GetGpuMaxPcieLinkGeneration"
    yield Section(
        "pcie_gen",
        "PCIe Generation",
        (
            Leaf("max_link_gen", "Max", _number(most)),
            Leaf("current_link_gen", "Current", _number(current)),
            Leaf("device_current_link_gen", "Device Current", _number(current)),
            Leaf("max_device_link_gen", "Device Max", _number(own)),
            Leaf("max_host_link_gen", "Host Max", _absent),
        ),
    )
    yield Section(
        "link_widths",
        "Link Width",
        (
            Leaf("max_link_width", "Max", _number("GetMaxPcieLinkWidth", after="x")),
            Leaf("current_link_width", "Current", _number("GetCurrPcieLinkWidth", after="x")),
        ),
    )


def _performance() -> Iterator[Row]:
    yield Leaf("fan_speed", "Fan Speed", _number("GetFanSpeed", after=" %"))
    yield Leaf("performance_state", "Performance State", lambda gpu: gpu.performance_state)
    yield Section("clocks_event_reasons", "Clocks Event Reasons", tuple(_reasons()), "PERFORMANCE")
    yield Section(None, "Clocks Event Reasons Counters", tuple(_reason_counters()), "PERFORMANCE")
    yield Leaf("sparse_operation_mode", "Sparse Operation Mode", _absent)


def _reasons() -> Iterator[Leaf]:
    labels = (
        ("gpu_idle", "Idle"),
        ("applications_clocks_setting", "Applications Clocks Setting"),
        ("sw_power_cap", "SW Power Cap"),
        ("hw_slowdown", "HW Slowdown"),
        ("hw_thermal_slowdown", "    HW Thermal Slowdown"),
        ("hw_power_brake_slowdown", "    HW Power Brake Slowdown"),
        ("sync_boost", "Sync Boost"),
        ("sw_thermal_slowdown", "SW Thermal Slowdown"),
        ("display_clocks_setting", "Display Clock Setting"),
    )
    for name, label in labels:
        yield Leaf(f"clocks_event_reason_{name}", label, _reason(name))


def _reason_counters() -> Iterator[Leaf]:
    yield Leaf(None, "SW Power Capping", _violation("sw_power_cap"))
    yield Leaf(None, "Sync Boost", _violation("sync_boost"))
    for label in ("SW Thermal Slowdown", "HW Thermal Slowdown", "HW Power Braking"):
        yield Leaf(None, label, _absent)


def _usage() -> Iterator[Row]:
    yield FB
    yield BAR1
    protected = tuple(
        Leaf(name, name.capitalize(), _fixed("0 MiB")) for name in ("total", "used", "free")
    )
    yield Section(
        "cc_protected_memory_usage", "Conf Compute Protected Memory Usage", protected, "MEMORY"
    )
    yield Section(
        None,
        None,
        (Leaf("compute_mode", "Compute Mode", _in(COMPUTE_MODES, "GetComputeMode")),),
        "COMPUTE",
    )
    engines = (("encoder", "Encoder"), ("decoder", "Decoder"), ("jpeg", "Jpg"), ("ofa", "Ofa"))
    labels = {"jpeg": "JPEG", "ofa": "OFA"}
    yield Section(
        "utilization",
        "Utilization",
        (
            Leaf("gpu_util", "GPU", _percent(lambda gpu: gpu.utilization.gpu)),
            Leaf("memory_util", "Memory", _percent(lambda gpu: gpu.utilization.memory)),
            *(
                Leaf(
                    f"{tag}_util",
                    labels.get(tag, tag.capitalize()),
                    _percent(_busy(engine)),
                )
                for tag, engine in engines
            ),
        ),
        "UTILIZATION",
    )
    for tag, label, name, topic in (
        ("encoder_stats", "Encoder Stats", "GetEncoderStats", "ENCODER_STATS"),
        ("fbc_stats", "FBC Stats", "GetFBCStats", "FBC_STATS"),
    ):
        rows = (
            Leaf("session_count", "Active Sessions", _sessions(name, 0)),
            Leaf("average_fps", "Average FPS", _sessions(name, 1)),
            Leaf("average_latency", "Average Latency", _sessions(name, 2)),
        )
        yield Section(tag, label, rows, topic)
    yield _pending(
        "dram_encryption_mode", "DRAM Encryption Mode", "dram_encryption", lambda _place: _absent
    )


def _errors() -> Iterator[Row]:
    yield _pending("ecc_mode", "ECC Mode", "ecc", lambda place: _pair("GetEccMode", place), "ECC")
    both = ("volatile", VOLATILE), ("aggregate", AGGREGATE)
    counters = tuple(_ecc_counter(name, counter) for name, counter in both)
    sources = tuple(
        Leaf(f"sram_{tag}", f"SRAM {label}", _sram(f"bucket_{name}"))
        for tag, label, name in (
            ("l2", "L2", "l2"),
            ("sm", "SM", "sm"),
            ("microcontroller", "Microcontroller", "mcu"),
            ("pcie", "PCIE", "pcie"),
            ("other", "Other", "other"),
        )
    )
    title = "Aggregate Uncorrectable SRAM Sources"
    repairs: tuple[Row, ...] = tuple(
        Leaf(None, label, _absent)
        for label in ("Channel Repair Pending", "TPC Repair Pending", "Unrepairable Memory")
    )
    middle = Section("aggregate_uncorrectable_sram_sources", title, sources)
    yield Section("ecc_errors", "ECC Errors", (*counters, middle, *repairs), "ECC")
    yield Section("retired_pages", "Retired Pages", tuple(_retired()), "PAGE_RETIREMENT")
    yield Section("remapped_rows", "Remapped Rows", tuple(_remapped()), "ROW_REMAPPER")


def _ecc_counter(name: str, counter: int) -> Section:
    rows = [
        Leaf("sram_correctable", "SRAM Correctable", _sram(f"{name}_corrected")),
        Leaf("sram_uncorrectable_parity", "SRAM Uncorrectable Parity", _sram(f"{name}_parity")),
        Leaf("sram_uncorrectable_secded", "SRAM Uncorrectable SEC-DED", _sram(f"{name}_secded")),
        Leaf("dram_correctable", "DRAM Correctable", _dram(CORRECTED, counter)),
        Leaf("dram_uncorrectable", "DRAM Uncorrectable", _dram(1 - CORRECTED, counter)),
    ]
    if counter == AGGREGATE:
        exceeded = "sram_threshold_exceeded"
        rows.append(
            Leaf(exceeded, "SRAM Threshold Exceeded", lambda gpu: yes(gpu.sram.threshold_exceeded))
        )
    return Section(name, name.capitalize(), tuple(rows))


def _retired() -> Iterator[Row]:
    for tag, label in (
        ("multiple_single_bit_retirement", "Single Bit ECC"),
        ("double_bit_retirement", "Double Bit ECC"),
    ):
        yield Section(
            tag,
            None,
            (
                Leaf("retired_count", label, _absent),
                Leaf("retired_pagelist", None, _absent),
            ),
        )
    yield Leaf("pending_blacklist", "Pending Page Blacklist", _absent)
    yield Leaf("pending_retirement", None, _absent)


def _remapped() -> Iterator[Row]:
    yield Leaf("remapped_row_corr", "Correctable Error", lambda gpu: str(gpu.remapped[0]))
    yield Leaf("remapped_row_unc", "Uncorrectable Error", lambda gpu: str(gpu.remapped[1]))
    yield Leaf("remapped_row_pending", "Pending", lambda gpu: yes(gpu.remapped[2]))
    yield Leaf(
        "remapped_row_failure", "Remapping Failure Occurred", lambda gpu: yes(gpu.remapped[3])
    )
    banks = tuple(
        Leaf(f"row_remapper_histogram_{name}", name.capitalize(), _bank(name))
        for name in ("max", "high", "partial", "low", "none")
    )
    yield Section("row_remapper_histogram", "Bank Remap Availability Histogram", banks)


def _thermals() -> Iterator[Row]:
    yield Section(
        "temperature",
        "Temperature",
        (
            Leaf("gpu_temp", "GPU Current Temp", _celsius(lambda gpu: gpu.temperature_c)),
            Leaf("gpu_temp_tlimit", "GPU T.Limit Temp", _absent),
            Leaf("gpu_temp_max_threshold", "GPU Shutdown Temp", _threshold(SHUTDOWN)),
            Leaf("gpu_temp_slow_threshold", "GPU Slowdown Temp", _threshold(SLOWDOWN)),
            Leaf("gpu_temp_max_gpu_threshold", "GPU Max Operating Temp", _threshold(GPU_MAX)),
            Leaf("gpu_target_temperature", "GPU Target Temperature", _absent),
            Leaf(
                "memory_temp",
                "Memory Current Temp",
                _celsius(lambda gpu: gpu.memory_temperature_c),
            ),
            Leaf("gpu_temp_max_mem_threshold", "Memory Max Operating Temp", _threshold(MEMORY_MAX)),
        ),
        "TEMPERATURE",
    )
    yield Section(
        "supported_gpu_target_temp",
        "Supported GPU Target Temp",
        (
            Leaf("gpu_target_temp_min", "GPU Target Temp Min", _absent),
            Leaf("gpu_target_temp_max", "GPU Target Temp Max", _absent),
        ),
        "SUPPORTED_GPU_TARGET_TEMP",
        is_whole=False,
    )


def _threshold(which: int) -> Read:
    return _celsius(lambda gpu: gpu.threshold_c(which))


def _power() -> Iterator[Row]:
    state = Leaf("power_state", None, lambda gpu: gpu.performance_state)
    average, instant = POWER_AVERAGE_FIELD, POWER_INSTANT_FIELD
    limits: tuple[tuple[str, str, Callable[[Gpu], float]], ...] = (
        ("current_power_limit", "Current Power Limit", lambda gpu: gpu.enforced_limit_w),
        ("requested_power_limit", "Requested Power Limit", lambda gpu: gpu.power_limit_w),
        ("default_power_limit", "Default Power Limit", lambda gpu: gpu.default_limit_w),
        ("min_power_limit", "Min Power Limit", lambda gpu: gpu.limits_w[0]),
        ("max_power_limit", "Max Power Limit", lambda gpu: gpu.limits_w[1]),
    )
    draws = (
        ("average_power_draw", "Average Power Draw", average),
        ("instant_power_draw", "Instantaneous Power Draw", instant),
    )
    yield Section(
        "gpu_power_readings",
        "GPU Power Readings",
        (
            state,
            *(Leaf(tag, label, _watts(_power_field(field))) for tag, label, field in draws),
            *(Leaf(tag, label, _watts(read)) for tag, label, read in limits),
        ),
        "POWER",
    )
    absent_draws = tuple(Leaf(tag, label, _absent) for tag, label, _ in draws)
    yield Section("gpu_memory_power_readings", "GPU Memory Power Readings ", absent_draws, "POWER")
    absent_limits = tuple(Leaf(tag, label, _absent) for tag, label, _ in limits)
    yield Section(
        "module_power_readings",
        "Module Power Readings",
        (state, *absent_draws, *absent_limits),
        "POWER",
    )
    yield Section(
        None, None, (Leaf("power_smoothing", "Power Smoothing", _absent),), "POWER_SMOOTHING"
    )
    profiles = (
        Leaf("power_profile_requested_profiles", "Requested Profiles", _absent),
        Leaf("power_profile_enforced_profiles", "Enforced Profiles", _absent),
    )
    yield Section("power_profiles", "Workload Power Profiles", profiles, "POWER_PROFILES")


_DOMAINS: Final = (
    ("graphics_clock", "Graphics", GRAPHICS),
    ("sm_clock", "SM", SM),
    ("mem_clock", "Memory", MEMORY),
    ("video_clock", "Video", VIDEO),
)


def _clocks() -> Iterator[Row]:
    def rows(read: Callable[[Gpu, int], int], names: str) -> tuple[Leaf, ...]:
        return tuple(
            Leaf(tag, label, _mhz(_of_domain(read, domain)))
            for tag, label, domain in _DOMAINS
            if tag.removesuffix("_clock") in names.split()
        )

    topic = "CLOCK"
    every, two = "graphics sm mem video", "graphics mem"
    yield Section("clocks", "Clocks", rows(Gpu.clock_hz, every), topic)
    yield Section(
        "applications_clocks", "Applications Clocks", rows(Gpu.application_clock_hz, two), topic
    )
    yield Section(
        "default_applications_clocks",
        "Default Applications Clocks",
        rows(Gpu.default_clock_hz, two),
        topic,
    )
    deferred = (Leaf("mem_clock", "Memory", _absent),)
    yield Section("deferred_clocks", "Deferred Clocks", deferred, topic)
    yield Section("max_clocks", "Max Clocks", rows(Gpu.max_clock_hz, every), topic)
    boost = Leaf(
        "graphics_clock", "Graphics", _number("GetMaxCustomerBoostClock", GRAPHICS, after=" MHz")
    )
    yield Section("max_customer_boost_clocks", "Max Customer Boost Clocks", (boost,), topic)
    policy = (
        Leaf("auto_boost", "Auto Boost", _absent),
        Leaf("auto_boost_default", "Auto Boost Default", _absent),
    )
    yield Section("clock_policy", "Clock Policy", policy, topic)
    volts = (Leaf("graphics_volt", "Graphics", _absent),)
    yield Section("voltage", "Voltage", volts, "VOLTAGE", is_whole=False)


def _fabric() -> Iterator[Row]:
    health = (
        Leaf(None, "Summary", _absent),
        Leaf("bandwidth", "Bandwidth", _absent),
        Leaf("route_recovery_in_progress", "Route Recovery in progress", _absent),
        Leaf("route_unhealthy", "Route Unhealthy", _absent),
        Leaf("access_timeout_recovery", "Access Timeout Recovery", _absent),
        Leaf(None, "Incorrect Configuration", _absent),
        Leaf(None, "Partition Assigned", _absent),
    )
    yield Section(
        "fabric",
        "Fabric",
        (
            Leaf("state", "State", _absent),
            Leaf("status", "Status", _absent),
            Leaf("cliqueId", "CliqueId", _absent),
            Leaf("clusterUuid", "ClusterUUID", _absent),
            Section("health", "Health", health),
        ),
    )


def _lists() -> Iterator[Row]:
    yield Several(
        "supported_clocks",
        "Supported Clocks",
        _clock_sections,
        empty_text=ABSENT,
        topics="SUPPORTED_CLOCKS",
        is_whole=False,
        is_flat=True,
    )
    yield Several(
        "processes",
        "Processes",
        _process_sections,
        empty_text="None",
        topics="PIDS",
        is_flat=True,
    )
    yield Several(
        "accounted_processes",
        "Accounted Processes",
        _accounted_sections,
        empty_text="None",
        topics="ACCOUNTING",
        is_whole=False,
        is_flat=True,
    )
    yield Section("capabilities", "Capabilities", (Leaf("egm", "EGM", _fixed("disabled")),))


def _all() -> Iterator[Row]:
    yield from _identity()
    yield from _health()
    yield Section("pci", "PCI", tuple(_pci()))
    yield from _performance()
    yield from _usage()
    yield from _errors()
    yield from _thermals()
    yield from _power()
    yield from _clocks()
    yield from _fabric()
    yield from _lists()


ROWS: Final[tuple[Row, ...]] = tuple(_all())
"""Everything that is told of a GPU, in order."""
TOPICS: Final = tuple(
    dict.fromkeys(row.topics for row in ROWS if not isinstance(row, Leaf) and row.topics)
)
"""Words of ``-d``."""
