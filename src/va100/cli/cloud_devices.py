"""What an instance's programs find as their GPUs: a node of their own, with what they rent alone.

The cloud hands over an assignment; here it becomes variables, as ``va100 env`` prints them, and a
node in the instance's own folder, which no other instance sees.  A slice is cut from that node's
card at its own place, so that CUDA, NVML and ``nvidia-smi`` inside see the slice.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from va100.cli import environment
from va100.cloud.drivers.base import Assignment
from va100.config import Settings
from va100.errors import SetupError
from va100.gpu.native import NATIVE_DIR
from va100.node import store
from va100.node.kinds import KINDS

_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_FOLDER = ".va100"
_MOST_NODES = 8
_TOOLS = NATIVE_DIR / "smi"


def devices(settings: Settings, assignment: Assignment, home: str, here: Path) -> Mapping[str, str]:
    """Variables with which an instance's programs find exactly what they rent.

    Parameters
    ----------
    home : str
        The instance's home folder as its programs see it.
    here : Path
        The same folder as this process sees it; the node is made there anew.

    Raises
    ------
    SetupError
        The node could not be made.
    """
    count = len(assignment.place.gpus)
    chosen = replace(settings, model=assignment.shape.model, gpu_count=count, report=None)
    found = environment.additions(chosen)
    found.pop("VA100_CACHE_DIR", None)  # each instance has its own
    folders = environment.folders(chosen)
    programs = [folders.get("PATH", ""), str(_TOOLS) if _TOOLS.is_dir() else ""]
    programs += [str(Path(sys.executable).parent), _SYSTEM_PATH]
    found |= folders | {"PATH": ":".join(filter(None, programs))}
    kind = node_kind(assignment.shape.model, count)
    found |= {"VA100_HOME": f"{home}/{_FOLDER}", "VA100_NODE": kind}
    shutil.rmtree(here / _FOLDER, ignore_errors=True)
    if assignment.shape.is_slice:
        ready = _cut_once(settings.cache_dir / "slices", assignment, kind)
        shutil.copytree(ready, here / _FOLDER)
    else:
        found["CUDA_VISIBLE_DEVICES"] = ",".join(str(gpu) for gpu in range(count))
    return found


def gpu_work_ns(here: Path) -> int:
    """How long an instance's GPUs were at work since it was started, all together.

    Parameters
    ----------
    here : Path
        Its home folder as this process sees it.  What is in there is its tenant's: a node file that
        is none counts nothing, so whoever spoils it looks idle.
    """
    try:
        with os.scandir(here / _FOLDER / "nodes") as entries:
            seen = list(itertools.islice(entries, 8 * _MOST_NODES))
    except OSError:
        return 0  # no program has used a GPU yet
    nodes = sorted(entry.path for entry in seen if entry.name.endswith(".node"))[:_MOST_NODES]
    return sum(store.busy_ns(Path(path)) or 0 for path in nodes)


def node_kind(model: str, count: int) -> str:
    """The smallest kind of node with so many cards of a model.

    Raises
    ------
    SetupError
        There is none.
    """
    fitting = [kind for kind in KINDS if kind.chip.name == model and len(kind.seats) >= count]
    if not fitting:
        raise SetupError(
            f"there is no node of {count} {model}", remedy="va100 node list --kinds has all"
        )
    return min(fitting, key=lambda kind: len(kind.seats)).name


def _cut_once(cache: Path, assignment: Assignment, kind: str) -> Path:
    """A node whose only GPU instance is where the assignment says, made once and kept.

    It is made anew when the native core was built anew, since that may lay state out otherwise.
    """
    part = f"{assignment.shape.profile}:{assignment.place.start}"
    built = (NATIVE_DIR / "libnvidia-ml.so.1").stat().st_mtime_ns
    ready = cache / f"{kind}-{part.replace(':', '-at-')}-{built:x}"
    if ready.is_dir():
        return ready
    cache.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=cache))
    variables = {
        "VA100_HOME": str(draft),
        "VA100_NODE": kind,
        "LD_LIBRARY_PATH": str(NATIVE_DIR),
        "PATH": os.defpath,
        "VA100_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    _run(["-mig", "1"], variables)
    _run(["mig", "-cgi", part, "-C"], variables)
    try:
        draft.rename(ready)
    except OSError:  # another worker was quicker
        shutil.rmtree(draft, ignore_errors=True)
    return ready


def _run(words: Sequence[str], variables: Mapping[str, str]) -> None:
    tool = _TOOLS / "nvidia-smi"
    try:
        done = subprocess.run(  # noqa: S603 -- our own program
            [tool, *words], env=dict(variables), capture_output=True, text=True, check=False,
            timeout=60,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{tool}: {error}", remedy="make setup") from error
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()[-1:] or ["no word"]
        raise SetupError(f"nvidia-smi {' '.join(words)}: {said[0]}", remedy="make setup")
