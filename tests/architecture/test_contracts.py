"""The import contracts of ``pyproject.toml`` are kept, and none was dropped."""

from __future__ import annotations

import subprocess
import sys
import tomllib

from tests.helpers.source_tree import PACKAGE, ROOT

CONTRACTS = {
    "cloud-through-assembly",
    "engines",
    "engines-apart",
    "layers",
    "llvm-in-one-place",
    "lowerings",
    "no-cycles",
    "planner-is-analytic",
    "stdlib-only-facts",
    "timing-is-not-function",
    "web-at-the-edge",
}

LINT = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(cache_dir=None))"


def settings() -> dict:
    """The import linter's part of the project file."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]


def test_the_contracts_are_kept():
    done = subprocess.run(
        [sys.executable, "-c", LINT],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(PACKAGE.parent)},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_contract_is_there():
    assert {contract["id"] for contract in settings()["contracts"]} == CONTRACTS


def test_every_lowering_is_held_apart():
    contract = next(c for c in settings()["contracts"] if c["id"] == "lowerings")
    modules = {path.stem for path in (PACKAGE / "jit" / "lower").glob("*.py")} - {"__init__"}
    assert set(contract["modules"]) == {f"va100.jit.lower.{name}" for name in modules}
