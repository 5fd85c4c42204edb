"""Offsets that machine code embeds are those the native core asserts of itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from va100.errors import SetupError
from va100.gpu.native import library
from va100.jit import abi
from va100.jit.native import require_layout


def _asserted(root: Path) -> dict[str, int]:
    text = (root / "native" / "exec" / "contract.cpp").read_text(encoding="utf-8")
    found = re.findall(r"offsetof\(va_warp, (\w+)\) == (\d+)", text)
    return {name.upper(): int(offset) for name, offset in found}


def test_offsets(root: Path) -> None:
    asserted = _asserted(root)
    fields = {n: getattr(abi, n) for n in asserted if hasattr(abi, n)}
    assert len(fields) >= 15
    assert fields == {name: asserted[name] for name in fields}


def test_flags(root: Path) -> None:
    header = (root / "native" / "include" / "va100" / "exec.h").read_text(encoding="utf-8")
    for name, value in (
        ("VA_USES_BARRIERS", abi.USES_BARRIERS),
        ("VA_ORDERED", abi.ORDERED),
        ("VA_FREES", abi.FREES),
        ("VA_FAULT_TRAP", abi.FAULT_TRAP),
        ("VA_FAULT_ILLEGAL_INSTRUCTION", abi.FAULT_ILLEGAL_INSTRUCTION),
        ("VA_FAULT_DEADLOCK", abi.FAULT_DEADLOCK),
    ):
        assert re.search(rf"{name} = {value}\b", header), name


def test_a_core_of_other_sources_is_refused() -> None:
    require_layout(library())

    class Other:
        va_exec_layout = staticmethod(lambda: 1)

    for other in (Other(), object()):
        with pytest.raises(SetupError, match="other sources"):
            require_layout(other)
