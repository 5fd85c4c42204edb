"""``va100 cloud slurm-conf``: Slurm's files for cards and MIG slices, written or checked."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from va100.cloud.drivers.slurm_files import NodeLayout, gres_conf, mismatches, slurm_conf_lines
from va100.config import model_name
from va100.errors import BadRequest

_MODULE = sys.modules[__name__]


def add_parsers(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "slurm-conf",
        help="write or check Slurm's files for GPUs and MIG slices",
        description="Write gres.conf and the lines of slurm.conf for nodes whose cards are cut "
        "into MIG slices, or name what does not fit in a pair of files.",
    )
    parser.add_argument(
        "--node", action="append", default=[], metavar="NAME=MODEL:CARD;CARD",
        help="a node and what each card is cut into: n1=sxm80:1g.10gb*7;3g.40gb,4g.40gb;whole",
    )  # fmt: skip
    parser.add_argument("--devices", default="/dev/nvidia-caps/nvidia-cap{number}",
                        help="where the devices' files are, with {number}")  # fmt: skip
    parser.add_argument("--out", metavar="DIR", help="folder to write to (default: print)")
    parser.add_argument("--check", nargs=2, metavar=("GRES_CONF", "SLURM_CONF"),
                        help="name what does not fit; exit status 1 if anything does")  # fmt: skip
    parser.set_defaults(cloud_module=_MODULE)


def run(args: argparse.Namespace) -> int:
    """Write or check."""
    if args.check:
        found = mismatches(*(_read(path) for path in args.check))
        for line in found:
            print(line)
        if not found:
            print("the files fit each other")
        return 1 if found else 0
    if not args.node:
        raise BadRequest("name nodes, or files to --check", field="--node")
    if "{number}" not in args.devices:
        raise BadRequest("needs {number}", field="--devices")
    layouts = [_layout(text) for text in args.node]
    texts = {
        "gres.conf": gres_conf(layouts, args.devices),
        "slurm.conf.gpus": slurm_conf_lines(layouts),
    }
    for name, text in texts.items():
        if args.out:
            _write(Path(args.out) / name, text)
        else:
            print(f"# ---- {name}\n{text}")
    return 0


def _layout(text: str) -> NodeLayout:
    name, equals, rest = text.partition("=")
    model, colon, cards = rest.partition(":")
    if not (equals and colon and name and cards):
        raise BadRequest(f"{text!r} is no NAME=MODEL:CARD;CARD", field="--node")
    return NodeLayout(
        name=name,
        model=model_name(model, origin="--node"),
        cards=tuple(_card(card) for card in cards.split(";")),
    )


def _card(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for word in text.split(","):
        profile, _, count = word.strip().partition("*")
        if (count and not count.isdecimal()) or not profile:
            raise BadRequest(f"{text!r} is no list of profiles", field="--node")
        found += [profile] * int(count or 1)
    return () if found == ["whole"] else tuple(found)


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"{path}: {error}", field="--check") from error


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror}", field="--out") from error
