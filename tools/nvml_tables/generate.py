"""Write, or with ``--check`` compare, every file that follows from the tables.

Run from anywhere: ``python tools/nvml_tables/generate.py [--check]``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "src")]

from nvml_tables import coverage_page, native_source  # noqa: E402
from nvml_tables.table import read_rows  # noqa: E402


def outputs() -> dict[Path, str]:
    """Every generated file and its text."""
    rows = read_rows()
    native = ROOT / "native" / "generated"
    return {
        native / "nvml_api.h": native_source.header(rows),
        native / "nvml_exports.cpp": native_source.exports(rows),
        native / "nvml_models.cpp": native_source.models(),
        native / "power_facts.h": native_source.power_facts(),
        ROOT / "docs" / "nvml-coverage.md": coverage_page.page(rows),
    }


def stale() -> list[Path]:
    """Generated files whose text on disk is not what the tables give."""
    return [
        path for path, text in outputs().items() if not path.exists() or path.read_text() != text
    ]


def main(arguments: list[str]) -> int:
    """Entry point."""
    found = stale()
    if "--check" in arguments:
        for path in found:
            print(f"stale: {path.relative_to(ROOT)}", file=sys.stderr)
        return 1 if found else 0
    texts = outputs()
    for path in found:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts[path])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
