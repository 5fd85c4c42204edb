"""``va100 cloud serve`` and ``doctor``: a site on this machine, and what is wrong with one."""

from __future__ import annotations

import argparse
import functools
import json
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from va100.cli import cloud_devices, environment, version
from va100.config import Settings, inherited
from va100.errors import BadRequest, SetupError

_MODULE = sys.modules[__name__]
_MISSING: Final = "the cloud's own packages are not installed"
_REMEDY: Final = "pip install 'va100[cloud]'"
DEFAULT_NODES: Final = (
    "hgx-1=A100-SXM4-80GB:8",
    "hgx-2=A100-SXM4-40GB:8",
    "pcie-1=A100-PCIE-80GB:2",
    "pcie-2=A100-PCIE-40GB:2",
)


def add_parsers(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verbs."""
    serve = verbs.add_parser(
        "serve",
        help="start a cloud on this machine",
        description="Start a cloud: console, API and scheduler, with virtual nodes on this "
        "machine. Whoever registers first is its operator.",
    )
    _add_place(serve)
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on")
    serve.add_argument("--port", type=int, default=8420, help="port to listen on (0: any)")
    serve.add_argument("--workers", type=int, default=1, metavar="N",
                       help="processes that answer; one is elected to schedule")  # fmt: skip
    serve.add_argument(
        "--node",
        action="append",
        metavar="NAME=MODEL:COUNT[@DRIVER]",
        help="a node, on a new site, with the driver local (here), slurm or kubernetes; may be "
        "repeated (default: "
        f"{', '.join(DEFAULT_NODES)})",
    )
    serve.add_argument("--templates", action="append", metavar="DIR", default=[],
                       help="a folder of more templates; may be repeated")  # fmt: skip
    serve.add_argument("--policy", default="first-come", help="who is served first: first-come, "
                       "fair-share, shortest-first, largest-first")  # fmt: skip
    serve.add_argument("--notice", type=int, default=30, metavar="SECONDS",
                       help="what a displaced instance is given to save its work")  # fmt: skip
    serve.add_argument("--memory-per-eighth", type=float, metavar="GIB",
                       help="memory of this host for an eighth of a card, which is where the "
                       "card's own memory is, too (default: that of the card and 2)")  # fmt: skip
    serve.add_argument("--closed", action="store_true",
                       help="nobody registers but the first, who becomes the operator")  # fmt: skip
    serve.add_argument("--no-self-top-up", action="store_true", help="only operators top up")
    serve.add_argument("--slurm-partition", default="", help="partition of Slurm's nodes")
    serve.add_argument("--slurm-apart", default="", metavar="WORDS",
                       help="what keeps Slurm jobs of tenants apart, if anything does")  # fmt: skip
    serve.add_argument("--kubernetes-namespace", default="va100", metavar="NAME")
    serve.add_argument("--json-logs", action="store_true", help="log lines as JSON")
    serve.add_argument("--descriptor", type=int, help=argparse.SUPPRESS)
    serve.set_defaults(cloud_module=_MODULE, cloud_run=_serve)
    doctor = verbs.add_parser(
        "doctor",
        help="check a deployment",
        description="Check a deployment: packages, database, migrations, isolation, ledger, "
        "scheduler; exit status 1 if something is wrong.",
    )
    _add_place(doctor)
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.set_defaults(cloud_module=_MODULE, cloud_run=_doctor)


def run(args: argparse.Namespace) -> int:
    """Do what the command line asks."""
    status: int = args.cloud_run(args)
    return status


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", metavar="DIR", default=None,
        help="folder of the site's database and instances (default: va100-cloud in the user's "
        "state folder)",
    )  # fmt: skip
    parser.add_argument(
        "--database", metavar="URL",
        help="another database: postgresql+psycopg://USER@HOST/NAME (default: SQLite in --data)",
    )  # fmt: skip


def data_folder(named: str | None) -> Path:
    """The folder of a site's data."""
    if named is not None:
        return Path(named).resolve()
    variables = inherited()
    state = variables.get("XDG_STATE_HOME") or str(
        Path(variables.get("HOME") or Path.home()) / ".local" / "state"
    )
    return Path(state) / "va100-cloud"


def _database_url(args: argparse.Namespace) -> str:
    return args.database or f"sqlite:///{data_folder(args.data) / 'cloud.db'}"


# ---------------------------------------------------------------- serve


def _serve(args: argparse.Namespace) -> int:
    if not environment.is_built():
        raise SetupError("the native core is not built", remedy="make setup")
    if not 1 <= args.workers <= 32:
        raise BadRequest("1 to 32 workers", field="--workers")
    nodes = [_node(text) for text in args.node or DEFAULT_NODES]
    options = _options(args)
    _require_packages()
    listening = _listening(args)
    host, port = listening.getsockname()[:2]
    _set_up_logs(as_json=args.json_logs)
    if args.descriptor is None:
        shown = "127.0.0.1" if host == "0.0.0.0" else host  # noqa: S104 -- compared, not bound
        print(
            f"va100 cloud on http://{shown}:{port} (data in {data_folder(args.data)})", flush=True
        )
    if args.workers > 1 and args.descriptor is None:
        return _serve_together(args, listening)
    # Imported here: packages of the extra, which need not be installed for other verbs.
    import uvicorn  # noqa: PLC0415

    from va100.cloud.api.app import create_app  # noqa: PLC0415
    from va100.cloud.web.console import add_console  # noqa: PLC0415

    app = create_app(_site(args, nodes, options), version=version.VERSION)
    add_console(app)
    config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False,
                            timeout_graceful_shutdown=10)  # fmt: skip
    # The server ends gracefully and then raises the signal again: to be told is no failure.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    uvicorn.Server(config).run(sockets=[listening])
    return 0


