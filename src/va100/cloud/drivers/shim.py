"""The program beside each instance: starts it, keeps what it prints and how it ended.

It runs apart from whoever asked for it, so that a cloud can be killed and started again without
its instances noticing.  ``python -m va100.cloud.drivers.shim FOLDER`` reads ``order.json`` there
and writes ``running.json``, ``log`` and ``ended.json``.  Told to end, it tells the instance's own
programs, and takes what is left after ``grace_s``.  With ``terminal``, the program runs on one,
and what comes down the pipe ``keys`` is typed into it.  With ``watch``, it watches the instance's
bounds, and leaves in ``trouble.json`` beside the folder what the instance ran into.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import resource
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from va100.cloud.drivers import procfs
from va100.cloud.drivers.watch import Watch

MOST_LOG_BYTES = 64 << 20


def main(folder: Path) -> int:
    """Run what a folder orders, to its end."""
    order = json.loads((folder / "order.json").read_text("utf-8"))
    return _Shim(folder, order).run()


class _Shim:
    def __init__(self, folder: Path, order: dict[str, Any]) -> None:
        self.folder = folder
        self.order = order
        self.told_s: float | None = None
        self.written = 0

    def run(self) -> int:
        signal.signal(signal.SIGTERM, lambda *_: self._tell())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        log = (self.folder / "log").open("ab", buffering=0)
        try:
            child, source, keys = self._start()
        except OSError as error:
            log.write(f"{self.order['argv'][0]}: {error.strerror}\n".encode())
            write_whole(self.folder / "ended.json", {"code": 127})
            return 127
        me = procfs.program(os.getpid())
        write_whole(
            self.folder / "running.json",
            {"shim": os.getpid(), "started": me.started if me else 0, "child": child.pid},
        )
        watch = self._watch(child.pid)
        self._relay(child, source, keys, log, watch)
        code = child.wait()
        self._take_rest(child.pid)
        write_whole(self.folder / "ended.json", {"code": code if code >= 0 else 128 - code})
        return 0

    def _start(self) -> tuple[subprocess.Popen[bytes], int, int]:
        argv, environment = self.order["argv"], self.order["environment"]
        limits = self._limits()
        if not self.order.get("terminal"):
            source, target = os.pipe()
            child = subprocess.Popen(  # noqa: S603 -- no threads here
                argv, env=environment, cwd=self.order["cwd"], stdin=subprocess.DEVNULL,
                stdout=target, stderr=target, start_new_session=True,
                preexec_fn=limits,  # noqa: PLW1509 -- no threads here
            )  # fmt: skip
            os.close(target)
            return child, source, -1
        source, target = pty.openpty()
        size = struct.pack("HHHH", self.order["rows"], self.order["columns"], 0, 0)
        fcntl.ioctl(target, termios.TIOCSWINSZ, size)
        os.mkfifo(self.folder / "keys")
        # Open for writing as well, so that the pipe does not end when a typist goes.
        keys = os.open(self.folder / "keys", os.O_RDWR | os.O_NONBLOCK)
        child = subprocess.Popen(  # noqa: S603
            argv, env=environment, cwd=self.order["cwd"], stdin=target, stdout=target,
            stderr=target, start_new_session=True,
            preexec_fn=_with_terminal(target, limits),  # noqa: PLW1509 -- no threads here
        )  # fmt: skip
        os.close(target)
        return child, source, keys

    def _limits(self) -> Callable[[], None]:
        wanted = {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_FSIZE: self.order.get("file_bytes", resource.RLIM_INFINITY),
            resource.RLIMIT_NOFILE: 4096,
            resource.RLIMIT_NPROC: self.order.get("programs", 4096),
        }

        def limit() -> None:
            for kind, most in wanted.items():
                hard = resource.getrlimit(kind)[1]
                least = most if hard == resource.RLIM_INFINITY else min(most, hard)
                resource.setrlimit(kind, (least, least))

        return limit

    def _watch(self, child: int) -> Callable[[], None]:
        """What is to be done now and then, to look after the instance's bounds."""
        wanted = self.order.get("watch")
        if not wanted:
            return lambda: None
        wrapper_count = int(self.order.get("wrappers", 0))

        def members() -> list[procfs.Program]:
            family = procfs.family(child)
            if not wrapper_count or len(family) <= wrapper_count:
                return family
            return procfs.neighbours(family[wrapper_count].pid)

        def tell(text: str) -> None:
            write_whole(self.folder.parent / "trouble.json", {"text": text})

        return Watch(
            Path(wanted["home"]), wanted, members, tell, time.monotonic, time.process_time
        ).look

    def _relay(
        self, child: subprocess.Popen[bytes], source: int, keys: int, log: Any,
        watch: Callable[[], None],
    ) -> None:  # fmt: skip
        """Keep what the program prints until it ends, and type what is typed."""
        watched = [source] + ([keys] if keys >= 0 else [])
        while True:
            ready, _, _ = select.select(watched, [], [], 1.0)
            watch()
            if keys in ready:
                os.write(source, os.read(keys, 4096))
            if source in ready:
                try:
                    text = os.read(source, 65_536)
                except OSError:
                    text = b""  # a terminal whose program is gone
                if not text:
                    return
                self._keep(log, text)
            if self.told_s is not None and time.monotonic() > self.told_s:
                self._take_rest(child.pid)
                child.kill()
            if not ready and child.poll() is not None:
                return

    def _keep(self, log: Any, text: bytes) -> None:
        if self.written >= MOST_LOG_BYTES:
            return
        self.written += len(text)
        log.write(text)
        if self.written >= MOST_LOG_BYTES:
            log.write(b"\n[the log is full: nothing more is kept]\n")

    def _tell(self) -> None:
        """Tell the instance's programs to end; take them later if they don't."""
        if self.told_s is not None:
            return
        grace_s = float(self.order.get("grace_s", 5))
        self.told_s = time.monotonic() + grace_s
        wrapper_count = int(self.order.get("wrappers", 0))
        for member in procfs.family(os.getpid())[1 + wrapper_count :]:
            with contextlib.suppress(OSError):
                os.kill(member.pid, signal.SIGCONT)
                os.kill(member.pid, signal.SIGTERM)

    def _take_rest(self, pid: int) -> None:
        for member in reversed(procfs.family(pid)):
            with contextlib.suppress(OSError):
                os.kill(member.pid, signal.SIGKILL)


def _with_terminal(terminal: int, limits: Callable[[], None]) -> Callable[[], None]:
    def prepare() -> None:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        limits()

    return prepare


def write_whole(path: Path, facts: dict[str, Any]) -> None:
    """Write a file that others see whole or not at all."""
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(facts), "utf-8")
    draft.rename(path)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
