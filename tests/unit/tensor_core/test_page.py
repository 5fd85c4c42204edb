"""The page about tensor cores: its examples run, its table is the rules'."""

from __future__ import annotations

import re

import pytest

from va100.numerics.mma_rules import RULES, MmaRule


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs" / "tensor-cores.md").read_text(encoding="utf-8")


def test_examples_run(page):
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        assert "assert" in block
        exec(compile(block, "docs/tensor-cores.md", "exec"), {})


def table_row(row: MmaRule) -> str:
    """A rule as the page shows it."""
    operand = row.operand.name if row.operand else f"{row.element_bits} bit"
    cells = [
        f"`{row.kind}`",
        row.procedure.name.lower(),
        "tf32" if row.dropped_bits else operand,
        row.accumulator.name if row.accumulator else "s32",
        row.block,
        row.step,
        row.alignment_bits or "-",
        row.least_exponent or "-",
        row.rounding or "-",
    ]
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def test_table_is_the_rules(page):
    shown = [line for line in page.splitlines() if line.count("|") == 10 and "`" in line]
    assert shown == [table_row(row) for row in RULES.values()]
