"""How an instance is kept apart on this host: bubblewrap, or nothing, which is said.

Inside, an instance has a user of its own, its home folder, the host's programs to read, and no
network but its own loopback; it sees no other instance, no other program, and no other file.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from va100.cloud.drivers.base import Isolation

HOME: Final = "/workspace"
_SCRATCH: Final = str(Path("/", "tmp"))
_SCRATCH_BYTES: Final = 4 << 30
_USER: Final = "1000"
_READABLE: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC: Final = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "ssl", "localtime",
               "terminfo", "bash.bashrc", "profile")  # fmt: skip


class Sandbox(Protocol):
    """A way of keeping an instance's programs apart."""

    def isolation(self) -> Isolation:
        """How, or why not."""
        ...

    def home(self, folder: Path) -> str:
        """The home folder as its programs see it."""
        ...

    def enclosed(
        self, folder: Path, name: str, command: Sequence[str], environment: Mapping[str, str]
    ) -> tuple[list[str], int]:
        """The words that run a command inside, and how many programs stand around it."""
        ...

    def joined(
        self, pid: int, folder: Path, command: Sequence[str], environment: Mapping[str, str]
    ) -> list[str]:
        """The words that run a command beside a program that runs inside."""
        ...


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Namespaces of the kernel, entered with bubblewrap."""

    program: str
    readable: tuple[Path, ...]
    """Folders besides the system's that programs may read: Python's, ours."""
    sized: bool = True
    """Whether it can give a size to the folders that are kept in memory."""

    def isolation(self) -> Isolation:
        """Say so."""
        return Isolation(isolates=True, how="bubblewrap: own user, files, programs and network")

    def home(self, folder: Path) -> str:
        """The home folder as its programs see it."""
        del folder
        return HOME

    def enclosed(
        self, folder: Path, name: str, command: Sequence[str], environment: Mapping[str, str]
    ) -> tuple[list[str], int]:
        """The words that run a command inside."""
        words = [self.program, "--unshare-all", "--unshare-user", "--uid", _USER, "--gid", _USER,
                 "--hostname", name, "--die-with-parent", "--cap-drop", "ALL", "--clearenv",
                 "--proc", "/proc", "--dev", "/dev", "--dir", "/etc"]  # fmt: skip
        for scratch in (_SCRATCH, "/run", "/dev/shm"):  # noqa: S108 -- inside, each its own
            words += [*(("--size", str(_SCRATCH_BYTES)) if self.sized else ()), "--tmpfs", scratch]
        for path in _READABLE:
            if os.path.islink(path):
                words += ["--symlink", os.readlink(path), path]
            elif os.path.isdir(path):
                words += ["--ro-bind", path, path]
        for entry in _ETC:
            words += ["--ro-bind-try", f"/etc/{entry}", f"/etc/{entry}"]
        for entry, text in (("passwd", folder / "passwd"), ("group", folder / "group")):
            words += ["--ro-bind", str(text), f"/etc/{entry}"]
        for extra in self.readable:
            words += ["--ro-bind", str(extra), str(extra)]
        words += ["--bind", str(folder / "home"), HOME, "--chdir", HOME]
        words += [
            "--remount-ro",
            "/dev",
            "--remount-ro",
            "/",
        ]  # else they hold what is written there
        for key, value in environment.items():
            words += ["--setenv", key, value]
        return [*words, "--", *command], 2

    def joined(
        self, pid: int, folder: Path, command: Sequence[str], environment: Mapping[str, str]
    ) -> list[str]:
        """The words that run a command beside a program that runs inside."""
        del folder
        pairs = [f"{key}={value}" for key, value in environment.items()]
        return ["nsenter", "--target", str(pid), "--user", "--mount", "--pid", "--net", "--ipc",
                "--uts", "--root", "--preserve-credentials", "--",
                "env", "-i", f"--chdir={HOME}", *pairs, *command]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Nothing:
    """No isolation: programs run as whoever runs the cloud, for tenants that are trusted."""

    why: str

    def isolation(self) -> Isolation:
        """Say so."""
        return Isolation(isolates=False, how=self.why)

    def home(self, folder: Path) -> str:
        """The home folder as its programs see it."""
        return str(folder / "home")

    def enclosed(
        self, folder: Path, name: str, command: Sequence[str], environment: Mapping[str, str]
    ) -> tuple[list[str], int]:
        """The words that run a command."""
        del folder, name, environment
        return list(command), 0

    def joined(
        self, pid: int, folder: Path, command: Sequence[str], environment: Mapping[str, str]
    ) -> list[str]:
        """The words that run a command beside it."""
        del pid, folder
        pairs = [f"{key}={value}" for key, value in environment.items()]
        return ["env", "-i", *pairs, *command]


def choose_sandbox(search_path: str, readable: Sequence[Path]) -> Sandbox:
    """The best that this host allows, found out by trying."""
    program = shutil.which("bwrap", path=search_path)
    if program is None:
        return Nothing("bubblewrap is not installed")
    if shutil.which("nsenter", path=search_path) is None:
        return Nothing("nsenter (util-linux) is not installed")
    problem = ""
    for size in (("--size", "1048576"), ()):  # older ones know no sizes
        trial = [program, "--unshare-all", "--unshare-user", "--ro-bind", "/", "/", *size,
                 "--tmpfs", _SCRATCH, "--proc", "/proc", "true"]  # fmt: skip
        tried = subprocess.run(trial, capture_output=True, text=True, check=False, timeout=20)  # noqa: S603
        if not tried.returncode:
            return Bubblewrap(program, tuple(_outermost(readable)), sized=bool(size))
        problem = problem or tried.stderr.strip()[:200]
    return Nothing(f"bubblewrap does not work here: {problem}")


def python_folders() -> list[Path]:
    """Folders that this Python and its packages are in."""
    packages = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    folders = [sys.prefix, sys.base_prefix, sys.exec_prefix, *packages]
    return [Path(folder).resolve() for folder in folders if Path(folder).is_dir()]


def _outermost(folders: Sequence[Path]) -> list[Path]:
    """Folders that lie in none of the others, nor in the system's."""
    system = [Path(path) for path in _READABLE]
    found: list[Path] = []
    for folder in sorted(set(folders)):
        above = [*system, *found]
        if not any(folder == other or other in folder.parents for other in above):
            found.append(folder)
    return found
