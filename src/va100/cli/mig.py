"""``va100 mig``: plans of MIG layouts, from a wish list to placements; files of them elsewhere."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from va100.cli import mig_parted
from va100.config import Settings, model_name
from va100.errors import NodeError
from va100.node import store
from va100.node.mig import Instance, Plan, plan
from va100.spec.mig import profiles
from va100.spec.model import ChipSpec, MigProfileSpec
from va100.spec.names import find_models

DONE, FAILED, MISUSED = 0, 1, 2
MOST_GPUS: Final = 16
_WISH: Final = re.compile(r"(?:(\d{1,3})\s*[x*])?\s*([^\s*:x]+(?:\+\w+)?)(?:\s*[*:x]\s*(\d{1,3}))?")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "mig",
        help="plan MIG layouts, and apply, export and check mig-parted files",
        description="Plan MIG layouts, or bring GPUs to those of a mig-parted file. Single "
        "instances are made with `nvidia-smi mig`.",
    )
    verbs = parser.add_subparsers(dest="mig_verb", metavar="VERB", required=True)
    planner = verbs.add_parser(
        "plan",
        help="from a wish list to placements, with as few moves as there can be",
        description="Find placements for GPU instances, exactly: beside what a node's GPU holds "
        "already (--gpu), or on empty GPUs. What is in use does not move.",
    )
    planner.add_argument(
        "wishes", metavar="WISH", nargs="+", help="a profile such as 3g.40gb, 2x1g.10gb, or an ID"
    )
    planner.add_argument("--gpu", type=int, metavar="N", help="this GPU of the node, as it is now")
    planner.add_argument("--gpus", type=int, metavar="N", help="so many empty GPUs (default: 1)")
    planner.add_argument("--node", metavar="NAME", default="", help="default: VA100_NODE")
    planner.add_argument("--model", metavar="MODEL", help="of empty GPUs (default: VA100_MODEL)")
    planner.add_argument("--json", action="store_true", help="print JSON")
    mig_parted.add_verbs(verbs)


def run(args: argparse.Namespace) -> int:
    """Print a plan, status 1 where there is none; or do what another verb asks."""
    if args.mig_verb in mig_parted.VERBS:
        return mig_parted.run(args)
    if args.gpu is not None and (args.gpus is not None or args.model is not None):
        return _misused("--gpu takes the GPU as it is; leave out --gpus and --model")
    if args.gpus is not None and not 1 <= args.gpus <= MOST_GPUS:
        return _misused(f"--gpus {args.gpus} is no count from 1 to {MOST_GPUS}")
    if args.gpu is not None:
        try:
            chip, current = _held(args.node, args.gpu)
        except NodeError as error:
            return _misused(str(error))
    else:
        model = args.model or Settings.from_environment().model
        chip = _chip(model_name(model, origin="--model"))
        current = [()] * (args.gpus or 1)
    table = profiles(chip)
    wishes: list[MigProfileSpec] = []
    for text in args.wishes:
        found = _wish(text, table)
        if found is None:
            names = ", ".join(f"{p.name} ({p.profile_id})" for p in table)
            return _misused(f"{text} is no profile of {chip.name}: {names}")
        wishes += found
    made = plan(current, wishes)
    _print(made, args.gpu, as_json=args.json)
    return FAILED if made.reason else DONE


def _misused(text: str) -> int:
    sys.stderr.write(f"va100 mig plan: {text}\n")
    return MISUSED


def _wish(text: str, table: Sequence[MigProfileSpec]) -> list[MigProfileSpec] | None:
    match = _WISH.fullmatch(text.strip().removeprefix("MIG "))
    if match is None:
        return None
    count = int(match[1] or 1) * int(match[3] or 1)
    for profile in table:
        if match[2] in (profile.name, str(profile.profile_id)):
            return [profile] * min(count, 8 * MOST_GPUS)
    return None


def _chip(name: str) -> ChipSpec:
    return next(model for model in find_models(name) if isinstance(model, ChipSpec))


def _held(node: str, index: int) -> tuple[ChipSpec, list[tuple[Instance, ...]]]:
    """What a node's GPU holds; an instance that a process uses is busy."""
    gpus = store.describe(node)["gpus"]
    if not 0 <= index < len(gpus):
        raise NodeError(
            name=node, why="bad-name", problem=f"there is no GPU {index}; the node has {len(gpus)}"
        )
    gpu = gpus[index]
    chip = _chip(gpu["model"])
    by_id = {profile.profile_id: profile for profile in profiles(chip)}
    used = {process["gpu_instance"] for process in gpu["processes"]}
    held = (
        Instance(by_id[gi["profile_id"]], gi["start"], gi["id"] in used)
        for gi in gpu["gpu_instances"]
    )
    return chip, [tuple(held)]


def _print(made: Plan, gpu: int | None, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(_told(made, gpu), indent=2))
        return
    if made.reason:
        print(f"does not fit: {made.reason}")
        return
    for part in made.gpus:
        name = f"GPU {part.gpu if gpu is None else gpu}"
        for instance in part.stay:
            print(f"{name}: {_line(instance)} stays")
        for before, after in part.moves:
            print(f"{name}: {_line(before)} moves to {after.start}, as instance {after.identifier}")
        for instance in part.create:
            print(f"{name}: {_line(instance)} is created")


def _line(instance: Instance) -> str:
    span = f"{instance.start}:{instance.profile.memory_slice_count}"
    return f"{instance.profile.name} at {span}, instance {instance.identifier},"


def _told(made: Plan, gpu: int | None) -> dict[str, Any]:
    return {
        "fits": not made.reason,
        "reason": made.reason,
        "gpus": [
            {
                "gpu": part.gpu if gpu is None else gpu,
                "stay": [_fields(i) for i in part.stay],
                "move": [{"from": _fields(a), "to": _fields(b)} for a, b in part.moves],
                "create": [_fields(i) for i in part.create],
            }
            for part in made.gpus
        ],
    }


def _fields(instance: Instance) -> Mapping[str, Any]:
    return {
        "profile": instance.profile.name,
        "profile_id": instance.profile.profile_id,
        "start": instance.start,
        "size": instance.profile.memory_slice_count,
        "gpu_instance_id": instance.identifier,
    }
