"""What an instance's programs find as their GPUs: a node of their own, with what they rent alone.

The cloud hands over an assignment; here it becomes variables, as ``va100 env`` prints them, and a
node in the instance's own folder, which no other instance sees.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from va100.cli import environment
from va100.cloud.drivers.base import Assignment
from va100.config import Settings
from va100.node.kinds import KINDS

_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


def devices(settings: Settings, assignment: Assignment, home: str) -> Mapping[str, str]:
    """Variables with which an instance's programs find exactly what they rent."""
    count = len(assignment.place.gpus)
    chosen = replace(settings, model=assignment.shape.model, gpu_count=count, report=None)
    found = environment.additions(chosen)
    found.pop("VA100_CACHE_DIR", None)  # each instance has its own
    folders = environment.folders(chosen)
    programs = [folders.get("PATH", ""), str(Path(sys.executable).parent), _SYSTEM_PATH]
    found |= folders | {"PATH": ":".join(filter(None, programs))}
    kind = node_kind(assignment.shape.model, count)
    if kind is not None:
        found |= {"VA100_HOME": os.path.join(home, ".va100"), "VA100_NODE": kind}
        found["CUDA_VISIBLE_DEVICES"] = ",".join(str(gpu) for gpu in range(count))
    return found


def node_kind(model: str, count: int) -> str | None:
    """The smallest kind of node with so many cards of a model."""
    fitting = [kind for kind in KINDS if kind.chip.name == model and len(kind.seats) >= count]
    return min(fitting, key=lambda kind: len(kind.seats)).name if fitting else None
