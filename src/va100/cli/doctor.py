"""``va100 doctor``: what is installed, what works, and what to do about the rest."""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from va100 import config
from va100.cli import environment, toolchain, xla
from va100.cli.version import VERSION
from va100.config import Settings, find_program
from va100.gpu.native import LIBRARY_NAME, NATIVE_DIR

LEAST_PYTHON: Final = (3, 11)
SELFTEST_S: Final = 120
"""Seconds after which the self-test counts as hung."""
_NVRTC_FOLDER: Final = Path("nvidia", "cu13", "lib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at."""

    name: str
    ok: bool
    needed: bool
    """Whether the main job, running CUDA programs, depends on it."""
    detail: str
    remedy: str = ""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "doctor",
        help="say what is installed, what works and what to do",
        description="Look at this machine. The status is 1 when CUDA programs cannot run.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print every check; fail when one that is needed fails."""
    settings = Settings.from_environment()
    checks = [*installed(settings), working(settings)]
    healthy = all(check.ok for check in checks if check.needed)
    if args.json:
        entries = [asdict(check) for check in checks]
        print(json.dumps({"version": VERSION, "works": healthy, "checks": entries}, indent=2))
    else:
        _print(checks, works=healthy)
    return 0 if healthy else 1


def installed(settings: Settings) -> Iterator[Check]:
    """Look for every part, without running any."""
    yield Check(
        name="Python",
        ok=sys.version_info[:2] >= LEAST_PYTHON,
        needed=True,
        detail=f"{platform.python_version()} at {sys.executable}",
        remedy="install Python 3.11 or newer",
    )
    yield Check(
        name="native core",
        ok=environment.is_built(),
        needed=True,
        detail=str(NATIVE_DIR / LIBRARY_NAME),
        remedy="make setup",
    )
    yield _python_library()
    for package, needed in (("numpy", True), ("llvmlite", True)):
        version = installed_version(package)
        yield Check(
            name=package,
            ok=version is not None,
            needed=needed,
            detail=version or "not installed",
            remedy=f"pip install {package}",
        )
    yield from _compilers(settings)
    yield _nvrtc()
    if xla.plugin() is not None:
        yield _jax()


def working(settings: Settings) -> Check:
    """Run a tiny kernel in a child."""
    ok, detail = False, "not tried: the native core is not built"
    if environment.is_built():
        ok, detail = _selftest(settings)
    return Check(
        name="running a kernel",
        ok=ok,
        needed=True,
        detail=detail,
        remedy="make setup; then report what is said here, with `va100 doctor --json`",
    )


def installed_version(package: str) -> str | None:
    """Version of an installed package, from the name of its metadata folder."""
    for entry in sys.path:
        for folder in Path(entry or ".").glob(f"{package}-*.dist-info"):
            return folder.name.removeprefix(f"{package}-").removesuffix(".dist-info")
    return None


def _selftest(settings: Settings) -> tuple[bool, str]:
    try:
        outcome = subprocess.run(
            [sys.executable, "-m", "va100.cli.selftest"],
            env=environment.child_environment(settings),
            capture_output=True,
            text=True,
            check=False,
            timeout=SELFTEST_S,
        )
    except subprocess.TimeoutExpired:
        return False, f"no answer in {SELFTEST_S} s"
    if outcome.returncode == 0:
        return True, outcome.stdout.strip()
    said = outcome.stderr.strip() or f"ended with status {outcome.returncode}"
    return False, said.splitlines()[-1]


def _python_library() -> Check:
    library = config.python_library()
    return Check(
        name="libpython",
        ok=library is not None,
        needed=False,
        detail=str(
            library or "this Python has no shared library; .cu files and executables can't run"
        ),
        remedy=toolchain.INSTALL_LIBPYTHON,
    )


def _compilers(settings: Settings) -> Iterator[Check]:
    """Look for what turns .cu files into programs."""
    for name, purpose in (("nvcc", "compiles .cu files"), ("ptxas", "counts registers exactly")):
        path = find_program(name, settings)
        yield Check(
            name=name,
            ok=path is not None,
            needed=False,
            detail=f"{path}{_release(path)}" if path else f"not found; {purpose}",
            remedy=toolchain.INSTALL_NVCC,
        )
    host = shutil.which("g++", path=settings.search_path)
    yield Check(
        name="host compiler",
        ok=host is not None,
        needed=False,
        detail=host or "no g++; nvcc needs one",
        remedy=toolchain.INSTALL_HOST_COMPILER,
    )


def _release(path: Path) -> str:
    release = toolchain.nvcc_release(path)
    return f", release {release[0]}.{release[1]}" if release else ""


def _nvrtc() -> Check:
    found = next(
        (
            library
            for entry in sys.path
            for library in Path(entry or ".", _NVRTC_FOLDER).glob("libnvrtc.so.*")
        ),
        None,
    )
    return Check(
        name="NVRTC",
        ok=found is not None,
        needed=False,
        detail=str(found or "not found; cuda.core compiles CUDA C++ with it"),
        remedy="pip install 'va100[nvrtc]'",
    )


def _jax() -> Check:
    """Whether XLA, JAX's compiler, will come to our ptxas."""
    foreign = xla.foreign_assembler()
    return Check(
        name="JAX",
        ok=foreign is None,
        needed=False,
        detail=f"{foreign} makes machine code before ours is asked"
        if foreign
        else str(xla.plugin()),
        remedy="pip uninstall nvidia-cuda-nvcc",
    )


def _print(checks: list[Check], *, works: bool) -> None:
    print(f"va100 {VERSION}")
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark = "ok" if check.ok else ("NO" if check.needed else "--")
        print(f"  {mark}  {check.name.ljust(width)}  {check.detail}")
        if not check.ok:
            print(f"      {'':{width}}  to fix: {check.remedy}")
    print("CUDA programs run here." if works else "CUDA programs cannot run here yet.")
