"""Registers, stack and barriers of kernels as the real assembler gives them, where one is found.

Without one, or where it does not take a kernel, the engine's own estimate stands.
"""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from va100.perf.ptxas_log import read_log
from va100.profile.machine_code import load_count
from va100.work import KernelResources

_ARCHITECTURE: Final = "sm_80"
_PATIENCE_S: Final = 120


@dataclass(frozen=True, slots=True)
class Assembler:
    """A ``ptxas`` of NVIDIA's."""

    path: Path

    @property
    def identity(self) -> str:
        """What tells it from another one."""
        facts = self.path.stat()
        return f"{self.path} {facts.st_size} {facts.st_mtime_ns}"

    def resources(self, text: str, kernel: str) -> KernelResources | None:
        """Assemble one kernel of a PTX text; None when that fails."""
        with tempfile.TemporaryDirectory(prefix="va100-") as scratch:
            source, made = Path(scratch, "kernel.ptx"), Path(scratch, "kernel.cubin")
            source.write_text(text, encoding="utf-8")
            command = [
                str(self.path), f"-arch={_ARCHITECTURE}", "-v", "--entry", kernel,
                str(source), "-o", str(made),
            ]  # fmt: skip
            try:
                outcome = subprocess.run(  # noqa: S603 -- the assembler that was found
                    command, capture_output=True, text=True, check=False, timeout=_PATIENCE_S
                )
            except (OSError, subprocess.TimeoutExpired):
                return None
            if outcome.returncode:
                return None
            loads = load_count(made.read_bytes(), kernel) if made.exists() else None
        try:
            needs = read_log(outcome.stderr + outcome.stdout).kernel(kernel).resources
        except (StopIteration, KeyError, ValueError):
            return None
        return replace(needs, machine_load_count=loads)
