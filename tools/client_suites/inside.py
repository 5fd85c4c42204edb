"""Runs pytest in the client's process, and writes each test's outcome down as soon as it is known.

A file of records outlives a crash or a limit that ends the process; which test it was is then the
one that started and has no outcome.  What is started, and how often, is in `attempts`.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import zlib
from pathlib import Path

import pytest

AFTER_FAULT = 86
"""The status that asks for a fresh process for the tests that are left."""

_TEXT_CHARACTERS = 6000
_FOR_CHILDREN = "client_suites.cuda_core_paths"


class Recorder:
    """A pytest plugin: leaves out what is done already, and records the rest.

    Parameters
    ----------
    path : str
        Where records go, one JSON object a line.
    done : frozenset
        Tests that are not to run again.
    share : int
        One test of this many runs, chosen by its name.
    """

    def __init__(self, path, done, share):
        self._file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115 -- it outlives this call
        self._done = done
        self._share = share
        self._outcome = {}

    def _write(self, **record):
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if self._is_wanted(item.nodeid)]

    def _is_wanted(self, name):
        return name not in self._done and zlib.crc32(name.encode()) % self._share == 0

    def pytest_collectreport(self, report):
        if report.failed:
            self._write(test=report.nodeid, outcome="failed", text=_end_of(report.longreprtext))
        elif report.skipped:
            self._write(test=report.nodeid, outcome="skipped", text=_why_skipped(report))

    def pytest_sessionfinish(self, exitstatus):
        self._write(test="", outcome="session")

    def pytest_runtest_logstart(self, nodeid):
        self._outcome = {"test": nodeid, "outcome": "passed", "text": ""}
        self._write(test=nodeid, outcome="started")

    def pytest_runtest_logreport(self, report):
        outcome = _outcome_of(report)
        # An error of what cleans up comes after the test's own outcome, and takes its place.
        if outcome not in ("passed", self._outcome["outcome"]):
            text = _why_skipped(report) if report.skipped else report.longreprtext
            self._outcome.update(outcome=outcome, text=_end_of(text))

    def pytest_runtest_logfinish(self, nodeid):
        self._write(**self._outcome)
        if self._outcome["outcome"] == "failed" and _has_fault():
            os._exit(AFTER_FAULT)


def _has_fault():
    """Whether a kernel's fault sticks to the process, so that no later test could pass."""
    driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    if driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0):
        return False
    driver.cuCtxPushCurrent_v2(context)
    status = driver.cuCtxSynchronize()
    driver.cuCtxPopCurrent_v2(ctypes.byref(context))
    return status != 0


def _outcome_of(report):
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "passed"
    return report.outcome


def _why_skipped(report):
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def _end_of(text):
    return text[-_TEXT_CHARACTERS:]


def main(words):
    """Run pytest with the words after the first three: records, done tests, share."""
    records, done_path, share, *arguments = words
    done = frozenset(Path(done_path).read_text(encoding="utf-8").splitlines())
    return pytest.main(arguments, plugins=[Recorder(records, done, int(share))])


# A process that a test spawns reads this file too, under another name, with the same words.
if _FOR_CHILDREN in sys.argv:
    import client_suites.cuda_core_paths  # noqa: F401 -- what it does, it does when imported

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
