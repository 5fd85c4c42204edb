"""The documents point at things that exist and leave out nothing that they list."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.helpers.source_tree import PACKAGE, ROOT, name_of

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
ADR_NAME = re.compile(r"\d{4}-[a-z0-9-]+\.md")
ADR_SECTIONS = ["## Context", "## Decision", "## Consequences"]
MAKE_TARGET = re.compile(r"`make ([a-z]+)\b")
CHANGE_NAME = re.compile(r"[a-z0-9-]+\.(added|changed|fixed|removed)\.md")


def read(path):
    return path.read_text(encoding="utf-8")


def adrs():
    """Architecture decision records, in order."""
    return sorted(p for p in (ROOT / "docs" / "adr").glob("*.md") if p.name != "README.md")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    targets = [link for link in LINK.findall(read(page)) if "://" not in link]
    assert [link for link in targets if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_named_make_targets_exist(page):
    known = set(re.findall(r"^([a-z]+):", read(ROOT / "Makefile"), re.MULTILINE))
    assert set(MAKE_TARGET.findall(read(page))) <= known


@pytest.mark.parametrize("page", adrs(), ids=name_of)
def test_a_decision_has_its_form(page):
    text = read(page)
    assert ADR_NAME.fullmatch(page.name)
    assert text.startswith(f"# {int(page.name[:4])}. ")
    assert [line for line in text.splitlines() if line.startswith("## ")] == ADR_SECTIONS
    assert len(text.splitlines()) <= 60, "longer than a page"


def test_decisions_are_numbered_without_gaps_and_listed():
    numbers = [int(page.name[:4]) for page in adrs()]
    assert numbers == list(range(1, len(numbers) + 1))
    index = read(ROOT / "docs" / "adr" / "README.md")
    assert re.findall(r"\]\((\d{4}-[a-z0-9-]+\.md)\)", index) == [page.name for page in adrs()]


def test_the_layer_table_is_the_contract():
    contracts = tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = next(c for c in contracts if c["id"] == "layers")["layers"]
    block = re.search(r"```layers\n(.*?)```", read(ROOT / "ARCHITECTURE.md"), re.DOTALL)
    assert block is not None
    assert block.group(1).split("\n")[:-1] == layers


def test_every_package_is_on_the_map():
    page = read(ROOT / "ARCHITECTURE.md")
    packages = [path.parent.name for path in PACKAGE.glob("*/__init__.py")]
    assert [name for name in packages if f"{name}/`" not in page] == []


def test_change_fragments_are_named_by_kind():
    names = [path.name for path in (ROOT / "changes").iterdir() if path.name != "README.md"]
    assert [name for name in names if not CHANGE_NAME.fullmatch(name)] == []
