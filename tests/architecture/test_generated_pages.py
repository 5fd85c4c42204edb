"""Pages under ``docs/`` that a tool writes are what the tool would write now."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_isa_coverage_page_is_fresh():
    tool = runpy.run_path(str(ROOT / "tools" / "isa_coverage.py"))
    written = (ROOT / "docs" / "isa-coverage.md").read_text(encoding="utf-8")
    assert written == tool["page"](), "run: python tools/isa_coverage.py"
