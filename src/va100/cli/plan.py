"""``va100 plan``: whether work fits A100s, how long it takes, what it draws and costs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Final

from va100.cli import (
    plan_compare,
    plan_cost,
    plan_mix,
    plan_serve,
    plan_train,
    plan_work,
)
from va100.errors import PlanError

MISUSED: Final = 2

_RUNS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {
    "compare": plan_compare.run,
    "cost": plan_cost.run,
    "mix": plan_mix.run,
    "recsys": plan_work.run_recsys,
    "science": plan_work.run_science,
    "serve": plan_serve.run,
    "train": plan_train.run,
    "vision": plan_work.run_vision,
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "plan",
        help="time, memory, energy and cost of training and serving on A100s",
        description="Say whether work fits, how long it takes, what it draws and costs, and which "
        "plan is best. Statuses: 0 it fits, 1 it does not (the smallest plan that does is "
        "named), 2 the input is wrong.",
    )
    kinds = parser.add_subparsers(dest="work", metavar="WORK", title="work", required=True)
    plan_train.add_parser(kinds)
    plan_serve.add_parser(kinds)
    plan_work.add_vision(kinds)
    plan_work.add_recsys(kinds)
    plan_work.add_science(kinds)
    plan_cost.add_parser(kinds)
    plan_mix.add_parser(kinds)
    plan_compare.add_parser(kinds)


def run(args: argparse.Namespace) -> int:
    """Plan what the command line asks; the result is the exit status."""
    try:
        return _RUNS[args.work](args)
    except PlanError as error:
        sys.stderr.write(f"va100 plan {args.work}: {error}\n")
        return MISUSED
