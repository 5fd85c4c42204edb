"""A process under check: tools on, findings explained as they come, written where they are read.

Findings go to a file of JSON lines after each launch, so that a program that crashes later has
told what was wrong; at the end come the leaks and a line that says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from va100.check.explain import CheckedKernel, explain
from va100.check.findings import STRICT_WARP_BIT, TOOL_BITS, Finding, Tool, merged
from va100.check.native import NativeChecker

KernelLookup = Callable[[int], CheckedKernel | None]
_ENTRY: Final = "finding"
_END: Final = "end"


class Session:
    """The checker of this process, from enabling to the last finding.

    ``kernel_of`` gives the kernel behind a number that the engine gave out.
    """

    def __init__(
        self, tools: Iterable[Tool], kernel_of: KernelLookup, *, strict_warp: bool = False
    ) -> None:
        self._native = NativeChecker()
        self._kernel_of = kernel_of
        self._tools = frozenset(tools)
        self._path: Path | None = None
        self._found: list[Finding] = []
        bits = sum(TOOL_BITS[t] for t in self._tools)
        self._native.enable(bits | (STRICT_WARP_BIT if strict_warp else 0))

    def write_to(self, path: Path) -> None:
        """Append findings to a file from now on, after each launch."""
        self._path = path
        self._native.call_after_launches(self._write)

    def findings(self) -> list[Finding]:
        """All findings so far, equal ones merged."""
        self._collect()
        return merged(self._found)

    def leaks(self) -> None:
        """Look for memory that was not freed."""
        self._native.look_for_leaks()
        self._collect()

    def close(self) -> None:
        """Turn the checker off."""
        self._native.call_after_launches(None)
        self._native.enable(0)

    def finish(self) -> None:
        """At the program's end: the leaks, and that this was the end."""
        self._native.look_for_leaks()
        self._write()
        if self._path is not None:
            _append(self._path, [{"type": _END}])
        self.close()

    def _collect(self) -> list[Finding]:
        new = []
        for raw in self._native.take():
            kernel, second = (
                self._kernel_of(number) if number else None
                for number in (raw.kernel, raw.second_kernel)
            )
            finding = explain(raw, kernel, second)
            if finding is not None and Tool(finding.tool) in self._tools:
                new.append(replace(finding, launch=int(raw.launch)))
        self._found += new
        return new

    def _write(self) -> None:
        new = merged(self._collect())
        if new and self._path is not None:
            _append(self._path, [{"type": _ENTRY, **f.as_json()} for f in new])


def _append(path: Path, lines: list[dict[str, Any]]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def read_findings(
    path: Path, *, first_launch: int = 1, last_launch: int = 0
) -> tuple[list[Finding], bool]:
    """Findings of a file, merged, and whether every process that wrote came to its end.

    A last line that was cut off is left out, and so is what was seen in launches before the first
    or after the last one asked for (0: all that come).
    """
    if not path.exists():
        return [], False
    lines = path.read_text(encoding="utf-8").splitlines()
    return parse_findings(lines, first_launch=first_launch, last_launch=last_launch)


def parse_findings(
    lines: Iterable[str], *, first_launch: int = 1, last_launch: int = 0
) -> tuple[list[Finding], bool]:
    """Read the lines of such a file, as :func:`read_findings` does."""
    found: list[Finding] = []
    ended = False
    for line in lines:
        try:
            data = json.loads(line)
        except ValueError:
            continue
        ended = ended or data.get("type") == _END
        if data.pop("type", "") != _ENTRY:
            continue
        finding = Finding.from_json(data)
        in_time = finding.launch >= first_launch and not 0 < last_launch < finding.launch
        if not finding.launch or in_time:
            found.append(finding)
    return merged(found), ended
