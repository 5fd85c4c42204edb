"""``va100 cloud simulate``: a trace under several policies, side by side, in a table and a page."""

from __future__ import annotations

import argparse
import json
import random  # noqa: TID251 -- the edge hands chance in
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from va100.cloud.charts import comparison_page
from va100.cloud.models import Node, Shape
from va100.cloud.policies import FITTINGS, ORDERS, Policy
from va100.cloud.prices import PriceBook, default_prices, dollars
from va100.cloud.products import parse_shape
from va100.cloud.simulate import Outcome, Replay, Site
from va100.cloud.traces import Job, made_trace, read_trace
from va100.config import model_name
from va100.errors import BadRequest

_MODULE = sys.modules[__name__]
_HEADER: Final = ("policy", "utilisation", "mean wait", "median", "p99", "fragmented", "displaced",
                  "lost card h", "revenue", "x real time")  # fmt: skip


def add_parsers(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "simulate",
        help="replay a job trace under several policies",
        description="Replay a job trace through the very scheduler that serves tenants, under one "
        "or more policies, and compare utilisation, waiting, fragmentation and revenue.",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--trace", metavar="FILE", help="CSV, as docs/cloud.md describes")
    source.add_argument("--jobs", type=int, metavar="N", help="make a trace of so many jobs "
                        "(default: as many as fill the fleet to --load)")  # fmt: skip
    parser.add_argument("--columns", action="append", default=[], metavar="OURS=THEIRS",
                        help="a column of the trace by its name there; repeatable")  # fmt: skip
    parser.add_argument("--days", type=float, default=7, help="length of a made trace")
    parser.add_argument("--load", type=float, default=0.85, metavar="RATIO",
                        help="of a made trace: card time asked for, of what there is")  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, help="of a made trace")
    parser.add_argument("--gpus", type=int, default=10_000, help="cards, eight a node")
    parser.add_argument("--model", default="sxm80", help="model of the cards")
    parser.add_argument("--order", default="first-come", metavar="NAME[,NAME]",
                        help=f"who is first: {', '.join(ORDERS)}")  # fmt: skip
    parser.add_argument("--fitting", default="tight", metavar="NAME[,NAME]",
                        help=f"which card is taken: {', '.join(FITTINGS)}")  # fmt: skip
    parser.add_argument("--no-backfill", action="store_true",
                        help="nobody overtakes whoever waits")  # fmt: skip
    parser.add_argument("--guarantee", action="append", default=[], metavar="TENANT=N:SHAPE",
                        help="promise a tenant N of a shape, such as lab=4:sxm80:8")  # fmt: skip
    parser.add_argument("--notice", type=int, default=30, metavar="SECONDS")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--html", metavar="FILE", help="write a page with plots")
    parser.set_defaults(cloud_module=_MODULE)


def run(args: argparse.Namespace) -> int:
    """Replay under each policy and compare."""
    if not 1 <= args.gpus <= 1_000_000:
        raise BadRequest("1 to 1000000", field="--gpus")
    model = model_name(args.model, origin="--model")
    nodes = _nodes(model, args.gpus)
    jobs = _jobs(args, model)
    if not jobs:
        raise BadRequest("no job in it runs on a GPU", field="--trace")
    sys.stderr.write(f"{len(jobs)} jobs on {args.gpus} {model}\n")
    outcomes: dict[str, Outcome] = {}
    speeds: dict[str, float] = {}
    for name, policy in _policies(args).items():
        site = Site(
            nodes=nodes,
            policy=policy,
            book=PriceBook(default_prices()),
            guarantees=_guarantees(args.guarantee, model),
        )
        begun_s = time.process_time()
        outcomes[name] = Replay(site, jobs).run()
        speeds[name] = outcomes[name].simulated_s / max(1e-9, time.process_time() - begun_s)
        sys.stderr.write(f"{name}: {speeds[name]:,.0f} times as fast as it happened\n")
    _show(args, outcomes, speeds)
    return 0


