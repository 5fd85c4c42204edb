"""``va100 node``: make, show, break, mend and delete virtual nodes that all processes share."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from va100.errors import NodeError, SetupError
from va100.node import store
from va100.node.kinds import BY_NAME, KINDS
from va100.node.wishes import read_wish
from va100.units import GIB, MIB

DONE, FAILED, MISUSED = 0, 1, 2
_MISUSES: Final = {"bad-name", "bad-kind", "no-such-node", "exists"}
_DETAIL: Final[Mapping[str, str]] = {
    "xid": "the Xid's number",
    "ecc": "sram or dram, corrected or uncorrected, such as dram-uncorrected",
    "remap": "nothing, pending or failed",
    "link": "the link's number, 0 to 11",
    "switch": "the NVSwitch's number, 0 to 5",
    "no-permission": "the NVML function's name",
    "lost": "",
    "thermal": "",
    "power-brake": "",
    "pcie-replay": "",
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "node",
        help="make, show, break and delete virtual nodes that all processes share",
        description="A node is a box of virtual GPUs whose state all your processes see alike. "
        "Choose one with VA100_NODE; without it, everybody has one A100.",
    )
    verbs = parser.add_subparsers(dest="node_verb", metavar="VERB", required=True)
    _add_create(verbs)
    _add_named(verbs, "show", "what a node is and does just now", several=False)
    listing = verbs.add_parser("list", help="nodes that were made", description="List nodes.")
    listing.add_argument("--kinds", action="store_true", help="list the kinds there are instead")
    _add_json(listing)
    reset = _add_named(
        verbs, "reset", "reset GPUs; refused while a process uses them", several=False
    )
    _add_gpu(reset, "the GPU; without it, all")
    delete = _add_named(verbs, "delete", "delete a node; refused while it is used", several=True)
    delete.add_argument("--force", action="store_true", help="even while processes use it")
    _add_inject(verbs)
    clear = _add_named(verbs, "clear", "mend what was injected", several=False)
    _add_gpu(clear, "the GPU; without it, all, and every permission")


def run(args: argparse.Namespace) -> int:
    """Do what the command line asks; the result is the exit status."""
    try:
        return _VERBS[args.node_verb](args)
    except NodeError as error:
        sys.stderr.write(f"va100 node {args.node_verb}: {error}\n")
        return MISUSED if error.why in _MISUSES else FAILED


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, in base units")


def _add_gpu(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--gpu", type=_index, metavar="N", default=None, help=text)


def _index(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is no index of a GPU")
    return int(text)


def _add_named(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser],
    verb: str,
    text: str,
    *,
    several: bool,
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(verb, help=text, description=text[0].upper() + text[1:] + ".")
    if several:
        parser.add_argument("name", metavar="NAME", help="the node")
    else:
        parser.add_argument(
            "name", metavar="NAME", nargs="?", default="", help="the node (default: VA100_NODE)"
        )
    _add_json(parser)
    return parser


def _add_create(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser(
        "create",
        help="make a node",
        description="Make a node of a kind that has a name, or of a YAML or JSON file of cards. "
        "`va100 node list --kinds` lists the kinds.",
    )
    parser.add_argument("name", metavar="NAME", help="what to call it: letters, digits, . - _")
    parser.add_argument(
        "--kind", metavar="KIND|FILE", help="such as hgx-a100-8x80gb; default: NAME"
    )
    _add_json(parser)


def _add_inject(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser(
        "inject",
        help="break something, as clients of a real card would see it",
        description="Break something of a GPU: "
        + "; ".join(f"{what} ({detail})" if detail else what for what, detail in _DETAIL.items())
        + ". `va100 node clear` mends it.",
    )
    parser.add_argument("what", metavar="WHAT", choices=list(_DETAIL), help=", ".join(_DETAIL))
    parser.add_argument("detail", metavar="DETAIL", nargs="?", default="", help="see above")
    parser.add_argument("--gpu", type=_index, metavar="N", default=0, help="the GPU (default: 0)")
    parser.add_argument(
        "--instance", type=_index, metavar="ID", help="only processes on this GPU instance meet it"
    )
    parser.add_argument("--pid", type=_index, metavar="PID", default=0, help="only this process")
    parser.add_argument("--count", type=int, metavar="N", default=1, help="how many (default: 1)")
    parser.add_argument("--node", metavar="NAME", default="", help="the node (default: VA100_NODE)")
    _add_json(parser)


def _create(args: argparse.Namespace) -> int:
    wanted = args.kind or args.name
    kind = BY_NAME.get(wanted.lower())
    if kind is not None:
        store.create_kind(args.name, kind)
    elif Path(wanted).suffix in (".yaml", ".yml", ".json"):
        try:
            board, cards = read_wish(Path(wanted))
        except SetupError as error:
            sys.stderr.write(f"va100 node create: {error}\n")
            return MISUSED
        store.create(args.name, Path(wanted).stem[:40], board, cards)
    else:
        names = ", ".join(k.name for k in KINDS)
        sys.stderr.write(
            f"va100 node create: {wanted} is no kind of node\n"
            f"  to fix: --kind with one of {names}, or a .yaml or .json file\n"
        )
        return MISUSED
    return _told(args, f"made node {args.name}: export VA100_NODE={args.name}")


def _show(args: argparse.Namespace) -> int:
    told = store.describe(args.name)
    if args.json:
        print(json.dumps(told, indent=2))
        return DONE
    print(f"node {told['name'] or '(in memory)'}  kind {told['kind']}  {told['path']}")
    down = [str(switch) for switch in range(32) if told["switches_down"] >> switch & 1]
    if down:
        print(f"NVSwitches that failed: {', '.join(down)}")
    for name in told["denied"]:
        print(f"denied: {name}")
    for gpu in told["gpus"]:
        _print_gpu(gpu)
    return DONE


def _print_gpu(gpu: Mapping[str, Any]) -> None:
    used = sum(p["used_bytes"] for p in gpu["processes"])
    print(
        f"GPU {gpu['index']}: {gpu['name']}  {gpu['bus_id']}  {gpu['uuid']}\n"
        f"  {used / MIB:.0f} MiB of {gpu['memory_bytes'] / GIB:.0f} GiB used, "
        f"{gpu['busy_percent']} % busy, {gpu['power_w']:.1f} of {gpu['power_limit_w']:.0f} W, "
        f"{gpu['energy_j']:.1f} J, {gpu['sm_clock_hz'] / 1e6:.0f} MHz, {gpu['gpu_c']:.0f} C, "
        f"MIG {_mode(gpu)}"
    )
    for instance in gpu["gpu_instances"]:
        span = f"{instance['start']}:{instance['size']}"
        print(f"  GPU instance {instance['id']}: {instance['profile']} at {span}")
        for compute in instance["compute_instances"]:
            print(f"    compute instance {compute['id']}: {compute['slices']}c  {compute['uuid']}")
    for process in gpu["processes"]:
        print(
            f"  process {process['pid']} {process['name']}: "
            f"{process['used_bytes'] / MIB:.0f} MiB, {process['busy_percent']} % busy, "
            f"{process['launches']} launches"
        )
    broken = {what: value for what, value in gpu["faults"].items() if value}
    if broken:
        print("  faults: " + ", ".join(f"{what}={value}" for what, value in broken.items()))


def _mode(gpu: Mapping[str, Any]) -> str:
    mode = "on" if gpu["mig"] else "off"
    if gpu["mig"] == gpu["mig_pending"]:
        return mode
    return f"{mode}, {'on' if gpu['mig_pending'] else 'off'} after a reset"


def _list(args: argparse.Namespace) -> int:
    if args.kinds:
        kinds = [
            {
                "kind": kind.name,
                "model": kind.chip.name,
                "gpu_count": len(kind.seats),
                "board": kind.board.name.lower(),
            }
            for kind in KINDS
        ]
        lines = [f"{k['kind']:<24} {k['gpu_count']} x {k['model']}, {k['board']}" for k in kinds]
        print(json.dumps(kinds, indent=2) if args.json else "\n".join(lines))
        return DONE
    found = []
    for name in store.names():
        try:
            told = store.describe(name)
        except NodeError as error:
            sys.stderr.write(f"va100 node list: {error}\n")
            continue
        processes = {p["pid"] for gpu in told["gpus"] for p in gpu["processes"]}
        found.append(
            {
                "name": name,
                "kind": told["kind"],
                "gpu_count": len(told["gpus"]),
                "model": told["gpus"][0]["model"],
                "process_count": len(processes),
                "path": told["path"],
            }
        )
    if args.json:
        print(json.dumps(found, indent=2))
        return DONE
    for node in found:
        print(
            f"{node['name']:<32} {node['gpu_count']} x {node['model']}  {node['kind']}  "
            f"{node['process_count']} processes"
        )
    return DONE


def _reset(args: argparse.Namespace) -> int:
    store.reset(args.name, args.gpu)
    return _told(args, "reset")


def _delete(args: argparse.Namespace) -> int:
    store.delete(args.name, even_used=args.force)
    return _told(args, f"deleted node {args.name}")


def _inject(args: argparse.Namespace) -> int:
    detail = args.detail.replace("-", " ") if args.what == "ecc" else args.detail
    if args.count < 1:
        sys.stderr.write(f"va100 node inject: --count {args.count} is no count from 1\n")
        return MISUSED
    store.inject(
        args.node, args.gpu, args.what, detail, args.count,
        gpu_instance=args.instance, pid=args.pid,
    )  # fmt: skip
    return _told(args, f"injected {args.what} {args.detail}".rstrip())


def _clear(args: argparse.Namespace) -> int:
    store.inject(args.name, args.gpu, "clear")
    return _told(args, "cleared")


def _told(args: argparse.Namespace, text: str) -> int:
    if args.json:
        name = args.node if args.node_verb == "inject" else args.name
        told = None if args.node_verb == "delete" else store.describe(name)
        print(json.dumps({"done": text, "node": told}, indent=2))
    else:
        print(text)
    return DONE


_VERBS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {
    "create": _create,
    "show": _show,
    "list": _list,
    "reset": _reset,
    "delete": _delete,
    "inject": _inject,
    "clear": _clear,
}
