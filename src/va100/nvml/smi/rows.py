"""What the rows of ``nvidia-smi -q`` are made of: kinds of row, and how readings become words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from va100.nvml.readings import REASONS, VIOLATION_FIELDS, Gpu, deprecated
from va100.nvml.smi.text import ABSENT, active, enabled, mebibytes, megahertz, watts

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
    column: int = 55
    """Where their colons stand."""


Row = Leaf | Section | Several


def absent(_gpu: Gpu) -> str:
    """Not of this card."""
    return ABSENT


def no_longer(_gpu: Gpu) -> str:
    """Of drivers before this one."""
    raise deprecated("reset status")


def fixed(text: str) -> Read:
    """What is known already."""
    return lambda _gpu: text


def of_number(name: str, *arguments: int, after: str = "") -> Read:
    """One number, and what follows it."""
    return lambda gpu: f"{gpu.number(name, *arguments)}{after}"


def of_mode(name: str) -> Read:
    """A mode that is on or off."""
    return lambda gpu: enabled(gpu.number(name))


def of_pair(name: str, place: int) -> Read:
    """One of two modes that are read together."""
    return lambda gpu: enabled(gpu.numbers(name)[place])


def of_text(name: str, *arguments: int) -> Read:
    """Text."""
    return lambda gpu: gpu.text(name, *arguments)


def of_table(table: dict[int, str], name: str) -> Read:
    """A number that stands for a word."""
    return lambda gpu: table.get(gpu.number(name), "Unknown")


def of_names(table: tuple[str, ...], name: str) -> Read:
    """A number that counts words."""
    return lambda gpu: table[gpu.number(name)]


def in_percent(read: Callable[[Gpu], int]) -> Read:
    """A share."""
    return lambda gpu: f"{read(gpu)} %"


def busy_of(engine: str) -> Callable[[Gpu], int]:
    """How busy an engine is."""
    return lambda gpu: gpu.busy(engine)


def power_of(number: int) -> Callable[[Gpu], float]:
    """Power in a numbered field."""
    return lambda gpu: gpu.power_field_w(number)


def of_domain(read: Callable[[Gpu, int], int], domain: int) -> Callable[[Gpu], int]:
    """A clock of one domain."""
    return lambda gpu: read(gpu, domain)


def in_mib(read: Callable[[Gpu], int]) -> Read:
    """An amount of memory."""
    return lambda gpu: f"{mebibytes(read(gpu))} MiB"


def in_watts(read: Callable[[Gpu], float]) -> Read:
    """Power."""
    return lambda gpu: f"{watts(read(gpu))} W"


def in_mhz(read: Callable[[Gpu], int]) -> Read:
    """A clock."""
    return lambda gpu: f"{megahertz(read(gpu))} MHz"


def in_celsius(read: Callable[[Gpu], int]) -> Read:
    """A temperature."""
    return lambda gpu: f"{read(gpu)} C"


def of_sram(name: str) -> Read:
    """A count of errors on the chip."""
    return lambda gpu: str(getattr(gpu.sram, name))


def of_dram(kind: int, counter: int) -> Read:
    """A count of errors in memory."""
    location = 2
    return lambda gpu: str(gpu.errors(kind, counter, location))


def of_bank(name: str) -> Read:
    """Banks that can spare so many rows."""
    return lambda gpu: f"{getattr(gpu.histogram, name)} bank(s)"


def of_reason(name: str) -> Read:
    """Whether a reason for clocks holds."""
    return lambda gpu: active(gpu.reasons & REASONS[name])


def of_violation(name: str) -> Read:
    """How long it held."""
    return lambda gpu: f"{int(gpu.field(VIOLATION_FIELDS[name])) // 1000} us"


def of_session(name: str, place: int) -> Read:
    """Of sessions, one of three numbers."""
    return lambda gpu: str(getattr(gpu, name)[place])


def _memory(
    tag: str, label: str, make: Callable[[str], Callable[[Gpu], int]], names: str
) -> Section:
    """Amounts of one kind of memory."""
    rows = tuple(Leaf(name, name.capitalize(), in_mib(make(name))) for name in names.split())
    return Section(tag, label, rows, "MEMORY")


def _fb(name: str) -> Callable[[Gpu], int]:
    return lambda gpu: int(getattr(gpu.memory, name))


def _bar1(name: str) -> Callable[[Gpu], int]:
    return lambda gpu: int(getattr(gpu.bar1, name))


FB: Final = _memory("fb_memory_usage", "FB Memory Usage", _fb, "total reserved used free")
BAR1: Final = _memory("bar1_memory_usage", "BAR1 Memory Usage", _bar1, "total used free")


def absent_section(tag: str, label: str, *rows: tuple[str, str]) -> Section:
    """What an A100 has not."""
    return Section(tag, label, tuple(Leaf(name, words, absent) for name, words in rows))


def pending_section(
    tag: str, label: str, suffix: str, read: Callable[[int], Read], topics: str = ""
) -> Section:
    """A mode now, and after a reset."""
    rows = (
        Leaf(f"current_{suffix}", "Current", read(0)),
        Leaf(f"pending_{suffix}", "Pending", read(1)),
    )
    return Section(tag, label, rows, topics)
