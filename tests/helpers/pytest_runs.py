"""Runs pytest with va100's plugin on the suites of tests/system/suites, as people run theirs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

SUITES = Path(__file__).resolve().parents[1] / "system" / "suites"
LIMIT_S = 300
USAGE_ERROR = 4
OWN_WORDS = (
    "-c", os.devnull, "--rootdir", str(SUITES), "-p", "va100.testing.plugin",
    "-p", "no:randomly", "-p", "no:cacheprovider", "-W", "ignore", "-rA", "--tb=short",
)  # fmt: skip
"""Nothing of this project's own settings, and every test's verdict in a line of its own."""
VERDICT = re.compile(r"^(PASSED|FAILED|ERROR|XFAIL|XPASS|SKIPPED) (\S+)", re.MULTILINE)


class Outcome:
    """How a run of pytest ended."""

    def __init__(self, done):
        self.status = done.returncode
        self.text = done.stdout
        self.errors = done.stderr
        self.verdicts = {test.partition("::")[2]: word for word, test in VERDICT.findall(self.text)}

    def __repr__(self):
        return f"status {self.status}\n{self.text}\n{self.errors}"


def run_pytest(*words, **variables):
    """Run pytest on suites that lie in its folder."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("VA100_", "PYTEST_"))}
    return Outcome(
        subprocess.run(
            [sys.executable, "-m", "pytest", *OWN_WORDS, *map(str, words)],
            cwd=SUITES,
            env=environment | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    )
