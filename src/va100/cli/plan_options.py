"""Options that several kinds of plans take, and how their answers are printed."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from va100.errors import PlanError
from va100.plan.html import plain_page
from va100.plan.machine import Machine, find_machine, on_network
from va100.spec.nodes import NETWORKS

FITS, DOES_NOT_FIT = 0, 1


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``, ``--csv`` and ``--html``."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, in base units")
    form.add_argument("--csv", action="store_true", help="print one table of names and values")
    parser.add_argument("--html", metavar="FILE", help="also write a self-contained report")


def add_machine_options(parser: argparse.ArgumentParser) -> None:
    """Add the machine and its price."""
    parser.add_argument(
        "--machine",
        metavar="MACHINE",
        default="hgx-a100-8x80gb",
        help="hgx-a100-8x80gb, a GPU such as a100-pcie-80gb, a slice such as "
        "a100-sxm4-80gb:1g.10gb, or an instance type such as p4d.24xlarge (default: %(default)s)",
    )
    parser.add_argument(
        "--network",
        choices=sorted(NETWORKS),
        help="between nodes, in place of the machine's own",
    )
    parser.add_argument(
        "--usd-per-gpu-h",
        metavar="USD",
        type=positive,
        help="price of one GPU an hour (default: the middle of dated price lists)",
    )


def chosen_machine(args: argparse.Namespace) -> Machine:
    """Machine that the options name.

    Raises
    ------
    PlanError
        There is none of that name.
    """
    machine = find_machine(args.machine)
    return on_network(machine, args.network) if args.network else machine


def count(text: str) -> int:
    """Whole number above zero."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no whole number above 0")
    return int(text)


def positive(text: str) -> float:
    """Finite number above zero."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"{text} is no number above 0")
    return value


def share(text: str) -> float:
    """Number above zero, at most one."""
    value = positive(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"{text} is no share from 0 to 1")
    return value


def print_document(
    args: argparse.Namespace, document: Mapping[str, Any], text: str, page: str | None = None
) -> None:
    """Print an answer in the form asked for, and write its report where one is wanted.

    Raises
    ------
    PlanError
        The report cannot be written.
    """
    if args.html:
        write_file(args.html, page or plain_page(f"va100 plan {args.work}", document))
    if args.json:
        print(json.dumps(document, indent=2))
    elif args.csv:
        sys.stdout.write(csv_text(document))
    else:
        print(text)


def write_file(path: str, text: str) -> None:
    """Write a report.

    Raises
    ------
    PlanError
        It cannot be written.
    """
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise PlanError(
            f"{path}: cannot be written: {error.strerror}", hint="give another"
        ) from error


def csv_text(document: Mapping[str, Any]) -> str:
    """Two columns: dotted name, value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["name", "value"])
    writer.writerows(_flat("", document))
    return out.getvalue()


def _flat(prefix: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        pairs = [(f"{prefix}.{key}" if prefix else str(key), part) for key, part in value.items()]
        return [row for name, part in pairs for row in _flat(name, part)]
    if isinstance(value, (list, tuple)):
        return [row for i, part in enumerate(value) for row in _flat(f"{prefix}.{i}", part)]
    return [(prefix, "" if value is None else value)]


def progress_bar(done: int, total: int) -> None:
    """Show on a terminal how far a search is."""
    if not sys.stderr.isatty() or (done % 200 and done != total):
        return
    filled = 30 * done // max(total, 1)
    end = "\n" if done == total else ""
    sys.stderr.write(f"\r[{'#' * filled}{'.' * (30 - filled)}] {done}/{total} plans{end}")
    sys.stderr.flush()
