"""What instances of this host may hold: memory, programs, a share of the processors.

Control groups of the kernel hold them where the host allows (version 2, or the older one); where
it does not, the program beside each instance watches, which is said.  Disks are always watched:
see :mod:`va100.cloud.drivers.watch`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

MOUNT: Final = Path("/sys/fs/cgroup")
_PARENT: Final = "va100-cloud"
_SHARE_PER_EIGHTH: Final = 128
_MOST_SHARES: Final = 10_000
_LEAST_LEFT_BYTES: Final = 1 << 30

JOIN: Final = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 71; shift; done; shift; exec "$@"'
"""A shell's program that goes into control groups and becomes another program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one instance may hold; 0: no limit."""

    memory_bytes: int = 0
    programs: int = 0
    """Threads count as programs."""
    disk_bytes: int = 0
    eighths: int = 8
    """Of a card: its share of the processors, when they are short."""


class Limits(Protocol):
    """A way of holding instances to their bounds."""

    def how(self) -> str:
        """By what, or why not, for people."""
        ...

    def holds(self) -> bool:
        """Whether memory and programs are held by the kernel, so that nobody has to watch."""
        ...

    def prepare(self, instance: str, bounds: Bounds) -> None:
        """Set an instance's bounds before it starts; the same again does nothing."""
        ...

    def joining(self, instance: str) -> list[str]:
        """Words that put a program under an instance's bounds, to stand before its own."""
        ...

    def trouble(self, instance: str) -> str:
        """What an instance ran into, for its tenant; empty: nothing."""
        ...

    def forget(self, instance: str) -> None:
        """Take back what was made for an instance that is not running."""
        ...


@dataclass(frozen=True, slots=True)
class Watched:
    """Nothing of the kernel's: the program beside each instance looks now and then."""

    why: str

    def how(self) -> str:
        """Say so."""
        return f"memory and programs are watched every second, not held by the kernel: {self.why}"

    def holds(self) -> bool:
        """No."""
        return False

    def prepare(self, instance: str, bounds: Bounds) -> None:
        """Nothing to prepare."""

    def joining(self, instance: str) -> list[str]:
        """Nothing stands before."""
        del instance
        return []

    def trouble(self, instance: str) -> str:
        """Nothing is known here."""
        del instance
        return ""

    def forget(self, instance: str) -> None:
        """Nothing to take back."""


_ONE: Final = MappingProxyType(
    {
        "memory": "memory.limit_in_bytes",
        "swap": "memory.memsw.limit_in_bytes",
        "programs": "pids.max",
        "share": "cpu.shares",
        "kills": "memory.oom_control",
        "refusals": "pids.events",
    }
)
_TWO: Final = MappingProxyType(
    {
        "memory": "memory.max",
        "swap": "memory.swap.max",
        "programs": "pids.max",
        "share": "cpu.weight",
        "kills": "memory.events",
        "refusals": "pids.events",
    }
)


@dataclass(frozen=True, slots=True)
class ControlGroups:
    """Control groups, of the unified hierarchy or of one for each controller.

    Parameters
    ----------
    folders : mapping of str to Path
        The folder of this cloud's groups for ``memory``, ``pids`` and, where there is one, ``cpu``.
    """

    version: int
    folders: Mapping[str, Path]

    def how(self) -> str:
        """Say so."""
        return (
            f"memory, programs and processors are held by control groups (version {self.version})"
        )

    def holds(self) -> bool:
        """Yes."""
        return True

    def _files(self) -> Mapping[str, str]:
        return _TWO if self.version == 2 else _ONE

    def _groups(self, instance: str) -> list[Path]:
        return sorted({folder / instance for folder in self.folders.values()})

    def prepare(self, instance: str, bounds: Bounds) -> None:
        """Make an instance's groups anew, unless something is in them, and set what they hold."""
        self.forget(instance)
        for group in self._groups(instance):
            group.mkdir(exist_ok=True)
        files = self._files()
        memory, programs = self.folders["memory"] / instance, self.folders["pids"] / instance
        if bounds.memory_bytes:
            if self.version == 1:  # memory alone may not be more than memory and swap together
                with contextlib.suppress(OSError):
                    (memory / files["swap"]).write_text("-1")
            (memory / files["memory"]).write_text(str(bounds.memory_bytes))
            no_swap = "0" if self.version == 2 else str(bounds.memory_bytes)
            with contextlib.suppress(OSError):  # a host without swap need not have the file
                (memory / files["swap"]).write_text(no_swap)
        if bounds.programs:
            (programs / files["programs"]).write_text(str(bounds.programs))
        if "cpu" in self.folders:
            share = min(_MOST_SHARES, _SHARE_PER_EIGHTH * bounds.eighths)
            with contextlib.suppress(OSError):
                (self.folders["cpu"] / instance / files["share"]).write_text(str(share))

    def joining(self, instance: str) -> list[str]:
        """A shell that goes into the groups and becomes the program."""
        doors = [str(group / "cgroup.procs") for group in self._groups(instance)]
        return ["/bin/sh", "-c", JOIN, "sh", *doors, "--"]

    def trouble(self, instance: str) -> str:
        """Whether the kernel killed a program for memory, or refused to start one."""
        files = self._files()
        killed = _counts(self.folders["memory"] / instance / files["kills"]).get("oom_kill", 0)
        if killed:
            limit = _bytes(self.folders["memory"] / instance / files["memory"])
            return f"out of memory: {killed} of its programs were killed at {_gib(limit)}"
        refused = _counts(self.folders["pids"] / instance / files["refusals"]).get("max", 0)
        if refused:
            most = _bytes(self.folders["pids"] / instance / files["programs"])
            return f"too many programs: {refused} were not started beyond {most}"
        return ""

    def forget(self, instance: str) -> None:
        """Remove an instance's groups; one that still holds a program stays until the next time."""
        for group in self._groups(instance):
            with contextlib.suppress(OSError):
                group.rmdir()


