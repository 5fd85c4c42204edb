"""``va100 exporter``: serve a node's metrics to Prometheus, as dcgm-exporter would."""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from va100 import config
from va100.errors import Va100Error
from va100.node import store
from va100.nvml import exporter
from va100.nvml.client import Nvml

DONE, FAILED, MISUSED = 0, 1, 2
USUAL_ADDRESS: Final = ":9400"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "exporter",
        help="metrics of a node's GPUs for Prometheus, as dcgm-exporter names them",
        description="Serve metrics of the node that VA100_NODE names, at /metrics: names, units "
        "and labels are dcgm-exporter's. /health says whether the node can be read.",
    )
    parser.add_argument(
        "-a",
        "--address",
        metavar="[HOST]:PORT",
        default=USUAL_ADDRESS,
        help=f"where to listen; without a host, at all of the machine's (default: {USUAL_ADDRESS})",
    )
    parser.add_argument("--node", metavar="NAME", help="the node to tell of (default: VA100_NODE)")
    parser.add_argument("--once", action="store_true", help="print the metrics and end")
    parser.add_argument("--quiet", action="store_true", help="do not tell of requests")


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    if args.node is not None:
        config.adopt({"VA100_NODE": args.node})
    if args.once:
        sys.stdout.write(metrics())
        return DONE
    address = _address(args.address)
    if address is None:
        sys.stderr.write(
            f"va100 exporter: {args.address} is no [HOST]:PORT\n"
            f"  to fix: --address {USUAL_ADDRESS}, or 127.0.0.1:9400 for this machine alone\n"
        )
        return MISUSED
    try:
        server = serve(address, metrics, quiet=args.quiet)
    except OSError as error:
        sys.stderr.write(f"va100 exporter: cannot listen at {args.address}: {error.strerror}\n")
        return FAILED
    with server:
        host, port = str(server.server_address[0]), server.server_address[1]
        print(f"metrics at http://{_reachable(host)}:{port}/metrics", flush=True)
        server.serve_forever()
    return DONE


def metrics() -> str:
    """Read the node once.

    Raises
    ------
    Va100Error
        It cannot be read.
    """
    nvml = Nvml()
    try:
        return exporter.scrape(nvml, store.describe(), socket.gethostname())
    finally:
        nvml.close()


def serve(
    address: tuple[str, int], read: Callable[[], str], *, quiet: bool = False
) -> ThreadingHTTPServer:
    """Listen; what is asked for is read when it is asked for.

    Raises
    ------
    OSError
        The address is taken.
    """

    class Handler(BaseHTTPRequestHandler):
        """Answers one request."""

        def do_GET(self) -> None:
            """Answer."""
            path = self.path.partition("?")[0]
            if path not in ("/metrics", "/health", "/"):
                self._answer(404, "text/plain", "there are /metrics and /health\n")
                return
            try:
                text = read()
            except Va100Error as error:
                self._answer(503, "text/plain", f"{error}\n")
                return
            if path == "/metrics":
                self._answer(200, exporter.CONTENT_TYPE, text)
            elif path == "/health":
                self._answer(200, "text/plain", "OK\n")
            else:
                link = '<html><body><a href="/metrics">metrics</a></body></html>\n'
                self._answer(200, "text/html", link)

        def log_message(self, format: str, *args: object) -> None:
            """Tell of a request."""
            if not quiet:
                super().log_message(format, *args)

        def _answer(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    class Server(ThreadingHTTPServer):
        """Listens at either family of addresses."""

        address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET

    return Server(address, Handler)


def _address(text: str) -> tuple[str, int] | None:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        return None
    return host.strip("[]"), int(port)


def _reachable(host: str) -> str:
    return "127.0.0.1" if host in ("0.0.0.0", "") else host  # noqa: S104 -- what was bound
