"""The Python call ``va100.time_kernel``: source, chip and clocks as people give them, resolved.

How a launch is timed is in :mod:`va100.profile.timing`.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from va100.assembly import engine
from va100.cli.environment import is_built
from va100.cli.toolchain import find_compiler
from va100.config import Settings, model_name
from va100.errors import SetupError
from va100.perf.clock import at_clock
from va100.perf.memory import Residency
from va100.profile.launch import Launch
from va100.profile.timing import Conditions, Shape, timed
from va100.spec.model import ChipSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is said of a call besides kernel, shape and arguments."""

    chip: str | None
    clocks: float | None
    warm: bool
    copy_back: bool
    ctas: int | None
    flags: Sequence[str]


def time_kernel(
    source: str | Path, kernel: str, shape: Shape, arguments: Sequence[Any], request: Request
) -> Launch:
    """Time one launch; the public call tells of its arguments."""
    if not is_built():
        raise SetupError("the native core is not built", remedy="make setup")
    settings = replace(Settings.from_environment(), profile=True)  # counted as profiles are
    conditions = Conditions(
        chip=_chip(request, settings),
        residency=Residency.L2 if request.warm else Residency.DRAM,
        copy_back=request.copy_back,
        cta_count=request.ctas,
        clock_hz=request.clocks,
    )
    text = ptx_of(source, request.flags, settings)
    # An engine keeps all that it ever compiled, so each call has its own; code is found on disk.
    return timed(engine(settings), text, kernel, shape, arguments, conditions)


def ptx_of(source: str | Path, flags: Sequence[str], settings: Settings) -> str:
    """Take PTX as it is, and compile CUDA C++; either may be a text or a file.

    Raises
    ------
    SetupError
        The file cannot be read, or the compiler is missing or refuses the source.
    """
    path = _path(source)
    text = str(source) if path is None else _read(path)
    if ".version" in text and ".target" in text and "__global__" not in text:
        return text
    if path is not None:
        return _compiled(path, flags, settings)
    return _compiled_text(text, flags, settings)


def _path(source: str | Path) -> Path | None:
    """A file, if a source is the name of one: one line, with a file's ending."""
    if isinstance(source, Path):
        return source
    name = source.strip()
    return Path(name) if "\n" not in name and name.endswith((".ptx", ".cu", ".cuda")) else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(
            f"{path}: {error.strerror}", remedy="give PTX, CUDA C++ or a file that holds either"
        ) from error


def _compiled_text(text: str, flags: Sequence[str], settings: Settings) -> str:
    """Compile a text, or find it compiled; one that includes files of its own is compiled anew."""
    words = [text, *flags, str(find_compiler(settings).path)]
    digest = hashlib.sha256("\0".join(words).encode()).hexdigest()
    kept = settings.cache_dir / "ptx" / f"{digest}.ptx"
    whole = '#include "' not in text
    if whole and kept.exists():
        return kept.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="va100-") as scratch:
        path = Path(scratch, "kernel.cu")
        path.write_text(text, encoding="utf-8")
        ptx = _compiled(path, flags, settings)
    if whole:
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{hashlib.sha256(ptx.encode()).hexdigest()[:8]}")
        part.write_text(ptx, encoding="utf-8")
        part.replace(kept)
    return ptx


def _compiled(path: Path, flags: Sequence[str], settings: Settings) -> str:
    compiler = find_compiler(settings)
    with tempfile.TemporaryDirectory(prefix="va100-") as scratch:
        out = Path(scratch, "kernel.ptx")
        command = [str(compiler.path), "-arch=compute_80", "-ptx", "-lineinfo", *flags, str(path)]
        outcome = subprocess.run(  # noqa: S603 -- found above
            [*command, "-o", str(out)], check=False, stdout=sys.stderr
        )
        if outcome.returncode or not out.exists():
            raise SetupError(
                f"nvcc could not compile {path}", remedy="correct what nvcc names above"
            )
        return out.read_text(encoding="utf-8")


def _chip(request: Request, settings: Settings) -> ChipSpec:
    if request.chip is not None:
        settings = replace(settings, model=model_name(request.chip, origin="chip"))
    if request.clocks is not None:
        at_clock(settings.chip, request.clocks)  # refuses what the chip does not run at
    return settings.chip
