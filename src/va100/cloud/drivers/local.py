"""Instances on this host: one folder each, one shim each, behind what isolation there is.

An instance's folder holds its disk (``home``) and one folder a start (``run-GENERATION``) with the
shim's files; making that folder is what claims a start, so two dispatchers cannot both make it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from va100.cloud.drivers import procfs
from va100.cloud.drivers.base import Assignment, Finished, Isolation, Phase, Reading, Status
from va100.cloud.drivers.files import write_below
from va100.cloud.drivers.limits import Bounds, Limits, Watched, bounded, host_memory_bytes
from va100.cloud.drivers.sandbox import Sandbox
from va100.cloud.drivers.shim import write_whole
from va100.errors import Conflict, NotFound, SetupError

_MOST_LOOKS: Final = 40
_LOOK_S: Final = 0.05
_STALE_S: Final = 0.3
_TERMINAL: Final = re.compile(r"[0-9a-f]{8,64}")
_MOST_TERMINALS: Final = 8
_MOST_OUTPUT_BYTES: Final = 1 << 20
_MOST_FILE_BYTES: Final = 1 << 40
MOST_PROGRAMS: Final = 4096
"""Programs of one instance, threads counted."""


class LocalDriver:
    """Runs instances as programs of this host.

    Parameters
    ----------
    root : Path
        Folder of all instances.
    devices : callable
        The variables with which an assignment's programs find exactly its GPU, given its home
        folder as they see it, and as it is here.
    limits : Limits
        What holds instances to their bounds.
    gpu_work_ns : callable
        How long the GPUs of the instance with a home folder were at work; none: not known.
    """

    def __init__(  # noqa: PLR0913 -- each its own word at the one place that calls it
        self,
        root: Path,
        sandbox: Sandbox,
        devices: Callable[[Assignment, str, Path], Mapping[str, str]],
        token: Callable[[int], str],
        *,
        limits: Limits | None = None,
        gpu_work_ns: Callable[[Path], int | None] = lambda home: None,
        most_programs: int = MOST_PROGRAMS,
    ) -> None:
        self.limits = limits or Watched("nothing was tried")
        self._work_ns = gpu_work_ns
        self.most_programs = most_programs
        self.root = root
        self.sandbox = sandbox
        self.devices = devices
        self.token = token
        self._busy: dict[str, tuple[float, int]] = {}
        self._table: procfs.Table = {}
        self._read_s = -1.0
        root.mkdir(parents=True, exist_ok=True, mode=0o700)

    def isolation(self) -> Isolation:
        """How tenants are kept apart."""
        return self.sandbox.isolation()

    # ------------------------------------------------------------ life

    def launch(self, assignment: Assignment) -> None:
        """Start an instance, once a generation."""
        isolation = self.isolation()
        if not (isolation.isolates or assignment.trusted):
            raise SetupError(
                f"this host cannot keep tenants apart: {isolation.how}",
                remedy="install bubblewrap, or trust the tenant",
            )
        folder = self.root / assignment.instance
        run = folder / f"run-{assignment.generation}"
        (folder / "home").mkdir(parents=True, exist_ok=True)
        try:
            run.mkdir()
        except FileExistsError:
            if (run / "order.json").exists():
                return
        self._furnish(folder, assignment)
        environment = self._environment(folder, assignment)
        argv, wrappers = self.sandbox.enclosed(
            folder, assignment.name, assignment.command, environment
        )
        bounds = self._bounds(assignment)
        self.limits.prepare(assignment.instance, bounds)
        order = {
            "argv": [*self.limits.joining(assignment.instance), *argv],
            "wrappers": wrappers,
            "environment": environment,
            "cwd": str(folder / "home"),
            "file_bytes": assignment.disk_bytes or _MOST_FILE_BYTES,
            "watch": self._watch(folder, bounds),
        }
        (folder / "trouble.json").unlink(missing_ok=True)
        write_whole(folder / "bounds.json", {"file_bytes": order["file_bytes"]})
        write_whole(folder / "environment.json", environment)
        write_whole(run / "order.json", order)
        self._start_shim(run)

    def _bounds(self, assignment: Assignment) -> Bounds:
        """What an instance may hold; no more memory than nine tenths of the host's."""
        most_bytes = host_memory_bytes() * 9 // 10
        return Bounds(
            memory_bytes=min(assignment.memory_bytes or most_bytes, most_bytes),
            programs=self.most_programs,
            disk_bytes=assignment.disk_bytes,
            eighths=assignment.shape.eighths,
        )

    def _watch(self, folder: Path, bounds: Bounds) -> dict[str, Any]:
        """What the shim has to watch: the disk, and what the kernel does not hold."""
        held = self.limits.holds()
        return {
            "home": str(folder / "home"),
            "disk_bytes": bounds.disk_bytes,
            "file_bytes": bounds.disk_bytes,
            "memory_bytes": 0 if held else bounds.memory_bytes,
            "programs": 0 if held else bounds.programs,
        }

    def _furnish(self, folder: Path, assignment: Assignment) -> None:
        """Give an instance its user's entry and its template's files, once."""
        home = self.sandbox.home(folder)
        (folder / "passwd").write_text(f"tenant:x:1000:1000::{home}:/bin/bash\n", "utf-8")
        (folder / "group").write_text("tenant:x:1000:\n", "utf-8")
        for name, text in assignment.files.items():
            write_below(folder / "home", name, text)
        if assignment.ssh_key:
            keys = ".ssh/authorized_keys"
            write_below(folder / "home", keys, assignment.ssh_key + "\n", anew=True, mode=0o600)

    def _environment(self, folder: Path, assignment: Assignment) -> dict[str, str]:
        home = self.sandbox.home(folder)
        plain = {
            "HOME": home,
            "USER": "tenant",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "VA100_CACHE_DIR": f"{home}/.cache/va100",
            "VA100_CLOUD_INSTANCE": assignment.instance,
        }
        return (
            plain
            | dict(assignment.environment)
            | dict(self.devices(assignment, home, folder / "home"))
        )

    def _start_shim(self, run: Path) -> None:
        words = [sys.executable, "-m", "va100.cloud.drivers.shim", str(run)]
        with (run / "shim.log").open("ab") as log:
            _start_apart(words, log.fileno())

    def status(self, instance: str, generation: int) -> Status:
        """How an instance stands, by its shim's files."""
        run = self.root / instance / f"run-{generation}"
        if not (run / "order.json").exists():
            return Status(phase=Phase.ABSENT)
        ended = _read(run / "ended.json")
        if ended is not None:
            return self._exited(instance, ended)
        running = _read(run / "running.json")
        if running is None:
            return Status(phase=Phase.STARTING)
        if not procfs.is_alive(running["shim"], running["started"]):
            ended = _read(run / "ended.json")  # it may have ended between the two looks
            if ended is not None:
                return self._exited(instance, ended)
            self._sweep(running["child"])
            return Status(phase=Phase.ABSENT)
        paused = (self.root / instance / "paused").exists()
        return Status(phase=Phase.RUNNING, paused=paused, trouble=self._trouble(instance))

    def _exited(self, instance: str, ended: Mapping[str, Any]) -> Status:
        code = int(ended["code"])
        return Status(phase=Phase.EXITED, exit_code=code, trouble=self._trouble(instance))

    def _trouble(self, instance: str) -> str:
        watched = _read(self.root / instance / "trouble.json") or {}
        return str(watched.get("text") or self.limits.trouble(instance))

    def _sweep(self, child: int) -> None:
        """Take what a shim that was killed left behind, if it did not die with it."""
        for member in reversed(procfs.family(child)):
            with contextlib.suppress(OSError):
                if member.parent == 1 or member.pid != child:
                    os.kill(member.pid, signal.SIGKILL)

    def stop(self, instance: str, *, grace_s: float) -> None:
        """Tell an instance's shims to end it, and them."""
        del grace_s  # the shim's order has it
        self._release_pause(instance)
        for running in self._shims(instance):
            with contextlib.suppress(OSError):
                os.kill(running["shim"], signal.SIGTERM)
        for path in (self.root / instance).glob("port-*.json"):
            relay = _read(path)
            if relay is not None and procfs.is_alive(relay["shim"], relay["started"]):
                with contextlib.suppress(OSError):
                    os.kill(relay["shim"], signal.SIGTERM)

    def pause(self, instance: str) -> None:
        """Stop an instance's programs where they are."""
        (self.root / instance / "paused").touch()
        for member in self._programs(instance):
            with contextlib.suppress(OSError):
                os.kill(member.pid, signal.SIGSTOP)

    def resume(self, instance: str) -> None:
        """Let paused programs go on."""
        self._release_pause(instance)

    def _release_pause(self, instance: str) -> None:
        mark = self.root / instance / "paused"
        if mark.exists():
            for member in self._programs(instance):
                with contextlib.suppress(OSError):
                    os.kill(member.pid, signal.SIGCONT)
            mark.unlink(missing_ok=True)

    def remove(self, instance: str) -> None:
        """Forget an instance, its disk included."""
        shutil.rmtree(self.root / instance, ignore_errors=True)
        self.limits.forget(instance)
        self._busy.pop(instance, None)

    def _programs(self, instance: str) -> list[procfs.Program]:
        """All programs of an instance, those of commands and terminals among them."""
        found = [m for running in self._shims(instance) for m in procfs.family(running["child"])]
        if self.isolation().isolates:
            with contextlib.suppress(Conflict):
                found += procfs.neighbours(self._inside(instance))
        return list({member.pid: member for member in found}.values())

    def _shims(self, instance: str) -> list[dict[str, Any]]:
        """Shims of an instance that run: its program's and its terminals'."""
        found = []
        for path in (self.root / instance).glob("*-*/running.json"):
            running = _read(path)
            if running is not None and procfs.is_alive(running["shim"], running["started"]):
                found.append(running)
        return found

    # ------------------------------------------------------------ inside

    def _inside(self, instance: str) -> int:
        """A program inside an instance, to stand beside; and its folder."""
        latest = sorted(
            (self.root / instance).glob("run-*/running.json"),
            key=lambda path: int(path.parent.name.removeprefix("run-")),
        )
        running = _read(latest[-1]) if latest else None
        if running is None or not procfs.is_alive(running["shim"], running["started"]):
            raise Conflict("nothing runs in it")
        # Two programs stand around what is isolated; until the third is there, nothing is ready.
        wrapped = 1 if self.isolation().isolates else 0
        for _ in range(_MOST_LOOKS):
            members = procfs.family(running["child"])
            if not members:
                raise Conflict("its program has just ended")
            if len(members) > 2 * wrapped:
                return members[wrapped].pid
            time.sleep(_LOOK_S)
        raise Conflict("its program has only just begun: try again")

    def _beside(self, instance: str, command: Sequence[str]) -> tuple[list[str], Path]:
        folder = self.root / instance
        environment = _read(folder / "environment.json") or {}
        words = self.sandbox.joined(self._inside(instance), folder, command, environment)
        bounds = _read(folder / "bounds.json") or {}
        words = bounded(words, int(bounds.get("file_bytes", _MOST_FILE_BYTES)))
        return [*self.limits.joining(instance), *words], folder

    def execute(self, instance: str, command: Sequence[str], *, timeout_s: float) -> Finished:
        """Run a command inside a running instance."""
        words, folder = self._beside(instance, command)
        with subprocess.Popen(  # noqa: S603 -- what the tenant rents this for
            words, cwd=folder / "home", env={"PATH": os.defpath}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        ) as child:  # fmt: skip
            try:
                output, errors = child.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                for member in reversed(procfs.family(child.pid)):
                    with contextlib.suppress(OSError):
                        os.kill(member.pid, signal.SIGKILL)
                output, errors = child.communicate()
                errors += f"\nended after {timeout_s:g} s\n".encode()
        return Finished(
            exit_code=child.returncode if child.returncode >= 0 else 128 - child.returncode,
            output=output[-_MOST_OUTPUT_BYTES:],
            errors=errors[-_MOST_OUTPUT_BYTES:],
        )

    def logs(self, instance: str, *, offset: int, limit: int) -> tuple[bytes, int]:
        """What an instance's latest start printed."""
        runs = sorted(
            (self.root / instance).glob("run-*/log"),
            key=lambda path: int(path.parent.name.removeprefix("run-")),
        )
        if not runs:
            return b"", 0
        return _piece(runs[-1], offset, limit)

    def reading(self, instance: str) -> Reading | None:
        """Figures of an instance's programs, and of its GPUs since the last reading."""
        shims = self._shims(instance)
        if not shims:
            return None
        programs = self._programs_now()
        members = [m for running in shims for m in procfs.family(running["child"], programs)]
        cpu_s = sum(member.cpu_s for member in members)
        return Reading(
            cpu_s=cpu_s,
            memory_bytes=sum(member.memory_bytes for member in members),
            busy_ratio=self._busy_ratio(instance),
        )

    def _programs_now(self) -> procfs.Table:
        """All programs of this host, read once for all instances that are asked about together."""
        now_s = _uptime_s()
        if now_s - self._read_s > _STALE_S:
            self._table, self._read_s = procfs.table(), now_s
        return self._table

    def gpu_work_ns(self, instance: str) -> int | None:
        """How long its GPUs were at work since it was started, by the node in its home."""
        return self._work_ns(self.root / instance / "home")

    def _busy_ratio(self, instance: str) -> float | None:
        """Share of the time since the last reading in which some GPU of it was at work."""
        work_ns = self.gpu_work_ns(instance)
        if work_ns is None:
            return None
        now_s = _uptime_s()
        before = self._busy.get(instance)
        self._busy[instance] = (now_s, work_ns)
        if before is None or now_s - before[0] < 0.5:
            return None
        return min(1.0, max(0.0, (work_ns - before[1]) * 1e-9 / (now_s - before[0])))

    # ------------------------------------------------------------ terminals

    def open_terminal(self, instance: str, *, columns: int, rows: int) -> str:
        """Start a shell on a terminal inside an instance."""
        folder = self.root / instance
        if len(list(folder.glob("terminal-*"))) >= _MOST_TERMINALS:
            self._forget_ended(folder)
        if len(list(folder.glob("terminal-*"))) >= _MOST_TERMINALS:
            raise Conflict(f"{_MOST_TERMINALS} terminals are open: end one first")
        words, _ = self._beside(instance, ["/bin/bash"])
        name = self.token(8)
        run = folder / f"terminal-{name}"
        run.mkdir()
        order = {"argv": words, "environment": {"PATH": os.defpath}, "cwd": str(folder / "home"),
                 "terminal": True, "columns": columns, "rows": rows}  # fmt: skip
        write_whole(run / "order.json", order)
        self._start_shim(run)
        return name

    def _forget_ended(self, folder: Path) -> None:
        for run in folder.glob("terminal-*"):
            if (run / "ended.json").exists():
                shutil.rmtree(run, ignore_errors=True)

    def _terminal(self, instance: str, terminal: str) -> Path:
        run = self.root / instance / f"terminal-{terminal}"
        if not _TERMINAL.fullmatch(terminal) or not run.is_dir():
            raise NotFound("terminal", terminal)
        return run

    def terminal_output(
        self, instance: str, terminal: str, *, offset: int, limit: int
    ) -> tuple[bytes, int, bool]:
        """What a terminal showed from an offset on."""
        run = self._terminal(instance, terminal)
        ended = (run / "ended.json").exists()
        text, after = _piece(run / "log", offset, limit)
        return text, after, ended and not text

    def terminal_input(self, instance: str, terminal: str, keys: bytes) -> None:
        """Type into a terminal."""
        run = self._terminal(instance, terminal)
        try:
            pipe = os.open(run / "keys", os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            raise Conflict("the terminal has not begun or has ended") from error
        try:
            os.write(pipe, keys)
        finally:
            os.close(pipe)

    def port_address(self, instance: str, port: int) -> Path | None:
        """The socket that leads to a port inside an instance; a relay is started for it."""
        folder = self.root / instance
        socket = folder / f"port-{port}.sock"
        relay = _read(folder / f"port-{port}.json")
        if relay is not None and procfs.is_alive(relay["shim"], relay["started"]):
            return socket
        inside = self._inside(instance)
        words = [sys.executable, "-m", "va100.cloud.drivers.relay", str(folder), str(port)]
        if self.isolation().isolates:
            words = ["nsenter", "--target", str(inside), "--user", "--net",
                     "--preserve-credentials", "--", *words]  # fmt: skip
        socket.unlink(missing_ok=True)
        with (folder / "relays.log").open("ab") as log:
            _start_apart(words, log.fileno())
        return socket


def _start_apart(words: Sequence[str], output: int) -> None:
    """Start one of our own programs so that it outlives us and is nobody's to wait for."""
    package = Path(__file__).resolve().parents[3]
    paths = os.pathsep.join([str(package), *(path for path in sys.path if path)])
    subprocess.run(  # noqa: S603 -- our own program
        ["setsid", "--fork", *words],  # noqa: S607 -- found where the system keeps it
        env={"PYTHONPATH": paths, "PATH": os.defpath},
        stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", check=True,
    )  # fmt: skip


def _uptime_s() -> float:
    return float(Path("/proc/uptime").read_text("utf-8").split()[0])


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _piece(path: Path, offset: int, limit: int) -> tuple[bytes, int]:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            text = file.read(limit)
    except OSError:
        return b"", offset
    return text, offset + len(text)
