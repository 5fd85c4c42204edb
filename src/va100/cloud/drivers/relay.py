"""A relay from a socket outside to a port inside an instance's own network.

``python -m va100.cloud.drivers.relay FOLDER PORT`` runs in the instance's network, and listens on
``port-PORT.sock`` in the folder, where the cloud can reach it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from pathlib import Path

from va100.cloud.drivers import procfs
from va100.cloud.drivers.shim import write_whole


def main(folder: Path, port: int) -> int:
    """Relay connections until told to end."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / f"port-{port}.sock"))
        listening.listen(16)
        me = procfs.program(os.getpid())
        facts = {"shim": os.getpid(), "started": me.started if me else 0}
        write_whole(folder / f"port-{port}.json", facts)
        while True:
            outer, _ = listening.accept()
            threading.Thread(target=_join, args=(outer, port), daemon=True).start()


def _join(outer: socket.socket, port: int) -> None:
    with outer:
        try:
            inner = socket.create_connection(("127.0.0.1", port), timeout=10)
        except OSError:
            return
        with inner:
            inner.settimeout(None)
            back = threading.Thread(target=_pump, args=(inner, outer), daemon=True)
            back.start()
            _pump(outer, inner)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
