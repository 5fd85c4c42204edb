"""What git holds is source: no machine's paths, no registry's address, no unfinished notes."""

from __future__ import annotations

import re

import pytest

from tests.helpers.source_tree import ROOT, name_of, tracked_files

LARGEST_BYTES = 512 * 1024

HOSTS = re.compile(r"(py[p]i\.|python[h]osted\.|registry\.[n]pmjs|deb\.[d]ebian\.)")
MACHINE_PATHS = re.compile(r"""(?<![\w.~}-])/(work|tmp|root|home/\w+|opt/pypi)(?=[/\s"'`]|$)""")
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b")

HERE = "tests/architecture/test_tracked_files.py"


def texts():
    """Every tracked text with its name, this file apart."""
    for path in tracked_files():
        if name_of(path) != HERE:
            try:
                yield name_of(path), path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def lines_with(pattern):
    """Where a pattern is found."""
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts()
        if pattern.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


@pytest.fixture(autouse=True)
def _needs_git():
    if not tracked_files():
        pytest.skip("not a git checkout")


def test_no_registry_is_named():
    assert lines_with(HOSTS) == []


def test_no_path_of_a_machine_is_named():
    found = lines_with(MACHINE_PATHS)
    assert [line for line in found if not line.startswith("tests/")] == [], "tests may invent some"


def test_nothing_is_left_for_later_in_a_comment():
    assert lines_with(UNFINISHED) == []


def test_no_file_is_large():
    assert [name_of(p) for p in tracked_files() if p.stat().st_size > LARGEST_BYTES] == []


def test_nothing_built_is_tracked():
    built = {".so", ".o", ".pyc", ".whl", ".cubin"}
    assert [name_of(p) for p in tracked_files() if p.suffix in built] == []
    assert not any((ROOT / "src/va100/_native") in p.parents for p in tracked_files())


@pytest.mark.parametrize(
    "text",
    ["see /" + "tmp/x", 'open("/' + 'work/shared")', "cd /" + "root", "/" + "home/ann/va100"],
)
def test_machine_paths_are_recognised(text):
    assert MACHINE_PATHS.search(text)


@pytest.mark.parametrize("text", ["src/work.py", "the work/time ratio", "va100/tmpl", "$HOME/tmp"])
def test_other_paths_are_left_alone(text):
    assert not MACHINE_PATHS.search(text)
