"""Compiling a CUDA C++ program with ``nvcc`` for a virtual GPU, and keeping what came out.

A binary is kept under the hash of every file that went into it, the flags and the compiler, so an
edit of a header is noticed and a mere touch is not.  Files of the toolkit and of the system are
trusted while their size and time stay as they were.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from va100.config import Settings
from va100.errors import SetupError
from va100.gpu.native import NATIVE_DIR, NVCC_DIR, PTXAS

INSTALL_NVCC: Final = "pip install 'va100[nvcc]'"
INSTALL_HOST_COMPILER: Final = "apt-get install g++"
INSTALL_LIBPYTHON: Final = (
    f"apt-get install libpython{sys.version_info[0]}.{sys.version_info[1]}, "
    "or use a Python built with --enable-shared"
)
WHEEL_PROGRAM: Final = Path("nvidia", "cu13", "bin")
_RELEASE: Final = re.compile(r"release (\d+)\.(\d+)")
_SOURCES: Final = (".cu", ".cpp", ".cc", ".cxx", ".c")
_SYSTEM: Final = ("/usr/", "/opt/", "/lib/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """An ``nvcc`` and what tells it from another one."""

    path: Path
    release: tuple[int, int]

    @property
    def runtime_name(self) -> str:
        """File name of the CUDA runtime that its programs ask for."""
        return f"libcudart.so.{self.release[0]}"


def find_program(name: str, settings: Settings) -> Path | None:
    """Look for a CUDA program: in ``PATH``, in ``CUDA_HOME``, in NVIDIA's Python wheels.

    Ours that stand before them in ``PATH`` are passed over.
    """
    ours = {str(NVCC_DIR), str(PTXAS.parent)}
    places = [entry for entry in settings.search_path.split(os.pathsep) if entry not in ours]
    found = shutil.which(name, path=os.pathsep.join(places))
    if found is not None:
        return Path(found)
    folders = [settings.cuda_home / "bin"] if settings.cuda_home is not None else []
    folders += [Path(entry) / WHEEL_PROGRAM for entry in sys.path if entry]
    for folder in folders:
        if os.access(folder / name, os.X_OK):
            return folder / name
    return None


def find_compiler(settings: Settings) -> Compiler:
    """Find ``nvcc`` and its host compiler.

    Raises
    ------
    SetupError
        Either is missing or does not run.
    """
    path = find_program("nvcc", settings)
    if path is None:
        raise SetupError("no nvcc was found, which compiles .cu files", remedy=INSTALL_NVCC)
    if shutil.which("g++", path=settings.search_path) is None:
        raise SetupError(
            "no g++ was found, which nvcc needs for host code", remedy=INSTALL_HOST_COMPILER
        )
    release = nvcc_release(path)
    if release is None:
        raise SetupError(f"{path} does not run or is no nvcc", remedy=INSTALL_NVCC)
    return Compiler(path=path, release=release)


def nvcc_release(path: Path) -> tuple[int, int] | None:
    """Ask a compiler for its release; None when it does not answer."""
    try:
        answer = subprocess.run(  # noqa: S603 -- the very program the user has in PATH
            [path, "--version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _RELEASE.search(answer.stdout)
    return (int(match.group(1)), int(match.group(2))) if match else None


def compiled(source: Path, flags: Sequence[str], settings: Settings) -> Path:
    """Compile a program with a ``main``, or find it compiled before.

    Parameters
    ----------
    flags : sequence of str
        For ``nvcc``, besides those that aim at a virtual GPU.

    Raises
    ------
    SetupError
        Something that compiling needs is missing, or ``nvcc`` refused the program; what it said
        is on standard error.
    """
    folder = settings.cache_dir / "programs"
    path = find_program("nvcc", settings)
    record = folder / f"{_recipe_hash(source, flags, path)}.json"
    kept = _kept(record)
    return kept if kept is not None else _build(source, flags, record, settings)


def compile_command(source: Path, flags: Sequence[str], compiler: Compiler, out: Path) -> list[str]:
    """Spell the command: PTX for sm_80 inside, our runtime instead of the static one.

    nvcc links device code only where it links a runtime; ours is then beside ``out``.
    """
    linked = is_relocatable(flags)
    return [
        str(compiler.path),
        "-arch=compute_80",
        "-cudart",
        "shared" if linked else "none",
        *(() if "-G" in flags else ("-lineinfo",)),  # -G tells lines too, and warns of both
        *flags,
        str(source),
        "-o",
        str(out),
        *([f"-L{out.parent}"] if linked else []),
        f"-L{NATIVE_DIR}",
        f"-l:{compiler.runtime_name}",
        "-Xlinker",
        f"-rpath={NATIVE_DIR}",
    ]


def is_relocatable(flags: Sequence[str]) -> bool:
    """Tell whether device code of several files is to be linked."""
    spelled = {*flags, *(f"{flag}={value}" for flag, value in pairwise(flags))}
    return not spelled.isdisjoint({"-rdc=true", "--relocatable-device-code=true"})


def _build(source: Path, flags: Sequence[str], record: Path, settings: Settings) -> Path:
    compiler = find_compiler(settings)
    if not (NATIVE_DIR / compiler.runtime_name).exists():
        raise SetupError(f"the native core has no {compiler.runtime_name}", remedy="make setup")
    record.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=record.parent) as scratch:
        out, listing = Path(scratch, source.stem), Path(scratch, "depends")
        Path(scratch, "libcudart.so").symlink_to(NATIVE_DIR / compiler.runtime_name)
        command = compile_command(source, flags, compiler, out)
        outcome = subprocess.run(  # noqa: S603 -- found above
            [*command, "-MD", "-MF", str(listing)], check=False, stdout=sys.stderr
        )
        if outcome.returncode != 0 or not out.exists():
            raise SetupError(
                f"nvcc could not compile {source}", remedy="correct what nvcc names above"
            )
        rules = [listing.read_text(), *_rules(source, flags, compiler)]
        files = {name: _state(Path(name)) for rule in rules for name in depended_on(rule)}
        files = {name: state for name, state in files.items() if state is not None}
        key = _sha256(json.dumps([command[:-1], files, compiler.release], sort_keys=True))
        binary = record.parent / key / source.stem
        binary.parent.mkdir(exist_ok=True)
        out.replace(binary)
        _write_whole(record, json.dumps({"files": files, "binary": str(binary)}))
    return binary


def _rules(source: Path, flags: Sequence[str], compiler: Compiler) -> list[str]:
    """What the program's files depend on when there are several: nvcc's list is of one only."""
    others = [flag for flag in flags if flag.endswith(_SOURCES) and Path(flag).is_file()]
    plain = [flag for flag in flags if flag not in others]
    sources = [str(source), *others] if others else []
    return [
        subprocess.run(  # noqa: S603 -- found above
            [compiler.path, "-arch=compute_80", *plain, "-M", name],
            check=False,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        for name in sources
    ]


def depended_on(listing: str) -> list[str]:
    """Read the files out of a rule as ``make`` spells it."""
    _, _, names = listing.replace("\\\n", " ").partition(" : ")
    spaced = names.replace("\\ ", "\0").split()
    return [os.path.realpath(name.replace("\0", " ")) for name in spaced]


def _kept(record: Path) -> Path | None:
    """Find the binary of a record whose files are all as they were; None otherwise."""
    try:
        known = json.loads(record.read_text())
        binary = Path(known["binary"])
        same = all(_unchanged(Path(name), state) for name, state in known["files"].items())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return binary if same and os.access(binary, os.X_OK) else None


def _unchanged(path: Path, state: list[Any]) -> bool:
    if not str(path).startswith(_SYSTEM):
        return _state(path) == state
    try:
        now = path.stat()
    except OSError:
        return False
    return [now.st_size, now.st_mtime_ns] == state[:2] or _state(path) == state


def _state(path: Path) -> list[Any] | None:
    """Size, time and hash of a file; the time only matters for files outside the project."""
    try:
        content, about = path.read_bytes(), path.stat()
    except OSError:
        return None
    time_ns = about.st_mtime_ns if str(path).startswith(_SYSTEM) else 0
    return [about.st_size, time_ns, hashlib.sha256(content).hexdigest()]


def _recipe_hash(source: Path, flags: Sequence[str], nvcc: Path | None) -> str:
    """Name of the record: what is known before any file is read."""
    identity: list[Any] = [os.path.realpath(source), list(flags), str(NATIVE_DIR), str(nvcc)]
    if nvcc is not None:
        about = nvcc.stat()
        identity += [about.st_size, about.st_mtime_ns]
    return _sha256(json.dumps(identity))


def _write_whole(path: Path, text: str) -> None:
    """Write so that a reader sees the old text or the new one, never a part."""
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    Path(name).replace(path)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
