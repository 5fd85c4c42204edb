"""Runs the programs of tests/system/clients that say for each of their cases how it went."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "system" / "clients"
JAX_PYTHON = ROOT / ".venv-jax" / "bin" / "python"
"""Made by `make clients`: what nvcc's package brings, JAX has to be without."""
LIMIT_S = 600


def cases_of(name):
    """Give the names of a program's cases, in order."""
    return re.findall(r"^@case\ndef (\w+)", (FOLDER / name).read_text(), re.MULTILINE)


def answer_of(python, expression):
    """Have another Python, with this checkout's va100, print what an expression gives."""
    done = subprocess.run(
        [python, "-c", f"import va100.cli.xla; print({expression})"],
        env=os.environ | checkout_for(python),
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_S,
    )
    return done.stdout.strip()


def checkout_for(python):
    """Variables with which a Python finds this checkout's va100."""
    return {} if python == sys.executable else {"PYTHONPATH": str(ROOT / "src")}


def failures_of(name, python=sys.executable, **variables):
    """Run a program on virtual GPUs; give what it said of cases that were not well."""
    outcome = subprocess.run(
        [python, "-m", "va100.cli", "run", "--quiet", str(FOLDER / name)],
        env=os.environ | checkout_for(python) | variables,
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
