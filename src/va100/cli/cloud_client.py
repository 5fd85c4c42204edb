"""``va100 cloud`` verbs that ask a site: launch, list, exec, bill and the like."""

from __future__ import annotations

import argparse
import datetime
import getpass
import json
import os
import select
import shutil
import sys
import termios
import tty
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from va100.cloud.client import Client
from va100.cloud.prices import dollars
from va100.config import inherited
from va100.errors import BadRequest, NotSignedIn

_MODULE = sys.modules[__name__]
_DEFAULT_URL: Final = "http://127.0.0.1:8420"
_ESCAPE: Final = b"\x1d"
Run = Callable[[argparse.Namespace], int]


def add_parsers(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verbs."""
    for name, text, run, add in _VERBS:
        parser = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        parser.add_argument(
            "--url", help="the site (default: VA100_CLOUD_URL, what `login` kept, or this machine)"
        )
        add(parser)
        parser.set_defaults(cloud_module=_MODULE, cloud_run=run)


def run(args: argparse.Namespace) -> int:
    """Do what the command line asks."""
    status: int = args.cloud_run(args)
    return status


# ---------------------------------------------------------------- who asks


def _account_file() -> Path:
    variables = inherited()
    base = variables.get("XDG_CONFIG_HOME") or str(
        Path(variables.get("HOME") or Path.home()) / ".config"
    )
    return Path(base) / "va100" / "cloud.json"


def _kept() -> dict[str, str]:
    try:
        found = json.loads(_account_file().read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _url(args: argparse.Namespace) -> str:
    return args.url or inherited().get("VA100_CLOUD_URL") or _kept().get("url") or _DEFAULT_URL


def _client(args: argparse.Namespace) -> Client:
    key = inherited().get("VA100_CLOUD_KEY") or _kept().get("key") or ""
    if not key:
        raise NotSignedIn("no key: va100 cloud login, or set VA100_CLOUD_KEY")
    return Client(_url(args), key)


def _password(args: argparse.Namespace) -> str:
    given = inherited().get("VA100_CLOUD_PASSWORD")
    if given is not None:
        return given
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    return getpass.getpass(f"Password of {args.email}: ")


def _register(args: argparse.Namespace) -> int:
    client = Client(_url(args))
    password = _password(args)
    made = client.register(args.email, password, args.name or "", args.tenant or "")
    print(f"registered {made['email']}" + (", operator of this site" if made["operator"] else ""))
    return _sign_in(client, args, password)


def _login(args: argparse.Namespace) -> int:
    return _sign_in(Client(_url(args)), args, _password(args))


def _sign_in(client: Client, args: argparse.Namespace, password: str) -> int:
    client.sign_in(args.email, password, getattr(args, "code", "") or "")
    me = client.call("GET", "/me")
    wish: dict[str, Any] = {"name": f"{getpass.getuser()}'s command line", "lasts_s": 90 * 86_400}
    wish["scopes"] = me["scopes"]
    key = client.call("POST", "/keys", wish)
    path = _account_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"url": client.url, "key": key["secret"], "id": key["id"]}, file)
    print(f"signed in to {client.url}; a key for 90 days is in {path}")
    return 0


def _logout(args: argparse.Namespace) -> int:
    kept = _kept()
    if kept.get("key"):
        Client(kept["url"], kept["key"]).call("DELETE", f"/keys/{kept['id']}")
        _account_file().unlink()
    print("signed out")
    return 0


# ---------------------------------------------------------------- printing


def _table(rows: Sequence[Sequence[Any]], header: Sequence[str]) -> None:
    texts = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in texts) for column in range(len(header))]
    for row in texts:
        print("  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)).rstrip())


def _print_json(found: Any) -> int:
    print(json.dumps(found, indent=2))
    return 0


def _when(at_s: int | None) -> str:
    if at_s is None:
        return "-"
    return datetime.datetime.fromtimestamp(at_s).astimezone().strftime("%Y-%m-%d %H:%M:%S")


# ---------------------------------------------------------------- verbs


def _offers(args: argparse.Namespace) -> int:
    found = Client(_url(args)).call("GET", "/offers")
    if args.json:
        return _print_json(found)
    rows = [
        [o["gpu"], o["title"], f"{o['memory_bytes'] / 2**30:.1f} GiB", o["sm_count"],
         f"{o['eighths']}/8", dollars(o["per_h_micro"]), dollars(o["spot_per_h_micro"])]
        for o in found
    ]  # fmt: skip
    _table(rows, ["GPU", "WHAT", "MEMORY", "SMS", "CARD", "PER HOUR", "SPOT"])
    return 0


def _templates(args: argparse.Namespace) -> int:
    found = Client(_url(args)).call("GET", "/templates")
    if args.json:
        return _print_json(found)
    _table([[t["name"], t["title"], t["summary"]] for t in found], ["NAME", "TITLE", "WHAT"])
    return 0


def _launch(args: argparse.Namespace) -> int:
    wish: dict[str, Any] = {
        "template": args.template, "name": args.name or "", "count": args.count,
        "nvlink": args.nvlink, "environment": _pairs(args.env), "ports": args.port,
        "command": args.command, "lendable": args.lendable, "recover": not args.no_recover,
        "market": "spot" if args.spot else "borrow" if args.borrow else "on-demand",
    }  # fmt: skip
    given = {"disk_gib": args.disk, "lease_s": args.lease, "idle_stop_s": args.idle_stop}
    wish |= {name: value for name, value in given.items() if value is not None}
    if args.ssh_key:
        wish["ssh_key"] = _text_of(args.ssh_key)
    client = _client(args)
    made = client.launch(args.gpu, **wish)
    if args.wait:
        each = made if isinstance(made, list) else [made]
        made = [client.wait(one["id"], "running", timeout_s=args.wait) for one in each]
        made = made if args.count > 1 else made[0]
    if args.json:
        return _print_json(made)
    for one in made if isinstance(made, list) else [made]:
        print(f"{one['name']}  {one['id']}  {one['gpu']}  {one['state']}  "
              f"{dollars(one['per_h_micro'])}/h")  # fmt: skip
    return 0


def _pairs(words: Sequence[str]) -> dict[str, str]:
    for word in words:
        if "=" not in word:
            raise BadRequest(f"{word!r} is no NAME=VALUE", field="--env")
    return dict(word.split("=", 1) for word in words)


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"{path}: {error}", field="--ssh-key") from error


def _list(args: argparse.Namespace) -> int:
    found = list(_client(args).instances(deleted=args.all))
    if args.json:
        return _print_json(found)
    rows = [
        [i["name"], i["id"], i["gpu"], i["state"] + (" (lent)" if i["lent"] else ""),
         i["tier"] or i["market"], i["node"] if i["tier"] else "-", i["reason"]]
        for i in found
    ]  # fmt: skip
    _table(rows, ["NAME", "ID", "GPU", "STATE", "RIGHT", "NODE", "WHY"])
    return 0


def _show(args: argparse.Namespace) -> int:
    client = _client(args)
    found = client.show(args.name)
    events = client.call("GET", f"/instances/{found['id']}/events")
    if args.json:
        return _print_json(found | {"events": events})
    for name, value in found.items():
        shown = _when(value) if name.endswith("_s") and name != "idle_stop_s" else value
        print(f"{name:14} {dollars(value) + '/h' if name == 'per_h_micro' else shown}")
    for event in reversed(events):
        print(f"{_when(event['at_s'])}  {event['kind']:14} {event['text']}")
    return 0


def _exec(args: argparse.Namespace) -> int:
    words = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not words:
        raise BadRequest("name a command after the instance", field="COMMAND")
    done = _client(args).execute(args.name, words, timeout_s=args.timeout)
    sys.stdout.write(done["output"])
    sys.stderr.write(done["errors"])
    return int(done["exit_code"])


def _logs(args: argparse.Namespace) -> int:
    client, offset = _client(args), 0
    while True:
        piece = client.logs(args.name, offset)
        sys.stdout.write(piece["text"])
        sys.stdout.flush()
        if piece["next"] == offset:
            if not args.follow or client.show(args.name)["state"] not in ("pending", "starting",
                                                                          "running"):  # fmt: skip
                return 0
            client.pause(0.5)
        offset = piece["next"]


def _ssh(args: argparse.Namespace) -> int:
    """A shell on a terminal, over the API: it needs no port and no key of its own."""
    if not sys.stdin.isatty():
        raise BadRequest("needs a terminal; `va100 cloud exec` does not", field="ssh")
    client = _client(args)
    size = shutil.get_terminal_size()
    terminal = client.open_terminal(args.name, size.columns, size.lines)
    sys.stderr.write("[Ctrl-] leaves]\n")
    before = termios.tcgetattr(sys.stdin)
    offset, ended = 0, False
    try:
        tty.setraw(sys.stdin)
        while not ended:
            if select.select([sys.stdin], [], [], 0.05)[0]:
                keys = os.read(sys.stdin.fileno(), 4096)
                if not keys or _ESCAPE in keys:
                    break
                client.type(args.name, terminal, keys)
            shown, offset, ended = client.read_terminal(args.name, terminal, offset)
            os.write(sys.stdout.fileno(), shown)
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
    return 0


def _change(args: argparse.Namespace) -> int:
    client = _client(args)
    body = None
    if args.cloud_verb == "renew":
        body = {"lease_s": args.lease}
    elif args.cloud_verb == "resize":
        body = {"gpu": args.gpu}
    for name in args.names:
        if args.cloud_verb == "delete":
            found = client.delete(name)
        else:
            found = client.change(name, args.cloud_verb, body)
        then = {"stop": "stopped", "start": "running", "restart": "running"}.get(args.cloud_verb)
        if args.wait and then:
            found = client.wait(found["id"], then)
        print(f"{found['name']}  {found['state']}")
    return 0


def _quota(args: argparse.Namespace) -> int:
    found = _client(args).call("GET", "/quota")
    if args.json:
        return _print_json(found)
    rows = [
        [text, found[f"{name}_used"], found[f"{name}_limit"]]
        for name, text in (("eighths", "eighths of a card"), ("instances", "instances"),
                           ("disk_gib", "GiB of disk"))
    ]  # fmt: skip
    _table(rows, ["WHAT", "USED", "LIMIT"])
    return 0


def _usage(args: argparse.Namespace) -> int:
    found = _client(args).call("GET", "/usage", query=_period(args))
    if args.json:
        return _print_json(found)
    rows = [
        [u["name"], u["item"], _share(u["item"], u["eighths"]), f"{u['allocated_s']} s",
         f"{u['busy_s']:.0f} s", dollars(u["charged_micro"] - u["discount_micro"])]
        for u in found
    ]  # fmt: skip
    _table(rows, ["INSTANCE", "ITEM", "SHARE", "ALLOCATED", "GPU BUSY", "COST"])
    return 0


def _bill(args: argparse.Namespace) -> int:
    found = _client(args).call("GET", "/invoice", query=_period(args))
    if args.json:
        return _print_json(found)
    rows = [
        [line["instance"], line["kind"], line["item"], _share(line["item"], line["eighths"]),
         f"{line['seconds_s']} s", dollars(line["amount_micro"])]
        for line in found["lines"]
    ]  # fmt: skip
    _table(rows, ["INSTANCE", "KIND", "ITEM", "SHARE", "TIME", "AMOUNT"])
    for name in ("opening", "charged", "paid", "closing"):
        print(f"{name:8} {dollars(found[name + '_micro'])}")
    return 0


def _share(item: str, eighths: int) -> str:
    """How much of an item: eighths of a card, or GiB of disk."""
    return f"{eighths / 8:g} GiB" if item == "disk" else f"{eighths}/8"


def _period(args: argparse.Namespace) -> dict[str, int]:
    found = {}
    for name in ("from", "to"):
        text = getattr(args, f"{name}_day")
        if text is not None:
            try:
                day = datetime.datetime.fromisoformat(text).astimezone()
            except ValueError as error:
                raise BadRequest(f"{text!r} is no day such as 2026-11-30", field=f"--{name}") from (
                    error
                )
            found[f"{name}_s"] = int(day.timestamp())
    return found


def _top_up(args: argparse.Namespace) -> int:
    try:
        micro = round(float(args.dollars.lstrip("$")) * 1_000_000)
    except (ValueError, OverflowError) as error:
        raise BadRequest(f"{args.dollars!r} is no amount such as 25", field="DOLLARS") from error
    body = {"amount_micro": micro, "reference": args.reference or ""}
    left = _client(args).call("POST", "/top-ups", body)
    print(f"balance {dollars(left['balance_micro'])}")
    return 0


def _balance(args: argparse.Namespace) -> int:
    print(dollars(_client(args).call("GET", "/balance")["balance_micro"]))
    return 0


def _fleet(args: argparse.Namespace) -> int:
    found = _client(args).call("GET", "/operator/fleet")
    if args.json:
        return _print_json(found)
    for card in found:
        cells = ["."] * 8
        for part in card["parts"]:
            for place in range(part["start"], part["start"] + part["width"]):
                cells[place] = {"spot": "s", "borrowed": "b"}.get(part["tier"], "#")
        names = ", ".join(f"{p['instance']} ({p['profile']})" for p in card["parts"])
        print(f"{card['node']:12} GPU {card['gpu']}  [{''.join(cells)}]  {names}")
    return 0


def _defragment(args: argparse.Namespace) -> int:
    client = _client(args)
    if args.carry_out:
        found = client.call("POST", "/operator/defragmentation", {"gpu": args.gpu})
    else:
        found = client.call("GET", "/operator/defragmentation", query={"gpu": args.gpu})
    if args.json:
        return _print_json(found)
    if not found["possible"]:
        print(f"no moves of what may be moved make room for {args.gpu}")
        return 1
    for move in found["under_way"]:
        print(f"{move['instance']}  is being moved from {move['from']} to {move['to']}")
    for move in found["moves"]:
        print(f"{move['instance']}  would move from {move['from']} to {move['to']}")
    if not found["moves"] and not found["under_way"]:
        print(f"{args.gpu} has a place already")
    elif found["moves"]:
        print("--carry-out moves them, with notice")
    return 0


def _api(args: argparse.Namespace) -> int:
    body = None
    if args.body is not None:
        try:
            body = json.loads(args.body)
        except ValueError as error:
            raise BadRequest(f"no JSON: {error}", field="BODY") from error
    if not args.path.startswith("/"):
        raise BadRequest("a path begins with /", field="PATH")
    return _print_json(_client(args).call(args.method.upper(), args.path, body))


# ---------------------------------------------------------------- options


def _json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _nothing(parser: argparse.ArgumentParser) -> None:
    del parser


def _account_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("email", help="e-mail address; the password is asked, read from standard "
                        "input, or taken from VA100_CLOUD_PASSWORD")  # fmt: skip
    parser.add_argument("--name", help="your name")
    parser.add_argument("--tenant", help="name of your tenant")
    parser.add_argument("--code", help="code of the second factor")


def _launch_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--gpu", required=True, metavar="MODEL[:PROFILE|:COUNT]",
        help="what to rent: a100-80g:1g.10gb, sxm40:2, pcie80 (see `va100 cloud offers`)",
    )  # fmt: skip
    parser.add_argument("--template", default="cuda", help="what it starts with")
    parser.add_argument("--name", help="its name")
    parser.add_argument("--count", type=int, default=1, help="a gang that starts together")
    parser.add_argument("--nvlink", action="store_true", help="only cards that NVLink joins")
    market = parser.add_mutually_exclusive_group()
    market.add_argument("--spot", action="store_true", help="cheaper; displaced with notice")
    market.add_argument("--borrow", action="store_true",
                        help="on others' idle guarantees too; given back with notice")  # fmt: skip
    parser.add_argument("--disk", type=int, metavar="GIB", help="size of its disk")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--port", action="append", type=int, default=[], metavar="PORT")
    parser.add_argument(
        "--ssh-key",
        metavar="FILE",
        help="a public key for its ~/.ssh/authorized_keys, for a server that "
        "you bring: `va100 cloud ssh` needs none",
    )
    parser.add_argument("--lease", type=int, metavar="SECONDS", help="how long it may run")
    parser.add_argument("--idle-stop", type=int, metavar="SECONDS",
                        help="stop it after so long without GPU work; 0: never")  # fmt: skip
    parser.add_argument("--lendable", action="store_true",
                        help="let spot instances have its GPU while it is idle")  # fmt: skip
    parser.add_argument("--no-recover", action="store_true",
                        help="stay stopped after a displacement")  # fmt: skip
    parser.add_argument("--wait", type=float, nargs="?", const=120.0, metavar="SECONDS",
                        help="until it runs")  # fmt: skip
    _json_option(parser)
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="instead of the template's")


def _list_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="deleted ones, too")
    _json_option(parser)


def _name_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="INSTANCE", help="name or identifier")


def _show_options(parser: argparse.ArgumentParser) -> None:
    _name_option(parser)
    _json_option(parser)


def _exec_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--timeout", type=float, default=60, metavar="SECONDS")
    _name_option(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND")


def _logs_options(parser: argparse.ArgumentParser) -> None:
    _name_option(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="go on while it runs")


def _names_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--wait", action="store_true", help="until it is so")
    parser.add_argument("names", nargs="+", metavar="INSTANCE")


def _renew_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lease", type=int, metavar="SECONDS", help="from now on")
    _names_options(parser)


def _resize_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpu", required=True, metavar="MODEL[:PROFILE|:COUNT]")
    _names_options(parser)


def _period_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="from_day", metavar="DAY", help="such as 2026-11-01")
    parser.add_argument("--to", dest="to_day", metavar="DAY", help="until when (default: now)")
    _json_option(parser)


def _top_up_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dollars", metavar="DOLLARS")
    parser.add_argument("--reference", help="a payment's name; one name pays once")


def _defragment_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpu", required=True, metavar="MODEL[:PROFILE|:COUNT]",
                        help="what room is to be made for")  # fmt: skip
    parser.add_argument("--carry-out", action="store_true", help="do it, not only plan it")
    _json_option(parser)


def _api_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("method", metavar="METHOD")
    parser.add_argument("path", metavar="PATH", help="below /v1, such as /keys")
    parser.add_argument("body", metavar="BODY", nargs="?", help="JSON")


_VERBS: Final[tuple[tuple[str, str, Run, Callable[[argparse.ArgumentParser], None]], ...]] = (
    ("register", "make an account and sign in", _register, _account_options),
    ("login", "sign in and keep a key", _login, _account_options),
    ("logout", "revoke the kept key", _logout, _nothing),
    ("offers", "what can be rented, with prices", _offers, _json_option),
    ("templates", "what instances can start with", _templates, _json_option),
    ("launch", "launch an instance", _launch, _launch_options),
    ("list", "list instances", _list, _list_options),
    ("show", "show an instance and what happened to it", _show, _show_options),
    ("exec", "run a command inside an instance", _exec, _exec_options),
    ("logs", "print what an instance printed", _logs, _logs_options),
    ("ssh", "open a shell inside an instance", _ssh, _name_option),
    ("stop", "free an instance's GPU; its disk stays", _change, _names_options),
    ("start", "start a stopped instance", _change, _names_options),
    ("restart", "stop an instance and start it again", _change, _names_options),
    ("delete", "end an instance for good, its disk with it", _change, _names_options),
    ("renew", "let a lease last longer", _change, _renew_options),
    ("resize", "give a stopped instance another GPU", _change, _resize_options),
    ("lend", "let spot instances have a paused instance's GPU", _change, _names_options),
    ("recall", "take a lent GPU back", _change, _names_options),
    ("quota", "what you have of what you may have", _quota, _json_option),
    ("usage", "what instances had, and how busy their GPUs were", _usage, _period_options),
    ("bill", "an invoice", _bill, _period_options),
    ("balance", "what is left", _balance, _nothing),
    ("top-up", "pay in", _top_up, _top_up_options),
    ("fleet", "every card with what is on it (operators)", _fleet, _json_option),
    (
        "defragment",
        "move what may be moved, to make room (operators)",
        _defragment,
        _defragment_options,
    ),
    ("api", "call the API with your key", _api, _api_options),
)
