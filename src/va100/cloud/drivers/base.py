"""What the cloud asks of a driver, and what it tells one about an instance.

Calls may be repeated: the caller remembers what it wants, not what it did, so that it can be
killed between any two steps.  A driver keys what it does by an instance's name and generation.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from va100.cloud.models import Place, Shape


class Phase(enum.Enum):
    """How an instance stands where it runs."""

    ABSENT = "absent"
    """Nothing of this generation is there."""
    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"
    """Its program ended, or the whole instance was shut down from inside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What to run, and on what."""

    instance: str
    generation: int
    tenant: str
    name: str
    shape: Shape
    place: Place
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    image: str = ""
    ports: tuple[int, ...] = ()
    disk_bytes: int = 0
    """Most that its files may take, all together; 0: no limit."""
    memory_bytes: int = 0
    """Most that its programs may hold, all together; 0: no limit."""
    ssh_key: str = ""
    trusted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How an instance stands."""

    phase: Phase
    exit_code: int | None = None
    paused: bool = False
    trouble: str = ""
    """What it ran into since it was started, for its tenant: a limit that it came to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """An instance's figures at a moment."""

    cpu_s: float
    """Processor time that its programs have used since they started."""
    memory_bytes: int
    busy_ratio: float | None = None
    """Share of the time since the last reading in which its GPU was at work; none: not known."""
    gpu_memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a command in an instance came to."""

    exit_code: int
    output: bytes
    errors: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """How a driver keeps tenants apart."""

    isolates: bool
    how: str
    """For people: by what, or why not."""


class Driver(Protocol):
    """Where instances run."""

    def isolation(self) -> Isolation:
        """How tenants are kept apart."""
        ...

    def launch(self, assignment: Assignment) -> None:
        """Start an instance; nothing happens if this generation was started already.

        Raises
        ------
        SetupError
            It cannot be started here; the message is for its tenant.
        """
        ...

    def status(self, instance: str, generation: int) -> Status:
        """How an instance stands."""
        ...

    def stop(self, instance: str, *, grace_s: float) -> None:
        """Ask an instance to end, and make it end after a time; returns at once."""
        ...

    def pause(self, instance: str) -> None:
        """Stop an instance's programs where they are."""
        ...

    def resume(self, instance: str) -> None:
        """Let paused programs go on."""
        ...

    def remove(self, instance: str) -> None:
        """Forget an instance that is not running, its disk included."""
        ...

    def execute(self, instance: str, command: Sequence[str], *, timeout_s: float) -> Finished:
        """Run a command inside a running instance.

        Raises
        ------
        Conflict
            It does not run.
        """
        ...

    def logs(self, instance: str, *, offset: int, limit: int) -> tuple[bytes, int]:
        """What an instance printed from an offset on, and where to go on from."""
        ...

    def reading(self, instance: str) -> Reading | None:
        """An instance's figures; none if it does not run."""
        ...

    def gpu_work_ns(self, instance: str) -> int | None:
        """How long its GPUs were at work since it was started, all together; none: not known."""
        ...

    def open_terminal(self, instance: str, *, columns: int, rows: int) -> str:
        """Start a shell on a terminal inside an instance; its name."""
        ...

    def terminal_output(
        self, instance: str, terminal: str, *, offset: int, limit: int
    ) -> tuple[bytes, int, bool]:
        """What a terminal showed from an offset on, where to go on from, whether it has ended."""
        ...

    def terminal_input(self, instance: str, terminal: str, keys: bytes) -> None:
        """Type into a terminal."""
        ...

    def port_address(self, instance: str, port: int) -> Path | None:
        """The socket that leads to a port inside an instance; none if there is none."""
        ...
