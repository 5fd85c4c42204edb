"""``va100 plan cost``: owning against renting, and what the answer hangs on."""

from __future__ import annotations

import argparse
from typing import Any

from va100.cli.plan_options import (
    FITS,
    add_machine_options,
    add_output_options,
    chosen_machine,
    count,
    positive,
    print_document,
    share,
)
from va100.errors import PlanError
from va100.plan.cost import (
    DEFAULTS,
    ApiPrices,
    Owning,
    cost_document,
    gpus_within_power,
    offers_of,
    own_cost,
    own_usd_per_million,
)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the kind of work to the command line."""
    parser = subparsers.add_parser(
        "cost",
        help="owning GPUs against dated cloud prices: break-even and sensitivity",
        description="Reckon what an hour of a GPU's work costs its owner, beside what clouds ask. "
        "Defaults are assumptions; the answer lists which were used.",
    )
    add_machine_options(parser)
    own = parser.add_argument_group("owning, per GPU")
    for name, value in DEFAULTS.items():
        own.add_argument(
            f"--{name.replace('_', '-')}",
            type=float,
            default=value,
            metavar="X",
            help=f"(assumed: {value:g})",
        )
    rent = parser.add_argument_group("renting")
    rent.add_argument(
        "--spot-interruptions-per-day",
        type=float,
        default=1.0,
        metavar="N",
        help="(assumed: %(default)s)",
    )
    rent.add_argument(
        "--reserved-discount",
        type=share,
        default=0.4,
        metavar="SHARE",
        help="off on-demand for a commitment that is paid used or not (assumed: %(default)s)",
    )
    more = parser.add_argument_group("questions")
    more.add_argument("--power-budget-kw", type=positive, metavar="KW", help="GPUs it feeds")
    more.add_argument("--tokens-per-s", type=positive, metavar="R", help="answered by --gpus")
    more.add_argument("--gpus", type=count, default=1, metavar="N")
    more.add_argument("--api-input-usd", type=positive, metavar="USD", help="a million tokens in")
    more.add_argument("--api-output-usd", type=positive, metavar="USD", help="a million out")
    more.add_argument("--api-cached-usd", type=float, default=0.0, metavar="USD", help="in, cached")
    more.add_argument("--cached-share", type=float, default=0.0, metavar="SHARE", help="of prompts")
    more.add_argument("--prompt", type=count, default=1000, metavar="N")
    more.add_argument("--output", type=count, default=250, metavar="N")
    add_output_options(parser)


def run(args: argparse.Namespace) -> int:
    """Reckon what the command line asks; the result is the exit status."""
    machine = chosen_machine(args)
    owning = Owning(**{name: getattr(args, name) for name in DEFAULTS})
    if args.spot_interruptions_per_day < 0:
        raise PlanError("--spot-interruptions-per-day is below 0", hint="give 0 or more")
    offers = offers_of(machine, args.usd_per_gpu_h)
    terms = (args.spot_interruptions_per_day, args.reserved_discount)
    document = cost_document(machine, owning, offers, terms)
    if args.power_budget_kw:
        document["gpus_within_power_budget"] = gpus_within_power(owning, args.power_budget_kw)
    if args.tokens_per_s:
        document["per_million_output_tokens"] = _tokens(args, owning)
    print_document(args, document, _text(document))
    return FITS


def _tokens(args: argparse.Namespace, owning: Owning) -> dict[str, Any]:
    own = own_usd_per_million(own_cost(owning), args.gpus, args.tokens_per_s)
    found: dict[str, Any] = {"own_usd": own}
    if args.api_output_usd:
        if not 0 <= args.cached_share <= 1:
            raise PlanError(f"--cached-share is {args.cached_share}", hint="a share, 0 to 1")
        api = ApiPrices(
            input_usd=args.api_input_usd or 0.0,
            output_usd=args.api_output_usd,
            cached_usd=args.api_cached_usd,
            cached_share=args.cached_share,
            prompt=args.prompt,
            output=args.output,
        )
        found["api_usd"] = api.usd_per_million_output
        found["own_is_cheaper"] = own < api.usd_per_million_output
        found["break_even_tokens_per_s"] = own * args.tokens_per_s / api.usd_per_million_output
    return found


def _text(document: dict[str, Any]) -> str:
    own = document["own"]
    lines = [
        f"owning a GPU of {document['machine']}: ${own['usd_per_gpu_h']:.3f} an hour, "
        f"${own['usd_per_used_h']:.3f} an hour of work",
    ]
    lines += [
        f"  {name.removesuffix('_usd'):<14}${value:10,.0f} a year"
        for name, value in own.items()
        if name.endswith("_usd") and name != "year_usd"
    ]
    lines += ["", "  offers, cheapest hour of work first    $/GPU-h  $/h of work  break-even use"]
    for one in document["offers"]:
        even = one["break_even_utilization"]
        said = "never" if even is None else f"{even:.0%}"
        title = f"{one['source']} {one['market']} {one['date']}"
        lines.append(
            f"    {title[:44]:<44}{one['usd_per_gpu_h']:8.3f}{one['usd_per_used_h']:10.3f}{said:>8}"
        )
    lines += ["", "  each input 20 % lower and higher, strongest first"]
    for name, (low, high) in list(document["sensitivity_usd_per_used_h"].items())[:8]:
        lines.append(f"    {name:<26}${low:.3f} to ${high:.3f}")
    lines.append(f"  assumed: {', '.join(document['assumed']) or 'nothing'}")
    for name in ("gpus_within_power_budget", "per_million_output_tokens"):
        if name in document:
            lines.append(f"  {name.replace('_', ' ')}: {document[name]}")
    return "\n".join(lines)
