"""Options, markers and the fixtures that every test may ask for.

Builders and comparisons are plain functions in ``tests/helpers``, imported by name.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("va100")
    group.addoption(
        "--shared",
        metavar="DIR",
        default=str(ROOT.parent / "shared"),
        help="folder of reference data; tests that need it skip without it",
    )
    group.addoption("--full", action="store_true", help="also run what takes minutes")
    group.addoption("--hardware", action="store_true", help="also compare with a real GPU")
    group.addoption("--update-golden", action="store_true", help="write the golden files anew")


_HOME = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    # Nodes that tests make are none of the user's; processes that lose all VA100_* variables keep
    # to the second one.
    config.stash[_HOME] = tempfile.mkdtemp(prefix="va100-tests-")
    for name in ("VA100_HOME", "XDG_STATE_HOME"):
        os.environ[name] = config.stash[_HOME]
    # A compilation or a busy machine is no reason to fail, so there is no deadline.
    hypothesis.settings.register_profile("usual", deadline=None, max_examples=60)
    hypothesis.settings.register_profile("full", deadline=None, max_examples=1000)
    hypothesis.settings.load_profile("full" if config.getoption("--full") else "usual")


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[_HOME], ignore_errors=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for marker in ("full", "hardware"):
        if not config.getoption(f"--{marker}"):
            skip = pytest.mark.skip(reason=f"needs --{marker}")
            for item in items:
                if item.get_closest_marker(marker):
                    item.add_marker(skip)


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Whether there is time for every case."""
    return request.config.getoption("--full")


@pytest.fixture
def shared(request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """Find a file or folder of the reference data, or skip the test."""
    folder = Path(request.config.getoption("--shared"))

    def find(name: str) -> Path:
        path = folder / name
        if not path.exists():
            pytest.skip(f"needs the reference data: no {name} in {folder} (--shared=DIR)")
        return path

    return find


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with a file under ``tests/golden``, or write it when asked to."""

    def check(name: str, text: str) -> None:
        path = ROOT / "tests" / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return check
