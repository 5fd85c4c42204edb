"""What ``nvidia-smi -q`` tells, as a tree: rows of an XML element, words and a reading.

One table serves text and XML.  XML has the elements of a captured A100 of an R570 driver, in their
order; text has the lines of R580.  Rows that only one of them has lack the other's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

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
    REPLAY_ROLLOVER_FIELD,
    SHUTDOWN,
    SLOWDOWN,
    SM,
    VIDEO,
    VIRTUALIZATION,
    VOLATILE,
    Gpu,
)
from va100.nvml.smi.fields import recovery
from va100.nvml.smi.lists import accounted_sections, clock_sections, mig_sections, process_sections
from va100.nvml.smi.rows import (
    BAR1,
    FB,
    Leaf,
    Read,
    Row,
    Section,
    Several,
    absent,
    absent_section,
    busy_of,
    fixed,
    in_celsius,
    in_mhz,
    in_percent,
    in_watts,
    no_longer,
    of_bank,
    of_domain,
    of_dram,
    of_mode,
    of_names,
    of_number,
    of_pair,
    of_reason,
    of_session,
    of_sram,
    of_table,
    of_text,
    of_violation,
    pending_section,
    power_of,
)
from va100.nvml.smi.text import ABSENT, yes


def _identity() -> Iterator[Row]:
    yield Leaf("product_name", "Product Name", lambda gpu: gpu.name)
    yield Leaf("product_brand", "Product Brand", of_table(BRANDS, "GetBrand"))
    yield Leaf(
        "product_architecture", "Product Architecture", of_table(ARCHITECTURES, "GetArchitecture")
    )
    yield Leaf("display_mode", None, of_mode("GetDisplayMode"))
    yield Leaf(None, "Display Mode", no_longer)
    yield Leaf(None, "Display Attached", fixed("No"))
    yield Leaf("display_active", "Display Active", of_mode("GetDisplayActive"))
    yield Leaf("persistence_mode", "Persistence Mode", of_mode("GetPersistenceMode"))
    yield Leaf("addressing_mode", "Addressing Mode", lambda gpu: gpu.addressing_mode)
    yield pending_section("mig_mode", "MIG Mode", "mig", lambda place: of_pair("GetMigMode", place))
    yield Several("mig_devices", None, mig_sections, empty_xml="None")
    yield Leaf("accounting_mode", "Accounting Mode", of_mode("GetAccountingMode"))
    yield Leaf(
        "accounting_mode_buffer_size",
        "Accounting Mode Buffer Size",
        of_number("GetAccountingBufferSize"),
    )
    yield pending_section("driver_model", "Driver Model", "dm", lambda _place: absent)
    yield Leaf("serial", "Serial Number", of_text("GetSerial"))
    yield Leaf("uuid", "GPU UUID", lambda gpu: gpu.uuid)
    yield Leaf(None, "GPU PDI", absent)
    yield Leaf("minor_number", "Minor Number", of_number("GetMinorNumber"))
    yield Leaf("vbios_version", "VBIOS Version", of_text("GetVbiosVersion"))
    yield Leaf("multigpu_board", "MultiGPU Board", lambda gpu: yes(gpu.number("GetMultiGpuBoard")))
    yield Leaf("board_id", "Board ID", lambda gpu: f"0x{gpu.number('GetBoardId'):x}")
    yield Leaf("board_part_number", "Board Part Number", of_text("GetBoardPartNumber"))
    yield Leaf("gpu_part_number", "GPU Part Number", lambda gpu: gpu.part_number)
    yield Leaf("gpu_fru_part_number", "FRU Part Number", absent)
    yield Section("platformInfo", "Platform Info", tuple(_platform()))
    yield Section(
        "inforom_version",
        "Inforom Version",
        (
            Leaf("img_version", "Image Version", of_text("GetInforomImageVersion")),
            Leaf("oem_object", "OEM Object", of_text("GetInforomVersion", 0)),
            Leaf("ecc_object", "ECC Object", of_text("GetInforomVersion", 1)),
            Leaf("pwr_object", "Power Management Object", of_text("GetInforomVersion", 2)),
        ),
    )
    yield absent_section(
        "inforom_bbx_flush",
        "Inforom BBX Object Flush",
        ("latest_timestamp", "Latest Timestamp"),
        ("latest_duration", "Latest Duration"),
    )
    yield pending_section("gpu_operation_mode", "GPU Operation Mode", "gom", lambda _place: absent)
    yield Leaf("c2c_mode", "GPU C2C Mode", absent)


def _platform() -> Iterator[Leaf]:
    yield Leaf("chassis_serial_number", "Chassis Serial Number", absent)
    yield Leaf("slot_number", "Slot Number", absent)
    yield Leaf("tray_index", "Tray Index", absent)
    yield Leaf("host_id", "Host ID", absent)
    yield Leaf("peer_type", "Peer Type", absent)
    yield Leaf("module_id", "Module Id", of_number("GetModuleId"))
    yield Leaf("gpu_fabric_guid", "GPU Fabric GUID", absent)


def _health() -> Iterator[Row]:
    yield Section(
        "gpu_virtualization_mode",
        "GPU Virtualization Mode",
        (
            Leaf(
                "virtualization_mode",
                "Virtualization Mode",
                of_names(VIRTUALIZATION, "GetVirtualizationMode"),
            ),
            Leaf("host_vgpu_mode", "Host VGPU Mode", absent),
            Leaf("vgpu_heterogeneous_mode", "vGPU Heterogeneous Mode", absent),
        ),
    )
    yield Section(
        "gpu_reset_status",
        "GPU Reset Status",
        (
            Leaf("reset_required", "Reset Required", no_longer),
            Leaf("drain_and_reset_recommended", "Drain and Reset Recommended", no_longer),
        ),
        "RESET_STATUS",
        is_whole=False,
    )
    yield Leaf("gpu_recovery_action", "GPU Recovery Action", recovery)
    gsp = Leaf("gsp_firmware_version", "GSP Firmware Version", lambda gpu: gpu.gsp_version)
    yield Section(None, None, (gsp,), "GSP_FIRMWARE_VERSION")
    yield absent_section("ibmnpu", "IBMNPU", ("relaxed_ordering_mode", "Relaxed Ordering Mode"))


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
    yield absent_section(
        "pci_bridge_chip",
        "Bridge Chip",
        ("bridge_chip_type", "Type"),
        ("bridge_chip_fw", "Firmware"),
    )
    yield Leaf("replay_counter", "Replays Since Reset", of_number("GetPcieReplayCounter"))
    yield Leaf(
        "replay_rollover_counter",
        "Replay Number Rollovers",
        lambda gpu: str(int(gpu.field(REPLAY_ROLLOVER_FIELD))),
    )
    yield Leaf("tx_util", "Tx Throughput", _throughput(0))
    yield Leaf("rx_util", "Rx Throughput", _throughput(1))
    yield Leaf("atomic_caps_outbound", "Atomic Caps Outbound", absent)
    yield Leaf("atomic_caps_inbound", "Atomic Caps Inbound", absent)


def _throughput(direction: int) -> Read:
    return lambda gpu: f"{gpu.throughput_bytes_per_s(direction) // 1024} KB/s"


def _pci_link() -> Iterator[Section]:
    current, most = "GetCurrPcieLinkGeneration", "GetMaxPcieLinkGeneration"
    own = "GetGpuMaxPcieLinkGeneration"
    yield Section(
        "pcie_gen",
        "PCIe Generation",
        (
            Leaf("max_link_gen", "Max", of_number(most)),
            Leaf("current_link_gen", "Current", of_number(current)),
            Leaf("device_current_link_gen", "Device Current", of_number(current)),
            Leaf("max_device_link_gen", "Device Max", of_number(own)),
            Leaf("max_host_link_gen", "Host Max", absent),
        ),
    )
    yield Section(
        "link_widths",
        "Link Width",
        (
            Leaf("max_link_width", "Max", of_number("GetMaxPcieLinkWidth", after="x")),
            Leaf("current_link_width", "Current", of_number("GetCurrPcieLinkWidth", after="x")),
        ),
    )


def _performance() -> Iterator[Row]:
    yield Leaf("fan_speed", "Fan Speed", of_number("GetFanSpeed", after=" %"))
    yield Leaf("performance_state", "Performance State", lambda gpu: gpu.performance_state)
    yield Section("clocks_event_reasons", "Clocks Event Reasons", tuple(_reasons()), "PERFORMANCE")
    yield Section(None, "Clocks Event Reasons Counters", tuple(_reason_counters()), "PERFORMANCE")
    yield Leaf("sparse_operation_mode", "Sparse Operation Mode", absent)


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
        yield Leaf(f"clocks_event_reason_{name}", label, of_reason(name))


def _reason_counters() -> Iterator[Leaf]:
    yield Leaf(None, "SW Power Capping", of_violation("sw_power_cap"))
    yield Leaf(None, "Sync Boost", of_violation("sync_boost"))
    for label in ("SW Thermal Slowdown", "HW Thermal Slowdown", "HW Power Braking"):
        yield Leaf(None, label, absent)


def _usage() -> Iterator[Row]:
    yield FB
    yield BAR1
    protected = tuple(
        Leaf(name, name.capitalize(), fixed("0 MiB")) for name in ("total", "used", "free")
    )
    yield Section(
        "cc_protected_memory_usage", "Conf Compute Protected Memory Usage", protected, "MEMORY"
    )
    yield Section(
        None,
        None,
        (Leaf("compute_mode", "Compute Mode", of_names(COMPUTE_MODES, "GetComputeMode")),),
        "COMPUTE",
    )
    engines = (("encoder", "Encoder"), ("decoder", "Decoder"), ("jpeg", "Jpg"), ("ofa", "Ofa"))
    labels = {"jpeg": "JPEG", "ofa": "OFA"}
    yield Section(
        "utilization",
        "Utilization",
        (
            Leaf("gpu_util", "GPU", in_percent(lambda gpu: gpu.utilization.gpu)),
            Leaf("memory_util", "Memory", in_percent(lambda gpu: gpu.utilization.memory)),
            *(
                Leaf(
                    f"{tag}_util",
                    labels.get(tag, tag.capitalize()),
                    in_percent(busy_of(engine)),
                )
                for tag, engine in engines
            ),
        ),
        "UTILIZATION",
    )
    for tag, label, name, topic in (
        ("encoder_stats", "Encoder Stats", "encoder", "ENCODER_STATS"),
        ("fbc_stats", "FBC Stats", "frame_capture", "FBC_STATS"),
    ):
        rows = (
            Leaf("session_count", "Active Sessions", of_session(name, 0)),
            Leaf("average_fps", "Average FPS", of_session(name, 1)),
            Leaf("average_latency", "Average Latency", of_session(name, 2)),
        )
        yield Section(tag, label, rows, topic)
    yield pending_section(
        "dram_encryption_mode", "DRAM Encryption Mode", "dram_encryption", lambda _place: absent
    )


def _errors() -> Iterator[Row]:
    yield pending_section(
        "ecc_mode", "ECC Mode", "ecc", lambda place: of_pair("GetEccMode", place), "ECC"
    )
    both = ("volatile", VOLATILE), ("aggregate", AGGREGATE)
    counters = tuple(_ecc_counter(name, counter) for name, counter in both)
    sources = tuple(
        Leaf(f"sram_{tag}", f"SRAM {label}", of_sram(f"bucket_{name}"))
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
        Leaf(None, label, absent)
        for label in ("Channel Repair Pending", "TPC Repair Pending", "Unrepairable Memory")
    )
    middle = Section("aggregate_uncorrectable_sram_sources", title, sources)
    yield Section("ecc_errors", "ECC Errors", (*counters, middle, *repairs), "ECC")
    yield Section("retired_pages", "Retired Pages", tuple(_retired()), "PAGE_RETIREMENT")
    yield Section("remapped_rows", "Remapped Rows", tuple(_remapped()), "ROW_REMAPPER")


def _ecc_counter(name: str, counter: int) -> Section:
    rows = [
        Leaf("sram_correctable", "SRAM Correctable", of_sram(f"{name}_corrected")),
        Leaf("sram_uncorrectable_parity", "SRAM Uncorrectable Parity", of_sram(f"{name}_parity")),
        Leaf("sram_uncorrectable_secded", "SRAM Uncorrectable SEC-DED", of_sram(f"{name}_secded")),
        Leaf("dram_correctable", "DRAM Correctable", of_dram(CORRECTED, counter)),
        Leaf("dram_uncorrectable", "DRAM Uncorrectable", of_dram(1 - CORRECTED, counter)),
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
                Leaf("retired_count", label, absent),
                Leaf("retired_pagelist", None, absent),
            ),
        )
    yield Leaf("pending_blacklist", "Pending Page Blacklist", absent)
    yield Leaf("pending_retirement", None, absent)


def _remapped() -> Iterator[Row]:
    yield Leaf("remapped_row_corr", "Correctable Error", lambda gpu: str(gpu.remapped[0]))
    yield Leaf("remapped_row_unc", "Uncorrectable Error", lambda gpu: str(gpu.remapped[1]))
    yield Leaf("remapped_row_pending", "Pending", lambda gpu: yes(gpu.remapped[2]))
    yield Leaf(
        "remapped_row_failure", "Remapping Failure Occurred", lambda gpu: yes(gpu.remapped[3])
    )
    banks = tuple(
        Leaf(f"row_remapper_histogram_{name}", name.capitalize(), of_bank(name))
        for name in ("max", "high", "partial", "low", "none")
    )
    yield Section("row_remapper_histogram", "Bank Remap Availability Histogram", banks)


def _thermals() -> Iterator[Row]:
    yield Section(
        "temperature",
        "Temperature",
        (
            Leaf("gpu_temp", "GPU Current Temp", in_celsius(lambda gpu: gpu.temperature_c)),
            Leaf("gpu_temp_tlimit", "GPU T.Limit Temp", absent),
            Leaf("gpu_temp_max_threshold", "GPU Shutdown Temp", _threshold(SHUTDOWN)),
            Leaf("gpu_temp_slow_threshold", "GPU Slowdown Temp", _threshold(SLOWDOWN)),
            Leaf("gpu_temp_max_gpu_threshold", "GPU Max Operating Temp", _threshold(GPU_MAX)),
            Leaf("gpu_target_temperature", "GPU Target Temperature", absent),
            Leaf(
                "memory_temp",
                "Memory Current Temp",
                in_celsius(lambda gpu: gpu.memory_temperature_c),
            ),
            Leaf("gpu_temp_max_mem_threshold", "Memory Max Operating Temp", _threshold(MEMORY_MAX)),
        ),
        "TEMPERATURE",
    )
    yield Section(
        "supported_gpu_target_temp",
        "Supported GPU Target Temp",
        (
            Leaf("gpu_target_temp_min", "GPU Target Temp Min", absent),
            Leaf("gpu_target_temp_max", "GPU Target Temp Max", absent),
        ),
        "SUPPORTED_GPU_TARGET_TEMP",
        is_whole=False,
    )


def _threshold(which: int) -> Read:
    return in_celsius(lambda gpu: gpu.threshold_c(which))


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
            *(Leaf(tag, label, in_watts(power_of(field))) for tag, label, field in draws),
            *(Leaf(tag, label, in_watts(read)) for tag, label, read in limits),
        ),
        "POWER",
    )
    absent_draws = tuple(Leaf(tag, label, absent) for tag, label, _ in draws)
    yield Section("gpu_memory_power_readings", "GPU Memory Power Readings ", absent_draws, "POWER")
    absent_limits = tuple(Leaf(tag, label, absent) for tag, label, _ in limits)
    yield Section(
        "module_power_readings",
        "Module Power Readings",
        (state, *absent_draws, *absent_limits),
        "POWER",
    )
    yield Section(
        None, None, (Leaf("power_smoothing", "Power Smoothing", absent),), "POWER_SMOOTHING"
    )
    profiles = (
        Leaf("power_profile_requested_profiles", "Requested Profiles", absent),
        Leaf("power_profile_enforced_profiles", "Enforced Profiles", absent),
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
            Leaf(tag, label, in_mhz(of_domain(read, domain)))
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
    deferred = (Leaf("mem_clock", "Memory", absent),)
    yield Section("deferred_clocks", "Deferred Clocks", deferred, topic)
    yield Section("max_clocks", "Max Clocks", rows(Gpu.max_clock_hz, every), topic)
    boost = Leaf(
        "graphics_clock", "Graphics", of_number("GetMaxCustomerBoostClock", GRAPHICS, after=" MHz")
    )
    yield Section("max_customer_boost_clocks", "Max Customer Boost Clocks", (boost,), topic)
    policy = (
        Leaf("auto_boost", "Auto Boost", absent),
        Leaf("auto_boost_default", "Auto Boost Default", absent),
    )
    yield Section("clock_policy", "Clock Policy", policy, topic)
    volts = (Leaf("graphics_volt", "Graphics", absent),)
    yield Section("voltage", "Voltage", volts, "VOLTAGE", is_whole=False)


def _fabric() -> Iterator[Row]:
    health = (
        Leaf(None, "Summary", absent),
        Leaf("bandwidth", "Bandwidth", absent),
        Leaf("route_recovery_in_progress", "Route Recovery in progress", absent),
        Leaf("route_unhealthy", "Route Unhealthy", absent),
        Leaf("access_timeout_recovery", "Access Timeout Recovery", absent),
        Leaf(None, "Incorrect Configuration", absent),
        Leaf(None, "Partition Assigned", absent),
    )
    yield Section(
        "fabric",
        "Fabric",
        (
            Leaf("state", "State", absent),
            Leaf("status", "Status", absent),
            Leaf("cliqueId", "CliqueId", absent),
            Leaf("clusterUuid", "ClusterUUID", absent),
            Section("health", "Health", health),
        ),
    )


def _lists() -> Iterator[Row]:
    yield Several(
        "supported_clocks",
        "Supported Clocks",
        clock_sections,
        empty_text=ABSENT,
        topics="SUPPORTED_CLOCKS",
        is_whole=False,
        is_flat=True,
    )
    yield Several(
        "processes",
        "Processes",
        process_sections,
        empty_text="None",
        topics="PIDS",
        is_flat=True,
        column=42,
    )
    yield Several(
        "accounted_processes",
        "Accounted Processes",
        accounted_sections,
        empty_text="None",
        topics="ACCOUNTING",
        is_whole=False,
        is_flat=True,
        column=42,
    )
    yield Section("capabilities", "Capabilities", (Leaf("egm", "EGM", fixed("disabled")),))


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