def _show(args: argparse.Namespace, outcomes: dict[str, Outcome], speeds: dict[str, float]) -> None:
    if args.html:
        title = f"{args.gpus} cards, {next(iter(outcomes.values())).jobs_count} jobs"
        try:
            Path(args.html).write_text(comparison_page(title, outcomes), "utf-8")
        except OSError as error:
            raise BadRequest(f"{args.html}: {error.strerror}", field="--html") from error
    if args.json:
        found = {name: asdict(one) | {"speed": speeds[name]} for name, one in outcomes.items()}
        print(json.dumps(found, indent=2))
        return
    rows = [_row(name, one, speeds[name]) for name, one in outcomes.items()]
    widths = [max(len(row[column]) for row in (_HEADER, *rows)) for column in range(len(_HEADER))]
    for row in (_HEADER, *rows):
        print("  ".join(text.rjust(w) for text, w in zip(row, widths, strict=True)))


def _row(name: str, one: Outcome, speed: float) -> tuple[str, ...]:
    return (
        name,
        f"{100 * one.utilisation_ratio:.1f} %",
        _duration(one.wait_mean_s),
        _duration(one.wait_median_s),
        _duration(one.wait_p99_s),
        f"{100 * one.fragmentation_ratio:.1f} %",
        str(one.displaced_count),
        f"{one.lost_s / 3600:.1f}",
        dollars(round(one.charged_micro - one.discount_micro, -4)),
        f"{speed:,.0f}",
    )


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _nodes(model: str, gpus: int) -> tuple[Node, ...]:
    sxm = "SXM" in model
    nodes = []
    for number in range(-(-gpus // 8)):
        count = min(8, gpus - 8 * number)
        islands = (
            (tuple(range(count)),) if sxm else tuple((g, g + 1) for g in range(0, count - 1, 2))
        )
        nodes.append(Node(name=f"node-{number:05}", model=model, gpu_count=count, islands=islands))
    return tuple(nodes)


def _jobs(args: argparse.Namespace, model: str) -> list[Job]:
    if args.trace is not None:
        for text in args.columns:
            if "=" not in text:
                raise BadRequest(f"{text!r} is no OURS=THEIRS", field="--columns")
        columns = dict(text.split("=", 1) for text in args.columns)
        try:
            with Path(args.trace).open(encoding="utf-8", newline="") as file:
                return read_trace(file, model, name=args.trace, columns=columns)
        except (OSError, UnicodeDecodeError) as error:
            raise BadRequest(f"{args.trace}: {error}", field="--trace") from error
    if not 0 < args.days <= 3650:
        raise BadRequest("above 0, at most 3650", field="--days")
    jobs: int = args.jobs if args.jobs is not None else _jobs_for(args, model)
    if jobs < 1:
        raise BadRequest("1 or more", field="--jobs")
    chance = random.Random(args.seed)  # noqa: S311 -- a made trace is no secret
    return list(made_trace(chance, jobs=jobs, days=args.days, model=model))


def _jobs_for(args: argparse.Namespace, model: str) -> int:
    """How many made jobs ask for a share of the fleet's card time."""
    chance = random.Random(args.seed)  # noqa: S311
    sample = list(made_trace(chance, jobs=4000, days=args.days, model=model))
    each_s = sum(j.duration_s * j.shape.eighths * j.members for j in sample) / 8 / len(sample)
    return int(max(1, round(args.load * args.gpus * args.days * 86_400 / each_s)))


def _policies(args: argparse.Namespace) -> dict[str, Policy]:
    base = Policy(notice_s=args.notice, backfill=not args.no_backfill, depth=200)
    found: dict[str, Policy] = {}
    for order in _names(args.order, ORDERS, "--order"):
        for fitting in _names(args.fitting, FITTINGS, "--fitting"):
            found[f"{order}, {fitting}"] = replace(
                base, order=ORDERS[order], fitting=FITTINGS[fitting]
            )
    return found


def _names(text: str, known: Any, option: str) -> Sequence[str]:
    names = [word.strip() for word in text.split(",") if word.strip()]
    for name in names:
        if name not in known:
            raise BadRequest(f"{name!r} is none of {', '.join(known)}", field=option)
    return names


def _guarantees(texts: Sequence[str], model: str) -> dict[tuple[str, Shape], int]:
    found: dict[tuple[str, Shape], int] = {}
    for text in texts:
        tenant, equals, rest = text.partition("=")
        count, colon, shape = rest.partition(":")
        if not (equals and colon and count.isdecimal()):
            raise BadRequest(f"{text!r} is no TENANT=N:SHAPE", field="--guarantee")
        found[tenant, parse_shape(shape, {model})] = int(count)
    return found