def _require_packages() -> None:
    try:
        import va100.cloud.api.app  # noqa: PLC0415
        import va100.cloud.service.passwords  # noqa: F401, PLC0415
    except ImportError as error:
        raise SetupError(f"{_MISSING} ({error.name})", remedy=_REMEDY) from error


def _listening(args: argparse.Namespace) -> socket.socket:
    if args.descriptor is not None:
        return socket.socket(fileno=args.descriptor)
    family = socket.AF_INET6 if ":" in args.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((args.host, args.port))
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise SetupError(
            f"{args.host}:{args.port}: {why}", remedy="name another --port, or 0 for any"
        ) from error
    listening.listen(512)
    return listening


def _serve_together(args: argparse.Namespace, listening: socket.socket) -> int:
    """Start workers on one socket, and others for those that die, until told to end."""
    listening.set_inheritable(True)
    words = [sys.executable, "-m", "va100.cli", *sys.argv[1:], "--descriptor",
             str(listening.fileno())]  # fmt: skip
    ended = False

    def end(*_: Any) -> None:
        nonlocal ended
        ended = True
        for child in children:
            child.terminate()

    children: list[subprocess.Popen[bytes]] = []
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    while not ended:
        children = [child for child in children if child.poll() is None]
        while len(children) < args.workers and not ended:
            children.append(
                subprocess.Popen(words, pass_fds=[listening.fileno()])  # noqa: S603 -- ourselves
            )
        time.sleep(0.2)
    for child in children:
        child.wait()
    return 0


def _options(args: argparse.Namespace) -> Any:
    from va100.cloud.policies import ORDERS, Policy  # noqa: PLC0415
    from va100.cloud.service.options import SiteOptions  # noqa: PLC0415

    if args.policy not in ORDERS:
        raise BadRequest(f"{args.policy!r} is none of {', '.join(ORDERS)}", field="--policy")
    if args.notice < 1:
        raise BadRequest("1 second or more", field="--notice")
    memory = args.memory_per_eighth
    if memory is not None and memory <= 0:
        raise BadRequest("more than 0 GiB", field="--memory-per-eighth")
    return SiteOptions(
        policy=Policy(order=ORDERS[args.policy], notice_s=args.notice),
        memory_per_eighth_bytes=None if memory is None else int(memory * (1 << 30)),
        open_registration=not args.closed,
        self_top_up=not args.no_self_top_up,
    )


def _site(args: argparse.Namespace, nodes: list[Any], options: Any) -> Any:
    from va100.cloud.service.passwords import Argon2  # noqa: PLC0415
    from va100.cloud.site import Setting, open_site  # noqa: PLC0415
    from va100.cloud.store.database import Database  # noqa: PLC0415

    setting = Setting(
        clock=time.time,  # noqa: TID251 -- the edge hands the clock in
        token=secrets.token_hex,
        hasher=Argon2(),
        options=options,
        nodes=nodes,
        template_folders=[Path(folder) for folder in args.templates],
    )
    database = Database(_database_url(args))
    database.migrate()
    return open_site(database, _drivers(args, database, nodes), setting)


