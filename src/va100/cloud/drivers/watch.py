"""What the program beside an instance watches: how much its disk holds, and its programs.

A disk that is over its size is closed to writing, file by file, until something is deleted; a
tenant that writes on all the same has its programs ended.  How often it looks follows from how
long a look takes.  Memory and programs are watched here only where the kernel does not hold them.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from va100.cloud.drivers import procfs

LEAST_PAUSE_S: Final = 1.0
_CALM_PAUSE_S: Final = 3.0
"""While a disk is not half full."""
_PAUSES_PER_LOOK: Final = 20
_ENTRY_BYTES: Final = 1024
"""What a file costs besides its blocks: its entry and its inode."""
_OPEN_BELOW: Final = 0.95
_TOO_FAR_BYTES: Final = 64 << 20


class Watch:
    """Looks after one instance's bounds.

    Parameters
    ----------
    order : mapping
        The shim's order: ``disk_bytes``, ``memory_bytes``, ``programs`` (each 0: not to be
        watched).
    members : callable
        Programs of the instance, each time anew.
    tell : callable
        Takes what the instance ran into, for its tenant.
    spent : callable
        Processor time that looking has taken, in seconds.
    """

    def __init__(
        self,
        home: Path,
        order: Mapping[str, int],
        members: Callable[[], Sequence[procfs.Program]],
        tell: Callable[[str], None],
        clock: Callable[[], float],
        spent: Callable[[], float],
    ) -> None:
        self.home = home
        self.disk_bytes = int(order.get("disk_bytes", 0))
        self.memory_bytes = int(order.get("memory_bytes", 0))
        self.programs = int(order.get("programs", 0))
        self.file_bytes = int(order.get("file_bytes", 0)) or resource.RLIM_INFINITY
        self.members = members
        self.tell = tell
        self.clock = clock
        self.spent = spent
        self.next_s = 0.0
        self.closed = False
        self.near = self.memory_bytes > 0 or self.programs > 0
        """Whether a bound may be reached soon."""

    def look(self) -> None:
        """Look if it is time."""
        begun_s = self.clock()
        if begun_s < self.next_s:
            return
        before_s = self.spent()
        if self.memory_bytes or self.programs:
            self._look_at_programs()
        if self.disk_bytes:
            self._look_at_disk()
        took_s = self.spent() - before_s
        least_s = LEAST_PAUSE_S if self.near else _CALM_PAUSE_S
        self.next_s = begun_s + max(least_s, _PAUSES_PER_LOOK * took_s)

    def _look_at_programs(self) -> None:
        members = list(self.members())
        if self.programs and len(members) > self.programs:
            self.tell(f"too many programs: {len(members)}, its limit is {self.programs}")
            _kill(members)
            return
        held = sum(member.memory_bytes for member in members)
        if self.memory_bytes and held > self.memory_bytes:
            largest = max(members, key=lambda member: member.memory_bytes)
            self.tell(
                f"out of memory: its programs held {_mib(held)}, its limit is "
                f"{_mib(self.memory_bytes)}; the largest was ended"
            )
            _kill([largest])

    def _look_at_disk(self) -> None:
        used = disk_use_bytes(self.home, enough=self.disk_bytes + 2 * _TOO_FAR_BYTES)
        self.near = self.near or used > self.disk_bytes // 2
        if used > self.disk_bytes + _TOO_FAR_BYTES:
            self.tell(f"disk full: its size is {_mib(self.disk_bytes)}; its programs were ended "
                      "since they wrote on")  # fmt: skip
            self._close(self.members())
            _kill(list(self.members()))
        elif used > self.disk_bytes:
            if not self.closed:
                self.tell(f"disk full: its size is {_mib(self.disk_bytes)}; delete something")
            self.closed = True
            self._close(self.members())
        elif self.closed and used < _OPEN_BELOW * self.disk_bytes:
            self.closed = False
            self.tell("")
            for member in self.members():
                _bound(member.pid, self.file_bytes)

    def _close(self, members: Sequence[procfs.Program]) -> None:
        for member in members:
            _bound(member.pid, 0)


def _bound(pid: int, file_bytes: int) -> None:
    """Let no file that a program writes grow beyond a size."""
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        soft = file_bytes if hard == resource.RLIM_INFINITY else min(file_bytes, hard)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


def _kill(members: Sequence[procfs.Program]) -> None:
    for member in reversed(members):
        with contextlib.suppress(OSError):
            os.kill(member.pid, signal.SIGKILL)


def disk_use_bytes(home: Path, *, enough: int) -> int:
    """What all files below a folder take; the count ends once it is more than enough.

    Symbolic links are not followed, and other file systems are not entered.
    """
    used = 0
    seen: set[int] = set()
    try:
        device = home.stat().st_dev
    except OSError:
        return 0
    folders = [str(home)]
    while folders:
        try:
            entries = os.scandir(folders.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    facts = entry.stat(follow_symlinks=False)
                    if facts.st_dev != device or facts.st_ino in seen:
                        continue
                    if facts.st_nlink > 1:
                        seen.add(facts.st_ino)
                    used += facts.st_blocks * 512 + _ENTRY_BYTES
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                if used > enough:
                    return used
    return used


def _mib(count: int) -> str:
    return f"{count / (1 << 20):.0f} MiB"
