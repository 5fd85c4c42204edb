"""Every executed form of the pure families: reference against an oracle, JIT against reference."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.oracle import expected
from tests.helpers.builders import (
    SCALAR_FAMILIES,
    Outcome,
    Signature,
    batches,
    run_batch,
    same_results,
    scalar_operations,
    style_sources,
)
from va100.errors import UnsupportedInstruction
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.ptx.isa.form import Family

JUDGED = 64
"""Threads of each instruction that the slow oracle judges."""
THINNED = {"set": 9, "setp": 4, "cvt": 2}
"""One in so many instructions of an opcode runs without ``--full``."""
GROUPS = [(f, opcode) for f in SCALAR_FAMILIES for opcode in scalar_operations(f)]


def signatures_of(family: Family, opcode: str, *, full: bool) -> list[Signature]:
    """Instructions to run, thinned evenly where there are thousands."""
    every = scalar_operations(family)[opcode]
    return every if full else every[:: THINNED.get(opcode, 1)]


def _shown(outcome: Outcome, style: str, thread: int) -> str:
    operands = ", ".join(f"{int(c[thread]):#x}" for c in style_sources(outcome, style))
    return f"{outcome.signature.operation.text} ({operands}) {style}"


def judge(outcome: Outcome) -> None:
    """Compare what the reference made of an instruction with the oracle."""
    for style in outcome.results:
        sources = [c.tolist() for c in style_sources(outcome, style)]
        for thread in range(0, len(outcome.results[style][0]), 384 // JUDGED):
            wanted = expected(outcome.signature, [c[thread] for c in sources])
            if wanted is None:
                return
            for kind, column, want in zip(
                outcome.signature.results, outcome.results[style], wanted, strict=True
            ):
                if want is None:
                    continue
                got = column[thread : thread + 1]
                right = same_results(kind, got, np.array([want], np.uint64)).all()
                assert right, f"{_shown(outcome, style, thread)}: {int(got[0]):#x}, not {want:#x}"


def compare(reference: Outcome, other: Outcome) -> list[str]:
    """Differences between two engines, one line for each style and result."""
    lines = []
    for style, columns in reference.results.items():
        for kind, ours, theirs in zip(
            reference.signature.results, columns, other.results[style], strict=True
        ):
            wrong = np.flatnonzero(~same_results(kind, ours, theirs))
            if wrong.size:
                at = int(wrong[0])
                lines.append(
                    f"{_shown(reference, style, at)}: reference {int(ours[at]):#x}, "
                    f"jit {int(theirs[at]):#x} ({wrong.size} threads)"
                )
    return lines


@pytest.mark.parametrize(("family", "opcode"), GROUPS, ids=lambda p: getattr(p, "value", p))
def test_form(
    family: Family, opcode: str, full: bool, reference: Engine, jit: Engine, arena: Arena
) -> None:
    differences: list[str] = []
    refused: list[str] = []
    for seed, batch in enumerate(batches(signatures_of(family, opcode, full=full))):
        outcomes = run_batch(reference, arena, batch, seed)
        for outcome in outcomes:
            judge(outcome)
        try:
            others = run_batch(jit, arena, batch, seed)
        except UnsupportedInstruction as error:
            refused.append(str(error))
            continue
        for ours, theirs in zip(outcomes, others, strict=True):
            differences += compare(ours, theirs)
    assert not differences, "\n".join(differences[:20])
    assert not refused, "\n".join(refused[:5])