def _drivers(args: argparse.Namespace, database: Any, nodes: list[Any]) -> dict[str, Any]:
    """The drivers that the site's nodes need, those it has and those it is to get."""
    from va100.cloud.drivers.kubernetes import KubernetesDriver  # noqa: PLC0415
    from va100.cloud.drivers.local import LocalDriver  # noqa: PLC0415
    from va100.cloud.drivers.slurm import SlurmDriver  # noqa: PLC0415
    from va100.cloud.records import NodeRecord  # noqa: PLC0415

    with database.work() as work:
        wanted = {node.driver for node in [*nodes, *work.all(NodeRecord)]}
    data = data_folder(args.data)
    devices = functools.partial(cloud_devices.devices, Settings.from_environment())
    found: dict[str, Any] = {}
    if "local" in wanted:
        found["local"] = LocalDriver(
            data / "instances", _sandbox(), devices, secrets.token_hex, limits=_limits(),
            gpu_work_ns=cloud_devices.gpu_work_ns,
        )  # fmt: skip
    if "slurm" in wanted:
        found["slurm"] = SlurmDriver(
            data / "jobs", devices, inherited(), partition=args.slurm_partition,
            apart=args.slurm_apart,
        )  # fmt: skip
    if "kubernetes" in wanted:
        found["kubernetes"] = KubernetesDriver(args.kubernetes_namespace, inherited())
    return found


def _sandbox() -> Any:
    import va100  # noqa: PLC0415
    from va100.cloud.drivers.sandbox import choose_sandbox, python_folders  # noqa: PLC0415

    package = Path(va100.__file__).resolve().parents[1]
    return choose_sandbox(inherited().get("PATH", os.defpath), [*python_folders(), package])


def _limits() -> Any:
    from va100.cloud.drivers.limits import choose_limits  # noqa: PLC0415

    return choose_limits()


def _node(text: str) -> Any:
    from va100.cloud.records import NodeRecord  # noqa: PLC0415
    from va100.config import model_name  # noqa: PLC0415

    name, equals, rest = text.partition("=")
    rest, _, driver = rest.partition("@")
    if driver not in ("", "local", "slurm", "kubernetes"):
        raise BadRequest(f"{text!r}: {driver} is none of local, slurm, kubernetes", field="--node")
    model, _, count = rest.partition(":")
    if not equals or not name or not model or not (count or "1").isdecimal():
        raise BadRequest(f"{text!r} is no NAME=MODEL:COUNT", field="--node")
    number = int(count or 1)
    if not 1 <= number <= 16:
        raise BadRequest(f"{text!r}: 1 to 16 cards", field="--node")
    model = model_name(model, origin="--node")
    return NodeRecord(
        name=name,
        model=model,
        gpu_count=number,
        islands=_islands(model, number),
        driver=driver or "local",
    )


def _islands(model: str, count: int) -> list[list[int]]:
    """Cards of a board reach each other; PCIe cards do in pairs, under a bridge."""
    if "SXM" in model:
        return [list(range(first, min(first + 8, count))) for first in range(0, count, 8)]
    return [[gpu, gpu + 1] for gpu in range(0, count - 1, 2)]


class _JsonLines(logging.Formatter):
    """Log records as JSON, one a line, with whatever they were given besides words."""

    _PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        facts = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        facts |= {k: v for k, v in vars(record).items() if k not in self._PLAIN}
        if record.exc_info:
            facts["exception"] = self.formatException(record.exc_info)
        return json.dumps(facts, default=str)


def _set_up_logs(*, as_json: bool) -> None:
    handler = logging.StreamHandler()
    plain = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(_JsonLines() if as_json else plain)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    if not as_json:
        logging.getLogger("va100.cloud.api").setLevel(logging.WARNING)
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)


# ---------------------------------------------------------------- doctor


def _doctor(args: argparse.Namespace) -> int:
    """Check what a site needs and what it says of itself."""
    _require_packages()
    from va100.cloud.service.checkup import check_site  # noqa: PLC0415
    from va100.cloud.store.database import Database  # noqa: PLC0415

    findings = [("native core", environment.is_built(), "built" if environment.is_built()
                 else "not built: make setup")]  # fmt: skip
    isolation = _sandbox().isolation()
    findings.append(("isolation", isolation.isolates, isolation.how))
    limits = _limits()
    findings.append(("limits", limits.holds(), limits.how()))
    url = _database_url(args)
    path = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and not path.exists():
        findings.append(("database", False, f"{path} is not there: va100 cloud serve makes it"))
    else:
        database = Database(url)
        try:
            now_s = time.time()  # noqa: TID251 -- the edge hands the clock in
            findings += check_site(database, now_s)
        finally:
            database.close()
    well = all(good for _, good, _ in findings)
    if args.json:
        print(json.dumps([{"check": c, "good": g, "detail": d} for c, g, d in findings], indent=2))
    else:
        for check, good, detail in findings:
            print(f"{'ok  ' if good else 'FAIL'}  {check}: {detail}")
    return 0 if well else 1
