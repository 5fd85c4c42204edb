"""``nvidia-smi -q``, as text and as XML, from the rows of :mod:`va100.nvml.smi.tree`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Final

from va100.nvml.readings import Gpu
from va100.nvml.smi.look import Look
from va100.nvml.smi.options import Given, misuse
from va100.nvml.smi.rows import Leaf, Row, Section, Several
from va100.nvml.smi.text import clock_time, cuda_version, shown
from va100.nvml.smi.tree import ROWS, TOPICS

PROGRAM: Final = "nvidia-smi"
_DTD: Final = "nvsmi_device_v12.dtd"
_COLUMN: Final = 55
"""Where the colons of text stand, but for processes."""


def query(given: Given) -> Callable[[Look], int]:
    """Prepare the report that options ask for.

    Raises
    ------
    Stop
        They do not go together.
    """
    if "--dtd" in given:
        raise misuse('Option "--dtd" is not there: the DTD is NVIDIA\'s.', PROGRAM)
    if set(given) - {"-q", "-x", "-d"}:
        raise misuse("Invalid combination of input arguments.", PROGRAM)
    if "-x" in given:
        if "-d" in given:
            raise misuse('Option "-d" does not go with "-x".', PROGRAM)
        return _print_xml
    if "-d" not in given:
        return lambda look: _print_text(look, ())
    topics = [topic.strip().upper() for topic in given["-d"].split(",")]
    for topic in topics:
        if topic not in TOPICS:
            raise misuse(f'"{topic}" is no part to display: {", ".join(TOPICS)}.', PROGRAM)
    return lambda look: _print_text(look, topics)


def _print_text(look: Look, topics: Sequence[str]) -> int:
    gpus = look.gpus()
    driver, cuda = _versions(look)
    look.line("\n==============NVSMI LOG==============\n")
    for label, value in (
        ("Timestamp", clock_time(look.now_s())),
        ("Driver Version", driver),
        ("CUDA Version", cuda),
    ):
        look.line(f"{label:<{_COLUMN}}: {value}")
    look.line(f"\n{'Attached GPUs':<{_COLUMN}}: {_attached(look)}")
    for gpu in gpus:
        look.line(f"GPU {gpu.bus_id}")
        for line in text_lines(gpu, topics):
            look.line(line)
        look.line()
    return look.status


def text_lines(gpu: Gpu, topics: Sequence[str] = ()) -> Iterator[str]:
    """Lines that tell of one GPU; topics narrow them."""
    for row in ROWS:
        if _is_asked(row, topics):
            yield from _text(row, gpu, 4)


def _is_asked(row: Row, topics: Sequence[str]) -> bool:
    if isinstance(row, Leaf):
        return not topics
    return row.topics in topics if topics else row.is_whole


def _text(row: Row, gpu: Gpu, indent: int) -> Iterator[str]:
    if isinstance(row, Leaf):
        if row.label is not None:
            yield _text_leaf(row, gpu, indent, _COLUMN)
    elif isinstance(row, Section):
        if row.label is not None:
            yield f"{' ' * indent}{row.label}"
            indent += 4
        for one in row.rows:
            yield from _text(one, gpu, indent)
    else:
        yield from _text_several(row, gpu, indent)


def _text_several(row: Several, gpu: Gpu, indent: int) -> Iterator[str]:
    sections = row.make(gpu)
    if not sections and row.empty_text is not None:
        yield f"{' ' * indent + str(row.label):<{_COLUMN}}: {row.empty_text}"
    if not row.is_flat:
        for section in sections:
            yield from _text(section, gpu, indent)
        return
    if sections:
        yield f"{' ' * indent}{row.label}"
    for section in sections:
        for leaf in section.rows:
            if isinstance(leaf, Leaf):
                yield _text_leaf(leaf, gpu, indent + 4, row.column)


def _text_leaf(leaf: Leaf, gpu: Gpu, indent: int, column: int) -> str:
    value = shown(lambda: leaf.prefix + leaf.read(gpu))
    return f"{' ' * indent + str(leaf.label):<{column}}: {value}"


def _print_xml(look: Look) -> int:
    gpus = look.gpus()
    driver, cuda = _versions(look)
    look.line('<?xml version="1.0" ?>')
    look.line(f'<!DOCTYPE nvidia_smi_log SYSTEM "{_DTD}">')
    look.line("<nvidia_smi_log>")
    for tag, value in (
        ("timestamp", clock_time(look.now_s())),
        ("driver_version", driver),
        ("cuda_version", cuda),
        ("attached_gpus", str(_attached(look))),
    ):
        look.line(f"\t<{tag}>{value}</{tag}>")
    for gpu in gpus:
        look.line(f'\t<gpu id="{gpu.bus_id}">')
        for row in ROWS:
            for line in _xml(row, gpu, 2):
                look.line(line)
        look.line("\t</gpu>\n")
    look.line("</nvidia_smi_log>")
    return look.status


def _xml(row: Row, gpu: Gpu, depth: int) -> Iterator[str]:
    pad = "\t" * depth
    if isinstance(row, Leaf):
        if row.tag is not None:
            yield f"{pad}<{row.tag}>{escape(shown(lambda: row.read(gpu)), quote=False)}</{row.tag}>"
        return
    if isinstance(row, Section) and not any(_has_element(one) for one in row.rows):
        return
    inner = depth + 1 if row.tag is not None else depth
    if row.tag is not None:
        yield f"{pad}<{row.tag}>"
    rows: Sequence[Row] = row.rows if isinstance(row, Section) else row.make(gpu)
    for one in rows:
        yield from _xml(one, gpu, inner)
    if isinstance(row, Several) and not rows and row.empty_xml:
        yield f"{pad}\t{row.empty_xml}"
    if row.tag is not None:
        yield f"{pad}</{row.tag}>"


def _has_element(row: Row) -> bool:
    return row.tag is not None or (
        isinstance(row, Section) and any(_has_element(one) for one in row.rows)
    )


def _versions(look: Look) -> tuple[str, str]:
    cuda = look.nvml.number("nvmlSystemGetCudaDriverVersion_v2")
    return look.nvml.text("nvmlSystemGetDriverVersion"), cuda_version(cuda)


def _attached(look: Look) -> int:
    return look.nvml.number("nvmlDeviceGetCount_v2")
