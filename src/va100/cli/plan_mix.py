"""``va100 plan mix``: which GPUs, boards and slices for which jobs, and what to buy or rent."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from va100.cli.plan_options import DOES_NOT_FIT, FITS, add_output_options, print_document
from va100.plan.mix import MixResult, solve_mix
from va100.plan.portfolio import Portfolio, read_portfolio


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the kind of work to the command line."""
    parser = subparsers.add_parser(
        "mix",
        help="assign jobs to GPUs and MIG slices exactly, and say what to buy or rent",
        description="Read a portfolio of jobs and GPU types, and find the least cost a day that "
        "serves all of them, or with a budget the most work it pays for (docs/planning.md). "
        "Needs HiGHS: pip install 'va100[plan]'.",
    )
    parser.add_argument("portfolio", metavar="FILE", type=Path, help="YAML or JSON")
    add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Solve what the file asks; the result is the exit status."""
    portfolio = read_portfolio(args.portfolio)
    result = solve_mix(portfolio)
    document = _document(portfolio, result)
    print_document(args, document, _text(document))
    return FITS if result.feasible else DOES_NOT_FIT


def _document(portfolio: Portfolio, result: MixResult) -> dict[str, Any]:
    return {
        "fits": result.feasible,
        "usd_per_day": result.usd_per_day,
        "served_share": dict(result.served_share),
        "supplies": [asdict(supply) for supply in result.supplies],
        "assignments": [asdict(assignment) for assignment in result.assignments],
        "rates_per_s": {job.name: dict(job.rates_per_s) for job in portfolio.jobs},
        "slots_h": dict(portfolio.slots_h),
        "basis": "exact for the rates and prices given; rates of kind serve and train are the "
        "planner's, dated prices where none is given",
    }


def _text(document: dict[str, Any]) -> str:
    if not document["fits"]:
        return (
            "no mix meets every demand: raise inventory or most, allow renting, or give "
            "budget_usd_per_day to serve what it pays for"
        )
    lines = [f"${document['usd_per_day']:,.2f} a day"]
    for supply in document["supplies"]:
        lines.append(
            f"  {supply['gpu']}: {supply['owned']} there, rent {supply['rented']}, "
            f"buy {supply['bought']}"
        )
        lines += [
            f"    {slot}: " + (", ".join(f"{n} as {cut}" for cut, n in cuts.items()) or "none used")
            for slot, cuts in supply["layouts"].items()
        ]
    for one in document["assignments"]:
        lines.append(
            f"  {one['slot']}: {one['job']} gets {one['count']} x {one['unit']} "
            f"({one['work_per_s']:.4g} a second)"
        )
    lines += [f"  {job}: {share:.1%} served" for job, share in document["served_share"].items()]
    return "\n".join(lines)
