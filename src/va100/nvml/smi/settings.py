"""Options that change a GPU: persistence, limits, clocks, modes, counters, reset, MIG mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from va100.errors import NvmlError
from va100.nvml.client import IN_USE, NOT_SUPPORTED
from va100.nvml.readings import COMPUTE_MODES, Gpu
from va100.nvml.smi.look import Look, Stop
from va100.nvml.smi.options import FLAG, MISUSED, VALUE, Given, Option, misuse
from va100.nvml.smi.text import enabled, refusal, watts

PROGRAM: Final = "nvidia-smi"
OPTIONS: Final = (
    Option(("-pm", "--persistence-mode"), VALUE, "keep the driver loaded: 0 or 1", "MODE"),
    Option(("-e", "--ecc-config"), VALUE, "count and correct errors: 0 or 1", "MODE"),
    Option(("-p", "--reset-ecc-errors"), VALUE, "0 volatile or 1 aggregate", "COUNTERS"),
    Option(("-c", "--compute-mode"), VALUE, "0 default, 2 prohibited, 3 exclusive", "MODE"),
    Option(("-r", "--gpu-reset"), FLAG, "reset GPUs that nobody uses"),
    Option(("-am", "--accounting-mode"), VALUE, "count what processes use: 0 or 1", "MODE"),
    Option(("-caa", "--clear-accounted-apps"), FLAG, "forget processes that ended"),
    Option(("-pl", "--power-limit"), VALUE, "limit of power", "WATTS"),
    Option(("-lgc", "--lock-gpu-clocks"), VALUE, "hold the clock between two", "MIN[,MAX]"),
    Option(("-rgc", "--reset-gpu-clocks"), FLAG, "let the clock go"),
    Option(("-lmc", "--lock-memory-clocks"), VALUE, "hold the memory's clock", "MIN[,MAX]"),
    Option(("-rmc", "--reset-memory-clocks"), FLAG, "let the memory's clock go"),
    Option(("-ac", "--applications-clocks"), VALUE, "clocks of applications", "MEMORY,GRAPHICS"),
    Option(("-rac", "--reset-applications-clocks"), FLAG, "applications' clocks as usual"),
    Option(("-mig", "--multi-instance-gpu"), VALUE, "MIG mode: 0 or 1", "MODE"),
)
Change = Callable[[Gpu, str], str]
"""Changes one GPU; the result is the lines that say so."""

_FLAGS: Final[Mapping[str, int]] = {"0": 0, "disabled": 0, "1": 1, "enabled": 1}
_MODES: Final[Mapping[str, int]] = {
    "0": 0,
    "default": 0,
    "1": 1,
    "exclusive_thread": 1,
    "2": 2,
    "prohibited": 2,
    "3": 3,
    "exclusive_process": 3,
}
_COUNTERS: Final[Mapping[str, int]] = {"0": 0, "volatile": 0, "1": 1, "aggregate": 1}


def changes(given: Given) -> Callable[[Look], int] | None:
    """Find out which change is asked for; none: there is none.

    Raises
    ------
    Stop
        Several are, or something else beside one.
    """
    asked = [name for name in given if name in _CHANGES]
    if not asked:
        return None
    if len(given) > 1:
        raise misuse(f'"{asked[0]}" does not go with other options but -i.', PROGRAM)
    name = asked[0]
    value = given[name]
    return lambda look: _apply(look, name, value)


def _apply(look: Look, name: str, value: str) -> int:
    change = _CHANGES[name]
    for gpu in look.gpus():
        try:
            look.line(change(gpu, value))
        except NvmlError as error:
            look.line(_failed(name, gpu, error))
            if error.code == NOT_SUPPORTED:
                look.line("Treating as warning and moving on.")
                continue
            look.line("Terminating early due to previous errors.")
            return min(error.code, 255)
    look.line("All done.")
    return look.status


def _failed(name: str, gpu: Gpu, error: NvmlError) -> str:
    if name == "-r":
        return _reset_failed(gpu, error)
    why = "Not Supported" if error.code == NOT_SUPPORTED else refusal(error)
    return f"Unable to {_DOINGS[name]} for GPU {gpu.bus_id}: {why}"


def _choice(text: str, table: Mapping[str, int], option: str) -> int:
    value = table.get(text.lower())
    if value is None:
        raise misuse(f'"{text}" is no value of option "{option}": {", ".join(table)}.', PROGRAM)
    return value


def _whole(texts: list[str], option: str) -> list[int]:
    for text in texts:
        if not text.isdecimal():
            raise misuse(f'"{text}" of option "{option}" is no clock in MHz.', PROGRAM)
    return [int(text) for text in texts]


def _persistence(gpu: Gpu, value: str) -> str:
    mode = _choice(value, _FLAGS, "-pm")
    if gpu.number("GetPersistenceMode") == mode:
        return f"Persistence mode is already {enabled(mode)} for GPU {gpu.bus_id}."
    gpu.set("SetPersistenceMode", mode)
    return f"{enabled(mode)} persistence mode for GPU {gpu.bus_id}."


def _ecc(gpu: Gpu, value: str) -> str:
    mode = _choice(value, _FLAGS, "-e")
    if gpu.numbers("GetEccMode")[1] == mode:
        return f"ECC support is already {enabled(mode)} for GPU {gpu.bus_id}."
    gpu.set("SetEccMode", mode)
    return f"{enabled(mode)} ECC support for GPU {gpu.bus_id}.\nReboot required."


def _clear_errors(gpu: Gpu, value: str) -> str:
    counters = _choice(value, _COUNTERS, "-p")
    gpu.set("ClearEccErrorCounts", counters)
    return f"Reset {('volatile', 'aggregate')[counters]} ECC errors to zero for GPU {gpu.bus_id}."


def _compute_mode(gpu: Gpu, value: str) -> str:
    mode = _choice(value, _MODES, "-c")
    name = COMPUTE_MODES[mode].upper()
    if gpu.number("GetComputeMode") == mode:
        return f"Compute mode is already set to {name} for GPU {gpu.bus_id}."
    gpu.set("SetComputeMode", mode)
    return f"Set compute mode to {name} for GPU {gpu.bus_id}."


def _reset(gpu: Gpu, _value: str) -> str:
    gpu.nvml.reset(gpu.index)
    return f"GPU {gpu.bus_id} was successfully reset."


def _reset_failed(gpu: Gpu, error: NvmlError) -> str:
    if error.code == IN_USE:
        return (
            f"GPU {gpu.bus_id} is currently in use by another process.\n\n"
            "1 device is currently being used by one or more other processes (e.g., Fabric "
            "Manager, CUDA application, graphics application such as an X server, or a monitoring "
            "application such as another instance of nvidia-smi). Please first kill all processes "
            "using this device and all compute applications running in the system."
        )
    return f"Resetting GPU {gpu.bus_id} is not supported."


def _accounting(gpu: Gpu, value: str) -> str:
    mode = _choice(value, _FLAGS, "-am")
    if gpu.number("GetAccountingMode") == mode:
        return f"Accounting mode is already {enabled(mode)} for GPU {gpu.bus_id}."
    gpu.set("SetAccountingMode", mode)
    return f"{enabled(mode)} Accounting Mode for GPU {gpu.bus_id}."


def _clear_accounting(gpu: Gpu, _value: str) -> str:
    gpu.set("ClearAccountingPids")
    return f"Cleared Accounted PIDs for GPU {gpu.bus_id}."


def _power_limit(gpu: Gpu, value: str) -> str:
    try:
        wanted_w = float(value)
    except ValueError:
        raise misuse(f'"{value}" of option "-pl" is no power in watts.', PROGRAM) from None
    low_w, high_w = gpu.limits_w
    if not low_w <= wanted_w <= high_w:
        raise Stop(
            f"Provided power limit {watts(wanted_w)} W is not a valid power limit which should be "
            f"between {watts(low_w)} W and {watts(high_w)} W for GPU {gpu.bus_id}\n"
            "Terminating early due to previous errors.\n",
            MISUSED,
        )
    before_w = gpu.power_limit_w
    gpu.set("SetPowerManagementLimit", round(wanted_w * 1000))
    limits = f"{watts(wanted_w)} W from {watts(before_w)} W"
    return f"Power limit for GPU {gpu.bus_id} was set to {limits}."


def _lock_clocks(gpu: Gpu, value: str) -> str:
    low, high = _span(value, "-lgc")
    gpu.set("SetGpuLockedClocks", low, high)
    span = f'"(gpuClkMin {low}, gpuClkMax {high})"'
    return f"GPU clocks set to {span} for GPU {gpu.bus_id}"


def _lock_memory(gpu: Gpu, value: str) -> str:
    low, high = _span(value, "-lmc")
    gpu.set("SetMemoryLockedClocks", low, high)
    span = f'"(memClkMin {low}, memClkMax {high})"'
    return f"Memory clocks set to {span} for GPU {gpu.bus_id}"


def _span(value: str, option: str) -> tuple[int, int]:
    clocks = _whole(value.split(","), option)
    if len(clocks) > 2 or clocks[0] > clocks[-1]:
        raise misuse(f'"{value}" of option "{option}" is no MIN,MAX.', PROGRAM)
    return clocks[0], clocks[-1]


def _application_clocks(gpu: Gpu, value: str) -> str:
    clocks = _whole(value.split(","), "-ac")
    if len(clocks) != 2:
        raise misuse(f'"{value}" of option "-ac" is no MEMORY,GRAPHICS.', PROGRAM)
    memory, graphics = clocks
    supported = {
        m // 1_000_000: [g // 1_000_000 for g in gs] for m, gs in gpu.supported_clocks_hz()
    }
    pair = f'"(MEM {memory}, SM {graphics})"'
    if graphics not in supported.get(memory, ()):
        raise Stop(
            f"Specified clock combination {pair} is not supported for GPU {gpu.bus_id}. "
            "Run 'nvidia-smi -q -d SUPPORTED_CLOCKS' to see list of supported clock "
            "combinations\nTerminating early due to previous errors.\n",
            MISUSED,
        )
    gpu.set("SetApplicationsClocks", memory, graphics)
    return f"Applications clocks set to {pair} for GPU {gpu.bus_id}"


def _released(function: str, what: str) -> Change:
    def change(gpu: Gpu, _value: str) -> str:
        gpu.set(function)
        return f"{what} for GPU {gpu.bus_id}"

    return change


def _mig_mode(gpu: Gpu, value: str) -> str:
    mode = _choice(value, _FLAGS, "-mig")
    status = gpu.number("SetMigMode", mode)
    if not status:
        return f"{enabled(mode)} MIG Mode for GPU {gpu.bus_id}"
    pending = f"Warning: MIG mode is in pending {'enable' if mode else 'disable'} state"
    if status == IN_USE:
        return (
            f"{pending} for GPU {gpu.bus_id}:In use by another client\n"
            f"{gpu.bus_id} is currently being used by one or more other processes (e.g. CUDA "
            "application or a monitoring application such as another instance of nvidia-smi). "
            "Please first kill all processes using the device and retry the command or reboot the "
            "system to make MIG mode effective."
        )
    return (
        f"{pending} for GPU {gpu.bus_id}:{gpu.nvml.error_text(status)}\n"
        "Reboot the system or try nvidia-smi --gpu-reset to make MIG mode effective on GPU "
        f"{gpu.bus_id}"
    )


_CHANGES: Final[Mapping[str, Change]] = {
    "-pm": _persistence,
    "-e": _ecc,
    "-p": _clear_errors,
    "-c": _compute_mode,
    "-r": _reset,
    "-am": _accounting,
    "-caa": _clear_accounting,
    "-pl": _power_limit,
    "-lgc": _lock_clocks,
    "-rgc": _released("ResetGpuLockedClocks", "GPU clocks reset to default"),
    "-lmc": _lock_memory,
    "-rmc": _released("ResetMemoryLockedClocks", "Memory clocks reset to default"),
    "-ac": _application_clocks,
    "-rac": _released("ResetApplicationsClocks", "Applications clocks reset to default"),
    "-mig": _mig_mode,
}
_DOINGS: Final[Mapping[str, str]] = {
    "-pm": "set persistence mode",
    "-e": "set ECC support",
    "-p": "reset ECC errors",
    "-c": "set compute mode",
    "-am": "set accounting mode",
    "-caa": "clear accounted PIDs",
    "-pl": "set power management limit",
    "-lgc": "set GPU clocks",
    "-rgc": "reset GPU clocks",
    "-lmc": "set memory clocks",
    "-rmc": "reset memory clocks",
    "-ac": "set applications clocks",
    "-rac": "reset applications clocks",
    "-mig": "enable MIG Mode",
}
