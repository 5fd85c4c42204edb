"""Other ways to run such kernels without a GPU, each measured in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 900


@dataclass(slots=True)
class PeerTimes:
    """What a peer took for each kernel, per unit of work; and why it is missing."""

    seconds_per_work: dict[str, float] = field(default_factory=dict)
    reason: str = ""


def numba_simulator(python: str, names: Sequence[str]) -> PeerTimes:
    """Measure numba's CUDA simulator, at small sizes."""
    return _run(python, "numba_sim", names, {"NUMBA_ENABLE_CUDASIM": "1"})


def pocl(python: str, names: Sequence[str], *, rolled: bool = False) -> PeerTimes:
    """Measure PoCL's CPU device with one thread; ``rolled``: without ``#pragma unroll``."""
    options = ("--rolled",) if rolled else ()
    return _run(python, "pocl", names, {"POCL_MAX_PTHREAD_COUNT": "1"}, options)


def _run(
    python: str,
    script: str,
    names: Sequence[str],
    extra: dict[str, str],
    options: Sequence[str] = (),
) -> PeerTimes:
    names = [n for n in names if n != "mma"]  # neither has tensor-core instructions
    found = PeerTimes()
    if not names:
        return found
    try:
        done = subprocess.run(
            [python, "-m", f"benchmarks.kernels.{script}", *options, *names],
            cwd=ROOT,
            env={**os.environ, **extra},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        found.reason = str(error)
        return found
    for line in done.stdout.splitlines():
        said = json.loads(line)
        if said["wrong"]:
            found.reason = f"wrong result: {said['wrong']}"
        else:
            found.seconds_per_work[said["kernel"]] = said["seconds"] / said["work"]
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit {done.returncode}"]
        found.reason = last[0]
    return found
