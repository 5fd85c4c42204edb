"""Runs the programs of tests/system/clients that say for each of their cases how it went."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "system" / "clients"
LIMIT_S = 600


def cases_of(name):
    """Give the names of a program's cases, in order."""
    return re.findall(r"^@case\ndef (\w+)", (FOLDER / name).read_text(), re.MULTILINE)


def failures_of(name, **variables):
    """Run a program on virtual GPUs; give what it said of cases that were not well."""
    outcome = subprocess.run(
        [sys.executable, "-m", "va100.cli", "run", "--quiet", str(FOLDER / name)],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    lines = outcome.stdout.splitlines()
    failed = [line for line in lines if line.startswith("FAILED ")]
    ran = [line.split()[1] for line in lines if line.startswith(("ok ", "FAILED "))]
    missing = [case for case in cases_of(name) if case not in ran]
    return failed + ([f"not run: {missing}", outcome.stderr] if missing else [])
