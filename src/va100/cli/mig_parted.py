"""``va100 mig apply``, ``export`` and ``assert``: layouts in mig-parted's form on a node's GPUs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from va100 import config
from va100.errors import NodeError, NvmlError, SetupError
from va100.node import parted as form
from va100.nvml import parted
from va100.nvml.client import Nvml

DONE, FAILED, MISUSED = 0, 1, 2
VERBS: Final = ("apply", "export", "assert")


def add_verbs(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the three verbs to ``va100 mig``."""
    apply = verbs.add_parser(
        "apply",
        help="make the layout of a mig-parted file, changing as little as there can be",
        description="Bring a node's GPUs to a layout of a mig-parted configuration file. What is "
        "there already stays, what is used is never touched, and a layout that cannot be is "
        "refused before anything changes.",
    )
    _add_file(apply)
    apply.add_argument("--dry-run", action="store_true", help="say what would happen, do nothing")
    check = verbs.add_parser(
        "assert",
        help="status 0 where the GPUs are as a layout of a mig-parted file, else 1",
        description="Compare a node's GPUs with a layout of a mig-parted configuration file.",
    )
    _add_file(check)
    check.add_argument(
        "-a", "--valid-config", action="store_true", help="only whether the file can be read"
    )
    export = verbs.add_parser(
        "export",
        help="print the layout that the GPUs have as a mig-parted file",
        description="Print the layout of a node's GPUs in mig-parted's form.",
    )
    export.add_argument(
        "-l", "--config-label", metavar="LABEL", default="current", help="default: current"
    )
    export.add_argument(
        "-o", "--output-format", choices=("yaml", "json"), default="yaml", help="default: yaml"
    )
    export.add_argument("-f", "--output-file", metavar="FILE", help="default: standard output")
    export.add_argument("--node", metavar="NAME", default="", help="default: VA100_NODE")


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-f", "--config-file", metavar="FILE", required=True, help="YAML or JSON; - is the input"
    )
    parser.add_argument(
        "-c", "--selected-config", metavar="LABEL", default="", help="which layout, if several"
    )
    parser.add_argument("-m", "--mode-only", action="store_true", help="MIG mode alone")
    parser.add_argument("--node", metavar="NAME", default="", help="default: VA100_NODE")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Do what the command line asks; the result is the exit status."""
    act = {"apply": _apply, "export": _export, "assert": _assert}[args.mig_verb]
    try:
        return act(args)
    except (SetupError, NodeError, NvmlError) as error:
        sys.stderr.write(f"va100 mig {args.mig_verb}: {error}\n")
        misused = isinstance(error, SetupError) or getattr(error, "why", "") == "bad-name"
        return MISUSED if misused else FAILED


def _rules(args: argparse.Namespace) -> Sequence[form.Rule]:
    path = Path(args.config_file)
    return form.chosen_layout(form.read_layouts(path), args.selected_config, path)


@contextmanager
def _opened(node: str) -> Iterator[Nvml]:
    if node:
        config.adopt({"VA100_NODE": node})
        config.cards_of(node)
    nvml = Nvml()
    try:
        yield nvml
    finally:
        nvml.close()


def _apply(args: argparse.Namespace) -> int:
    rules = _rules(args)
    with _opened(args.node) as nvml:
        found = parted.changes(parted.look(nvml), rules, mode_only=args.mode_only)
        todo = [change for change in found if not change.is_still]
        told: list[str] = []
        say = told.append if args.json else print
        if not args.dry_run:
            for change in todo:
                parted.carry_out(change, say)
    done = not args.dry_run
    if args.json:
        steps: list[Any] = [parted.steps_of(change) for change in todo]
        print(json.dumps({"applied": done, "changes": steps, "done": told}, indent=2))
        return DONE
    if args.dry_run:
        for change in todo:
            print(json.dumps(parted.steps_of(change)))
    print(_summary(len(found), len(todo), done=done))
    return DONE


def _summary(named: int, changed: int, *, done: bool) -> str:
    if not named:
        return "the layout names none of the GPUs; nothing was changed"
    if not done:
        return f"{changed} of {named} GPUs would change"
    if not changed:
        return "MIG configuration applied successfully: all was as asked"
    return f"MIG configuration applied successfully: {changed} of {named} GPUs changed"


def _assert(args: argparse.Namespace) -> int:
    rules = _rules(args)
    differences: list[str] = []
    if not args.valid_config:
        with _opened(args.node) as nvml:
            cards = parted.look(nvml)
            differences = list(parted.is_as_asked(cards, rules, mode_only=args.mode_only))
    if args.json:
        print(json.dumps({"as_asked": not differences, "differences": differences}, indent=2))
    elif differences:
        lines = ["selected configuration not currently applied", *differences]
        sys.stderr.write("".join(f"va100 mig assert: {line}\n" for line in lines))
    elif args.valid_config:
        print("Selected MIG configuration is valid")
    else:
        print("Selected MIG configuration currently applied")
    return FAILED if differences else DONE


def _export(args: argparse.Namespace) -> int:
    with _opened(args.node) as nvml:
        rules = form.layout_of((card.enabled, card.devices) for card in parted.look(nvml))
    spell = form.as_yaml if args.output_format == "yaml" else form.as_json
    text = spell(args.config_label, rules)
    if args.output_file is None:
        sys.stdout.write(text)
        return DONE
    try:
        Path(args.output_file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SetupError(str(error), remedy="-f with a file that can be written") from error
    return DONE
