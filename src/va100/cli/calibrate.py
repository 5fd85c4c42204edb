"""``va100 calibrate``: bring predicted times to what a person measured on a real card."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from va100.cli.options import add_gpu_options, chosen_settings
from va100.profile.calibrate import read_measurements, report, report_text, save
from va100.profile.launch import read_records


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "calibrate",
        help="fit predicted times to your own measurements, and show before and after",
        description="Compare a saved profile with times measured on a real card, fit four factors "
        "(DRAM, L2, SM clock, launch) and show what they change, also for launches left out.",
        epilog="MEASURED.csv has columns kernel and time_us (or time_s, time_ms, time_ns), and "
        "grid and block (such as 864x1x1) where a kernel ran in several shapes. A saved "
        "calibration is used by every command where VA100_CALIBRATION names it.",
    )
    add_gpu_options(parser)
    parser.add_argument("profile", metavar="RUN.json", type=Path, help="va100 profile --json=FILE")
    parser.add_argument("measured", metavar="MEASURED.csv", type=Path)
    parser.add_argument("--save", metavar="FILE", type=Path, help="keep the factors")
    parser.add_argument("--json", action="store_true", help="print JSON, in base units")


def run(args: argparse.Namespace) -> int:
    """Calibrate, print, keep."""
    chip = chosen_settings(args).chip
    found = report(read_records(args.profile), read_measurements(args.measured), chip)
    if args.save is not None:
        save(found.factors, args.save)
    print(json.dumps(asdict(found), indent=1) if args.json else report_text(found))
    return 0
