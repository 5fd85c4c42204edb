"""Runs one file of a suite in processes of its own until each of its tests has an outcome.

A test that ends its process, or takes longer than the limit, is given that outcome, and the file
is started again without the tests that have one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

INSIDE: Final = Path(__file__).resolve().parent / "inside.py"
_TICK_S: Final = 0.5
_START_S: Final = 300.0
"""For reading a file's tests, before the first of them starts."""
_ENDED_WELL: Final = (0, 1, 5)
"""Statuses of pytest that leave nothing unsaid: all passed, some failed, none collected."""
_UNREAD: Final = 2
"""A file could not be read, for which there is a record."""
_AFTER_FAULT: Final = 86
"""What `inside` ends with when a kernel's fault would spoil the tests that are left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What became of one test."""

    test: str
    outcome: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How a file is to be run."""

    arguments: tuple[str, ...]
    """For pytest."""
    folder: Path
    variables: dict[str, str]
    gpus: int
    share: int
    """One test of this many."""
    limit_s: float
    """For one test."""


def outcomes(attempt: Attempt, label: str) -> list[Record]:
    """Run a file, as often as it takes; every test's outcome."""
    finished: dict[str, Record] = {}
    with tempfile.TemporaryDirectory(prefix="client-suite-") as scratch:
        while True:
            before = len(finished)
            status, ended_by_us = _run_once(attempt, finished, Path(scratch))
            started, is_complete = _read(Path(scratch, "records"), finished)
            unread = status == _UNREAD and len(finished) > before
            if is_complete and (status in _ENDED_WELL or unread):
                break
            if status == _AFTER_FAULT and len(finished) > before:
                continue
            word = "over the limit" if ended_by_us else f"ended its process ({_named(status)})"
            culprit = started or f"{label} (before or after its tests)"
            text = word + "\n" + Path(scratch, "output").read_text(errors="replace")[-3000:]
            finished[culprit] = Record(test=culprit, outcome="ended", text=text)
            if started is None or len(finished) == before:
                break
    return list(finished.values())


def _run_once(attempt: Attempt, finished: dict[str, Record], scratch: Path) -> tuple[int, bool]:
    """Start the file without what is finished; its status, and whether we ended it."""
    records, done = scratch / "records", scratch / "done"
    records.touch()
    done.write_text("\n".join(finished))
    command = [sys.executable, "-m", "va100.cli", "run", "--quiet"]
    command += [f"--gpus={attempt.gpus}", str(INSIDE)]
    command += [str(records), str(done), str(attempt.share), *attempt.arguments]
    with (scratch / "output").open("w") as output:
        child = subprocess.Popen(
            command,
            cwd=attempt.folder,
            env=os.environ | attempt.variables,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        return _watch(child, records, attempt.limit_s)


def _watch(child: subprocess.Popen[bytes], records: Path, limit_s: float) -> tuple[int, bool]:
    size, since = -1, time.monotonic()
    while True:
        try:
            return child.wait(timeout=_TICK_S), False
        except subprocess.TimeoutExpired:
            grown = records.stat().st_size
            if grown != size:
                size, since = grown, time.monotonic()
            elif time.monotonic() - since > (limit_s if size else limit_s + _START_S):
                os.killpg(child.pid, signal.SIGKILL)
                return child.wait(), True


def _read(path: Path, finished: dict[str, Record]) -> tuple[str | None, bool]:
    """Add the outcomes that were written; the test that has none, and whether pytest ended."""
    started, is_complete = None, False
    for record in _lines(path):
        if record["outcome"] in ("started", "session"):
            is_complete = record["outcome"] == "session"
            started = None if is_complete else record["test"]
        else:
            finished[record["test"]] = Record(**record)
            started = None
    path.write_text("")
    return started, is_complete


def _lines(path: Path) -> Iterator[dict[str, str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def _named(status: int) -> str:
    number = -status if status < 0 else status - 128
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"status {status}"
