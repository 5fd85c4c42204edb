"""The tool's default output: a table of GPUs, one of MIG devices, one of processes.

The layout is that of R580 drivers, column for column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from va100.errors import NvmlError
from va100.nvml import structs
from va100.nvml.client import NOT_SUPPORTED
from va100.nvml.readings import UNCORRECTED, VOLATILE, Gpu, MigDevice
from va100.nvml.smi.look import Look
from va100.nvml.smi.text import ABSENT, bracketed, clock_time, cuda_version, enabled, mebibytes

_WIDE = "+" + "-" * 89 + "+"
_GPU_WIDTHS = (41, 24, 22)
_MIG_WIDTHS = (18, 34, 11, 23)
_GPU_HEADS = (
    (
        " GPU  Name                 Persistence-M",
        " Bus-Id          Disp.A",
        " Volatile Uncorr. ECC",
    ),
    (" Fan  Temp   Perf          Pwr:Usage/Cap", f"{'Memory-Usage':>23}", " GPU-Util  Compute M."),
    ("", "", f"{'MIG M.':>21}"),
)
_MIG_HEADS = (
    (" GPU  GI  CI  MIG", f"{'Shared Memory-Usage':>33}", f"{'Vol':>11}", f"{'Shared':>14}"),
    ("      ID  ID  Dev", f"{'Shared BAR1-Usage':>33}", " SM     Unc", " CE ENC  DEC  OFA  JPG"),
    ("", "", f"{'ECC':>11}", ""),
)
_PROCESS_HEADS = (
    f"|  GPU   GI   CI              PID   Type   {'Process name':<36}GPU Memory |",
    f"|        ID   ID{'':63}{'Usage':<11}|",
)
_COMPUTE = ("Default", "E. Thread", "Prohibited", "E. Process")


def run(look: Look) -> int:
    """Print the tables."""
    gpus = look.gpus()
    look.line(f"{clock_time(look.now_s())}       ")
    for line in _lines(look, gpus):
        look.line(line)
    return look.status


def _lines(look: Look, gpus: Sequence[Gpu]) -> Iterator[str]:
    nvml = look.nvml
    driver = nvml.text("nvmlSystemGetDriverVersion")
    cuda = cuda_version(nvml.number("nvmlSystemGetCudaDriverVersion_v2"))
    yield _WIDE
    yield f"| NVIDIA-SMI {driver:<22} Driver Version: {driver:<14} CUDA Version: {cuda:<8} |"
    yield _rule(_GPU_WIDTHS)
    yield from (_row(*cells) for cells in _GPU_HEADS)
    yield _rule(_GPU_WIDTHS, "=")
    for gpu in gpus:
        yield from gpu_rows(gpu)
        yield _rule(_GPU_WIDTHS)
    yield ""
    if any(gpu.is_mig_enabled for gpu in gpus):
        yield from mig_box([device for gpu in gpus for device in gpu.mig_devices])
        yield ""
    yield from process_box(gpus)


def gpu_rows(gpu: Gpu) -> Iterator[str]:
    """Three lines that tell of one GPU."""
    name = gpu.name if len(gpu.name) <= 27 else f"{gpu.name[:24]}..."
    persistence = _cell(lambda: _on(gpu.number("GetPersistenceMode")))
    display = _cell(lambda: _on(gpu.number("GetDisplayActive")))
    yield _row(
        f"{gpu.index:4d}  {name:<27}{persistence:>6}  ",
        f"   {gpu.bus_id} {display[:3]:>3} ",
        f"{_uncorrected(gpu):>21} ",
    )
    fan = _cell(lambda: f"{gpu.number('GetFanSpeed')}%")
    temperature = _cell(lambda: f"{gpu.temperature_c}C")
    power = _cell(lambda: f"{gpu.power_w:.0f}W")
    limit = _cell(lambda: f"{gpu.enforced_limit_w:.0f}W")
    state = _cell(lambda: gpu.performance_state)
    used = _cell(lambda: f"{mebibytes(gpu.memory.used)}MiB")
    total = _cell(lambda: f"{mebibytes(gpu.memory.total)}MiB")
    busy = _cell(lambda: f"{gpu.utilization.gpu}%")
    compute = _cell(lambda: _COMPUTE[gpu.number("GetComputeMode")])
    yield _row(
        f"{fan:>4}{temperature:>6}{state:>6}{power:>16} / {limit:>5} ",
        f"{used:>11} / {total:>9} ",
        f"{busy:>8}{compute:>13} ",
    )
    yield _row("", "", f"{_cell(lambda: _mig_mode(gpu)):>21} ")


def mig_box(devices: Iterable[MigDevice]) -> Iterator[str]:
    """The table of MIG devices."""
    yield _WIDE
    yield f"| {'MIG devices:':<88}|"
    yield _rule(_MIG_WIDTHS)
    yield from (_joined(_MIG_WIDTHS, *cells) for cells in _MIG_HEADS)
    yield _rule(_MIG_WIDTHS, "=")
    any_device = False
    for device in devices:
        any_device = True
        yield from _mig_rows(device)
        yield _rule(_MIG_WIDTHS)
    if not any_device:
        yield f"|  {'No MIG devices found':<87}|"
        yield _WIDE


def _mig_rows(device: MigDevice) -> Iterator[str]:
    parts = device.attributes
    ids = (device.gpu.index, device.gpu_instance, device.compute_instance, device.index)
    errors = _cell(lambda: str(_sram_errors(device)))
    counts = (parts.copy_engines, parts.encoders, parts.decoders, parts.ofas, parts.jpegs)
    memory, bar1 = device.memory, device.bar1
    yield _joined(
        _MIG_WIDTHS,
        "{:3d}{:5d}{:4d}{:4d}  ".format(*ids),
        _usage(memory.used, memory.total),
        f"{parts.multiprocessors:3d}{errors:>7} ",
        "{:3d}{:4d}{:5d}{:5d}{:5d} ".format(*counts),
    )
    yield _joined(_MIG_WIDTHS, "", _usage(bar1.used, bar1.total), "", "")


def process_box(gpus: Iterable[Gpu]) -> Iterator[str]:
    """The table of processes."""
    yield _WIDE
    yield f"| {'Processes:':<88}|"
    yield from _PROCESS_HEADS
    yield f"|{'=' * 89}|"
    rows = [_process_row(gpu, process) for gpu in gpus for process in gpu.processes]
    yield from rows or [f"|  {'No running processes found':<87}|"]
    yield _WIDE


def _process_row(gpu: Gpu, process: structs.Process) -> str:
    name = bracketed(lambda: gpu.process_name(process.pid))
    if len(name) > 36:
        name = f"...{name[-33:]}"
    gi, ci = instance_number(process.gpu_instance), instance_number(process.compute_instance)
    used = f"{mebibytes(process.used_bytes)}MiB"
    return f"|{gpu.index:5d}{gi:>6}{ci:>5}{process.pid:16d}      C   {name:<36}{used:>10} |"


def instance_number(number: int) -> str:
    """Number of an instance; processes outside MIG have none."""
    return "N/A" if number == structs.NONE else str(number)


def _uncorrected(gpu: Gpu) -> str:
    """The cell of volatile errors: a count, whether ECC is on where MIG is, or that it is off."""
    if gpu.is_mig_enabled:
        return _cell(lambda: "On" if gpu.has_ecc else "Off")
    return _cell(lambda: str(gpu.total_errors(UNCORRECTED, VOLATILE)) if gpu.has_ecc else "Off")


def _sram_errors(device: MigDevice) -> int:
    sram = device.gpu.sram
    count: int = sram.volatile_parity + sram.volatile_secded
    return count


def _mig_mode(gpu: Gpu) -> str:
    current, pending = gpu.mig_mode
    return enabled(current) + ("*" if pending != current else "")


def _cell(read: Callable[[], str]) -> str:
    """Read into a cell, which has no room to say why a reading is refused."""
    try:
        return read()
    except NvmlError as error:
        return ABSENT if error.code == NOT_SUPPORTED else "ERR!"


def _on(mode: int) -> str:
    return "On" if mode else "Off"


def _usage(used_bytes: int, total_bytes: int) -> str:
    return f"{mebibytes(used_bytes) + 'MiB':>19} / {mebibytes(total_bytes) + 'MiB':>8}"


def _row(*cells: str) -> str:
    return _joined(_GPU_WIDTHS, *cells)


def _joined(widths: Sequence[int], *cells: str) -> str:
    padded = (f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
    return f"|{'|'.join(padded)}|"


def _rule(widths: Sequence[int], mark: str = "-") -> str:
    edge = "+" if mark == "-" else "|"
    return edge + "+".join(mark * width for width in widths) + edge
