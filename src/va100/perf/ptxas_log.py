"""What ``ptxas -v`` says of functions: registers, spills, stack, shared and constant memory.

Any of CUDA 10 to 13's wordings; what is not understood is noted and never an error.  Nothing here
runs an assembler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from va100.work import KernelResources

_LINE: Final = re.compile(r"(?:ptxas|nvlink)\s*(?::\s*)?(info|warning|error|fatal)\s*:\s*(.*)")
_COMPILING: Final = re.compile(r"Compiling (entry function|function) '([^']*)' for '([^']*)'")
_PROPERTIES: Final = re.compile(r"Function properties for '?([^':]+)'?:?\s*(.*)")
_MODULE: Final = re.compile(r"\d+ bytes gmem")
_TIME: Final = re.compile(r"Compile time = ([\d.]+) ms")
_CONSTANT: Final = re.compile(r"(\d+) bytes cmem\[(\d+)\]")
_SUM: Final = re.compile(r"(\d+)(?:\+(\d+))? bytes (smem|lmem)")
_AMOUNTS: Final = {
    "registers": re.compile(r"(?:used )?(\d+) registers?", re.IGNORECASE),
    "barriers": re.compile(r"(?:used )?(\d+) barriers?", re.IGNORECASE),
    "stack_bytes": re.compile(r"(\d+) bytes stack frame|(\d+) stack"),
    "spill_store_bytes": re.compile(r"(\d+) bytes spill stores?"),
    "spill_load_bytes": re.compile(r"(\d+) bytes spill loads?"),
    "cumulative_stack_bytes": re.compile(r"(\d+) bytes cumulative stack size"),
    "global_bytes": re.compile(r"(\d+) bytes gmem"),
    "textures": re.compile(r"(\d+) textures?"),
    "samplers": re.compile(r"(\d+) samplers?"),
    "surfaces": re.compile(r"(\d+) surfaces?"),
}
"""Amount, to what a part of a line that gives it looks like as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledFunction:
    """One function of a log; ``None`` is what its lines do not say."""

    name: str
    architecture: str = ""
    is_kernel: bool = False
    registers: int | None = None
    barriers: int | None = None
    stack_bytes: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    cumulative_stack_bytes: int | None = None
    shared_bytes: int | None = None
    local_bytes: int | None = None
    global_bytes: int | None = None
    textures: int | None = None
    samplers: int | None = None
    surfaces: int | None = None
    constant_bytes: tuple[tuple[int, int], ...] = ()
    """Bank and bytes."""
    compile_time_s: float | None = None

    @property
    def spills(self) -> bool:
        """Whether registers did not do."""
        return bool(self.spill_store_bytes or self.spill_load_bytes)

    @property
    def resources(self) -> KernelResources:
        """What it needs of an SM, as occupancy asks.

        Raises
        ------
        ValueError
            The log gives no registers.
        """
        if self.registers is None:
            raise ValueError(f"the log gives no registers of {self.name}")
        return KernelResources(
            registers_per_thread=self.registers,
            static_shared_bytes=self.shared_bytes or 0,
            local_bytes=max(self.cumulative_stack_bytes or 0, self.stack_bytes or 0),
            barrier_count=self.barriers or 0,
        )


@dataclass(frozen=True, slots=True)
class AssemblerLog:
    """A whole log."""

    functions: tuple[AssembledFunction, ...]
    notes: tuple[str, ...]
    """Warnings, and what was not understood."""

    def kernel(self, name: str) -> AssembledFunction:
        """The function of a name.

        Raises
        ------
        KeyError
        """
        return next(f for f in self.functions if f.name == name)


@dataclass(slots=True)
class _Reader:
    functions: dict[tuple[str, str], AssembledFunction] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    current: tuple[str, str] | None = None
    subject: tuple[str, str] | None = None
    """The function that properties were given of last; a kernel's own lines come after."""

    def line(self, text: str) -> None:
        """One line of the log."""
        text = text.strip()
        told = _LINE.match(text)
        if told is not None and told[1] == "info":
            self._info(told[2])
        elif told is not None:
            self.notes.append(f"{told[1]}: {told[2]}")
        elif text and self.subject is not None:
            self._amounts(self.subject, text)
        elif text:
            self.notes.append(text)

    def _info(self, text: str) -> None:
        if found := _COMPILING.match(text):
            self.current = self.subject = (found[2], found[3])
            self._put(self.current, is_kernel=found[1].startswith("entry"))
        elif found := _PROPERTIES.match(text):
            self.subject = (found[1].strip(), self.current[1] if self.current else "")
            self._put(self.subject)
            self._amounts(self.subject, found[2])
        elif _MODULE.match(text):
            self.current = self.subject = None  # of the whole module, before its functions
        elif not self._of_the_current(text):
            self.notes.append(text)

    def _of_the_current(self, text: str) -> bool:
        """What is said without a name: of the kernel, or by the linker of the function before."""
        owner = self.subject if text.startswith("used") else self.current
        if owner is None:
            return False
        if found := _TIME.match(text):
            self._put(owner, compile_time_s=float(found[1]) / 1e3)
        elif text.lower().startswith("used"):
            self._amounts(owner, text)
        else:
            return False
        return True

    def _put(self, key: tuple[str, str], **facts: object) -> None:
        before = self.functions.get(key)
        if before is None:
            before = AssembledFunction(name=key[0], architecture=key[1])
        self.functions[key] = replace(before, **facts)  # type: ignore[arg-type]

    def _amounts(self, key: tuple[str, str], text: str) -> None:
        """Parts between commas, each an amount; others are noted."""
        for part in filter(None, (p.strip() for p in text.split(","))):
            facts = dict(self._facts(key, part))
            if facts:
                self._put(key, **facts)
            else:
                self.notes.append(f"{key[0]}: {part}")

    def _facts(self, key: tuple[str, str], part: str) -> Iterator[tuple[str, object]]:
        if found := _CONSTANT.fullmatch(part):
            known = dict(self.functions[key].constant_bytes) | {int(found[2]): int(found[1])}
            yield "constant_bytes", tuple(sorted(known.items()))
        elif found := _SUM.fullmatch(part):
            amount = int(found[1]) + int(found[2] or 0)
            yield {"smem": "shared_bytes", "lmem": "local_bytes"}[found[3]], amount
        for name, pattern in _AMOUNTS.items():
            if found := pattern.fullmatch(part):
                yield name, int(next(group for group in found.groups() if group is not None))
                return


def read_log(text: str) -> AssemblerLog:
    """Read a log, whatever else is in it.

    A function that was assembled for several architectures comes once for each.
    """
    reader = _Reader()
    for line in text.splitlines():
        reader.line(line)
    return AssemblerLog(tuple(reader.functions.values()), tuple(reader.notes))
