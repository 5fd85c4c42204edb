"""Where the PTX texts for tests are: our golden ones, and the corpus beside the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "ptx"


def golden_texts() -> dict[str, str]:
    """Our own texts by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(GOLDEN.glob("*.ptx"))}


def corpus_paths(config: pytest.Config) -> list[Path]:
    """The compilers' texts; none where the folder is not there."""
    given = config.getoption("--shared", default=None)
    folder = (Path(given) if given else ROOT.parent / "shared") / "data" / "ptx"
    return sorted(folder.glob("*.ptx"))


def require_corpus(config: pytest.Config) -> list[Path]:
    """The same, skipping the test where there are none."""
    paths = corpus_paths(config)
    if not paths:
        pytest.skip("needs the PTX corpus of the shared folder (--shared)")
    return paths