def _counts(path: Path) -> dict[str, int]:
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()}


def _bytes(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def _gib(count: int) -> str:
    return f"{count / (1 << 30):.3g} GiB"


def choose_limits(mount: Path = MOUNT, own: str = "", total_bytes: int | None = None) -> Limits:
    """The best that this host allows, found out by trying.

    Parameters
    ----------
    own : str
        What ``/proc/self/cgroup`` says; empty: read it.
    """
    own = own or _read_own()
    total_bytes = host_memory_bytes() if total_bytes is None else total_bytes
    whole = max(total_bytes - max(_LEAST_LEFT_BYTES, total_bytes // 10), total_bytes // 2)
    try:
        if (mount / "cgroup.controllers").exists():
            return _unified(mount, own, whole)
        if (mount / "memory" / "memory.limit_in_bytes").exists():
            return _separate(mount, whole)
    except OSError as error:
        return Watched(f"{error.filename}: {error.strerror}")
    return Watched(f"no control groups at {mount}")


def _unified(mount: Path, own: str, whole: int) -> Limits:
    """Groups below this process's own, or at the top for who may make them there."""
    below = next((line[3:] for line in own.splitlines() if line.startswith("0::")), "/")
    base = mount / below.strip("/")
    parent = (mount if os.access(mount / "cgroup.subtree_control", os.W_OK) else base) / _PARENT
    offered = set((parent.parent / "cgroup.controllers").read_text().split())
    missing = {"memory", "pids"} - offered
    if missing:
        return Watched(f"{parent.parent} offers no {' and '.join(sorted(missing))} controller")
    wanted = " ".join(f"+{name}" for name in ("memory", "pids", "cpu") if name in offered)
    if parent.parent == base != mount:  # a group with programs of its own cannot have parts
        leaf = base / f"{_PARENT}-itself"
        leaf.mkdir(exist_ok=True)
        (leaf / "cgroup.procs").write_text("0")
    (parent.parent / "cgroup.subtree_control").write_text(wanted)
    parent.mkdir(exist_ok=True)
    (parent / "cgroup.subtree_control").write_text(wanted)
    (parent / "memory.max").write_text(str(whole))
    return ControlGroups(2, {name: parent for name in ("memory", "pids", "cpu") if name in offered})


def _separate(mount: Path, whole: int) -> Limits:
    folders = {}
    for name in ("memory", "pids", "cpu"):
        if (mount / name / "cgroup.procs").exists():
            folders[name] = mount / name / _PARENT
            folders[name].mkdir(exist_ok=True)
    missing = {"memory", "pids"} - set(folders)
    if missing:
        return Watched(f"{mount} has no {' and '.join(sorted(missing))} controller")
    with contextlib.suppress(OSError):  # an old kernel's switch; newer ones have it on
        (folders["memory"] / "memory.use_hierarchy").write_text("1")
    (folders["memory"] / "memory.limit_in_bytes").write_text(str(whole))
    return ControlGroups(1, folders)


def host_memory_bytes() -> int:
    """Memory of this host."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _read_own() -> str:
    try:
        return Path("/proc/self/cgroup").read_text()
    except OSError:
        return ""


def bounded(words: Sequence[str], most_file_bytes: int) -> list[str]:
    """Words that run a program whose files cannot grow further, and which leaves no core."""
    blocks = -(-most_file_bytes // 512)
    text = f'ulimit -c 0; ulimit -S -f {blocks}; exec "$@"'
    return ["/bin/sh", "-c", text, "sh", *words]
