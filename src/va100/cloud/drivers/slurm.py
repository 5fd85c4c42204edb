"""Instances as jobs of a Slurm cluster, on nodes that share a folder with the cloud.

The cloud's scheduler chooses the node; Slurm, which of its GPUs of the type.  The job's own script
writes how it ended, so that nothing depends on Slurm's accounting.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from va100.cloud.drivers.base import Assignment, Finished, Isolation, Phase, Reading, Status
from va100.cloud.drivers.files import write_below
from va100.cloud.drivers.shim import write_whole
from va100.cloud.drivers.slurm_files import gres_request
from va100.errors import Conflict, SetupError

_WAITS: Final = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "RESIZING"})
_RUNS: Final = frozenset({"RUNNING", "SUSPENDED", "COMPLETING", "STOPPED"})
_LIMIT_S: Final = 30


class SlurmDriver:
    """Runs instances as jobs.

    Parameters
    ----------
    root : Path
        Folder of all instances, at the same place on every node.
    devices : callable
        The variables with which an assignment's programs find their GPU, given its home folder,
        which is at the same place everywhere.
    variables : mapping of str to str
        With which Slurm's own programs are run: ``PATH``, ``SLURM_CONF``.
    apart : str
        What keeps jobs of different tenants apart on this cluster; empty: nothing does.
    """

    def __init__(
        self,
        root: Path,
        devices: Callable[[Assignment, str, Path], Mapping[str, str]],
        variables: Mapping[str, str],
        *,
        partition: str = "",
        apart: str = "",
    ) -> None:
        self.root = root
        self.devices = devices
        self.variables = dict(variables)
        self.partition = partition
        self.apart = apart
        if shutil.which("sbatch", path=self.variables.get("PATH")) is None:
            raise SetupError("sbatch is not on the path", remedy="apt install slurm-client")
        root.mkdir(parents=True, exist_ok=True)

    def isolation(self) -> Isolation:
        """What the site says of its cluster."""
        return Isolation(
            isolates=bool(self.apart),
            how=self.apart or "jobs run as one user, and nothing was said to keep them apart",
        )

    def launch(self, assignment: Assignment) -> None:
        """Submit a job, once a generation."""
        folder, run = self._folders(assignment.instance, assignment.generation)
        if self._job(assignment.instance, assignment.generation) is not None:
            return
        (folder / "home").mkdir(parents=True, exist_ok=True)
        run.mkdir(exist_ok=True)
        for name, text in assignment.files.items():
            write_below(folder / "home", name, text)
        (run / "job.sh").write_text(self._script(folder, run, assignment), "utf-8")
        words = [
            "sbatch", "--parsable", f"--job-name={_name(assignment)}", "--export=NONE",
            f"--gres={gres_request(assignment.shape)}", f"--nodelist={assignment.place.node}",
            f"--chdir={folder / 'home'}", f"--output={run / 'log'}", "--open-mode=append",
            "--no-requeue", str(run / "job.sh"),
        ]  # fmt: skip
        if self.partition:
            words.insert(1, f"--partition={self.partition}")
        number = self._ask(words).split(";")[0].strip()
        write_whole(run / "job.json", {"job": number})

    def _script(self, folder: Path, run: Path, assignment: Assignment) -> str:
        home = str(folder / "home")
        variables = {
            "HOME": home,
            "LANG": "C.UTF-8",
            "VA100_CACHE_DIR": f"{home}/.cache/va100",
            **assignment.environment,
            **self.devices(assignment, home, folder / "home"),
        }
        write_whole(folder / "environment.json", variables)
        pairs = [shlex.quote(f"{key}={value}") for key, value in variables.items()]
        command = " ".join(shlex.quote(word) for word in assignment.command)
        ended = shlex.quote(str(run / "ended"))
        return (
            "#!/bin/sh\n"
            "trap 'kill -TERM $child 2>/dev/null' TERM\n"
            f"env -i {' '.join(pairs)} {command} &\n"
            "child=$!\nwait $child\ncode=$?\n"
            "while kill -0 $child 2>/dev/null; do wait $child; code=$?; done\n"
            f'echo "{{\\"code\\": $code}}" > {ended}.draft && mv {ended}.draft {ended}.json\n'
        )

    def status(self, instance: str, generation: int) -> Status:
        """How a job stands."""
        _, run = self._folders(instance, generation)
        ended = _read(run / "ended.json")
        if ended is not None:
            return Status(phase=Phase.EXITED, exit_code=int(ended["code"]))
        job = self._job(instance, generation)
        if job is None:
            return Status(phase=Phase.ABSENT)
        state = self._state(job)
        if state in _WAITS:
            return Status(phase=Phase.STARTING)
        if state in _RUNS:
            paused = (self.root / instance / "paused").exists()
            return Status(phase=Phase.RUNNING, paused=paused)
        ended = _read(run / "ended.json")  # it may have ended between the two looks
        if ended is not None:
            return Status(phase=Phase.EXITED, exit_code=int(ended["code"]))
        cancelled = state.startswith(("CANCELLED", "COMPLETED", "FAILED", "TIMEOUT"))
        return (
            Status(phase=Phase.EXITED, exit_code=143) if cancelled else Status(phase=Phase.ABSENT)
        )

    def _state(self, job: str) -> str:
        try:
            text = self._ask(
                ["squeue", "--noheader", "--format=%T", "--states=all", f"--jobs={job}"]
            )
        except SetupError:
            return ""  # Slurm has forgotten it
        return text.strip()

    def _job(self, instance: str, generation: int) -> str | None:
        """A start's job: what was written down, or what Slurm has of its name."""
        _, run = self._folders(instance, generation)
        written = _read(run / "job.json")
        if written is not None:
            return str(written["job"])
        name = f"va100-{instance}-{generation}"
        found = self._ask(["squeue", "--noheader", "--format=%i", f"--name={name}"]).split()
        if found:
            write_whole(run / "job.json", {"job": found[0]})
        return found[0] if found else None

    def _latest(self, instance: str) -> str:
        runs = sorted((self.root / instance).glob("run-*/job.json"), key=_generation)
        job = _read(runs[-1]) if runs else None
        if job is None or self._state(str(job["job"])) not in _RUNS:
            raise Conflict("nothing runs in it")
        return str(job["job"])

    def stop(self, instance: str, *, grace_s: float) -> None:
        """Cancel an instance's jobs; Slurm gives them its ``KillWait``."""
        del grace_s
        self.resume(instance)
        for path in (self.root / instance).glob("run-*/job.json"):
            job = _read(path)
            if job is not None and not (path.parent / "ended.json").exists():
                with contextlib.suppress(SetupError):
                    self._ask(["scancel", "--full", str(job["job"])])

    def pause(self, instance: str) -> None:
        """Stop a job's programs where they are."""
        self._ask(["scancel", "--signal=STOP", "--full", self._latest(instance)])
        (self.root / instance / "paused").touch()

    def resume(self, instance: str) -> None:
        """Let paused programs go on."""
        mark = self.root / instance / "paused"
        if mark.exists():
            with contextlib.suppress(Conflict, SetupError):
                self._ask(["scancel", "--signal=CONT", "--full", self._latest(instance)])
            mark.unlink(missing_ok=True)

    def remove(self, instance: str) -> None:
        """Forget an instance, its folder included."""
        shutil.rmtree(self.root / instance, ignore_errors=True)

    def execute(self, instance: str, command: Sequence[str], *, timeout_s: float) -> Finished:
        """Run a command as a step beside the job."""
        folder = self.root / instance
        variables = _read(folder / "environment.json") or {}
        pairs = [f"{key}={value}" for key, value in variables.items()]
        words = ["srun", f"--jobid={self._latest(instance)}", "--overlap", "--ntasks=1",
                 "--gres=none", f"--chdir={folder / 'home'}"]  # fmt: skip
        words += ["env", "-i", *pairs, *command]
        try:
            done = subprocess.run(  # noqa: S603 -- what the tenant rents this for
                words, env=self.variables, capture_output=True, check=False, timeout=timeout_s,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            late = f"\nended after {timeout_s:g} s\n".encode()
            return Finished(exit_code=124, output=error.stdout or b"",
                            errors=(error.stderr or b"") + late)  # fmt: skip
        return Finished(exit_code=done.returncode, output=done.stdout, errors=done.stderr)

    def logs(self, instance: str, *, offset: int, limit: int) -> tuple[bytes, int]:
        """What an instance's latest job printed."""
        runs = sorted((self.root / instance).glob("run-*/log"), key=_generation)
        try:
            with runs[-1].open("rb") as file:
                file.seek(offset)
                text = file.read(limit)
        except (OSError, IndexError):
            return b"", offset
        return text, offset + len(text)

    def reading(self, instance: str) -> Reading | None:
        """Nothing: the cluster's own monitoring has the figures; what is not known is not idle."""
        del instance
        return None

    def gpu_work_ns(self, instance: str) -> int | None:
        """Not known here."""
        del instance
        return None

    def open_terminal(self, instance: str, *, columns: int, rows: int) -> str:
        """Refuse: use ``srun --overlap --pty`` on the cluster."""
        del columns, rows
        job = self._latest(instance)
        raise Conflict(f"terminals: `srun --jobid={job} --overlap --pty bash` on the cluster")

    def terminal_output(
        self, instance: str, terminal: str, *, offset: int, limit: int
    ) -> tuple[bytes, int, bool]:
        """Refuse: there are no terminals."""
        del terminal, offset, limit
        raise Conflict(f"{instance} has no terminals")

    def terminal_input(self, instance: str, terminal: str, keys: bytes) -> None:
        """Refuse: there are no terminals."""
        del terminal, keys
        raise Conflict(f"{instance} has no terminals")

    def port_address(self, instance: str, port: int) -> Path | None:
        """None: jobs are reached by the cluster's network."""
        del instance, port
        return None

    def _folders(self, instance: str, generation: int) -> tuple[Path, Path]:
        folder = self.root / instance
        return folder, folder / f"run-{generation}"

    def _ask(self, words: Sequence[str]) -> str:
        try:
            done = subprocess.run(  # noqa: S603 -- Slurm's programs, each argument a word
                words, env=self.variables, capture_output=True, text=True, check=False,
                timeout=_LIMIT_S, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SetupError(f"{words[0]}: {error}", remedy="see that slurmctld runs") from error
        if done.returncode:
            why = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
            raise SetupError(f"{words[0]}: {why[0]}", remedy="see the cluster's log")
        return done.stdout


def _name(assignment: Assignment) -> str:
    return f"va100-{assignment.instance}-{assignment.generation}"


def _generation(path: Path) -> int:
    return int(path.parent.name.removeprefix("run-"))


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found
