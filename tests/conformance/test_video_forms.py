"""Video instructions with all their selectors: both engines alike, and known answers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.helpers.builders import executed_forms, integers, spellings
from tests.helpers.engines import load, pack
from tests.helpers.kernels import kernel
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.ptx.isa import decode
from va100.ptx.isa.form import Family
from va100.ptx.parser import parse
from va100.ptx.verify import problems

THREADS = 64
BATCH = 24
FORMS = [t for f in executed_forms() if f.family is Family.VIDEO for t in spellings(f)]
THINNED = 4
"""One in so many spellings runs without ``--full``."""
SCALAR = ("", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1")
MASKS = (".b0", ".b3", ".b20", ".b321", ".b3210", "")


def _pick(rng: np.random.Generator, *choices: str) -> str:
    return str(rng.choice(choices))


def _line(text: str, rng: np.random.Generator, at: int) -> str:
    """An instruction with selectors drawn at random; sources are %r0 to %r2."""
    operation = decode(text)
    count = int(text.partition(".")[0][-1]) if text.partition(".")[0][-1] in "24" else 1
    third, sign = ", %r2", ["", "", ""]
    if count == 1:
        selectors = [_pick(rng, *SCALAR) for _ in range(3)]
        combines = bool({"add", "min", "max"} & operation.modifiers)
        if operation.opcode == "vmad" or combines:
            selectors[0] = ""
        elif not selectors[0]:
            third = ""
        if operation.opcode == "vmad" and "po" not in operation.modifiers:
            sign[int(rng.integers(3))] = _pick(rng, "", "-")
    elif count == 2:
        selectors = [_pick(rng, "", ".h0", ".h1", ".h10")]
        selectors += [_pick(rng, "", ".h32", ".h03", ".h11", ".h20") for _ in range(2)]
    else:
        selectors = [_pick(rng, *MASKS)]
        selectors += [_pick(rng, "", ".b7654", ".b0123", ".b3333", ".b0716") for _ in range(2)]
    third = third.replace("%r2", f"{sign[2]}%r2")
    return (
        f"    {text} %r{at}{selectors[0]}, {sign[0]}%r0{selectors[1]}, {sign[1]}%r1{selectors[2]}"
        f"{third};"
    )


def _batches(texts: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), BATCH):
        rng = np.random.default_rng(start)
        yield [_line(t, rng, 10 + i) for i, t in enumerate(texts[start : start + BATCH])]


def _run(engine: Engine, arena: Arena, lines: list[str], table: np.ndarray) -> np.ndarray:
    """(threads, lines): results for operands that vary, or are the same in a warp."""
    stores = [f"    st.global.u32 [%d3+{4 * i}], %r{10 + i};" for i in range(len(lines))]
    body = "\n".join(
        [
            "    mul.wide.u32 %d1, %r3, 12;",
            "    add.s64 %d2, %d60, %d1;",
            "    setp.lt.u32 %p0, %r3, 32;",
            "    @!%p0 add.s64 %d2, %d60, 384;",
            f"    mul.wide.u32 %d4, %r3, {4 * BATCH};",
            "    add.s64 %d3, %d61, %d4;",
            "    ld.global.u32 %r0, [%d2];",
            "    ld.global.u32 %r1, [%d2+4];",
            "    ld.global.u32 %r2, [%d2+8];",
            *lines,
            *stores,
            "    ret;",
        ]
    )
    loaded = load(kernel("video", "u64 u64", body), arena, "video.ptx")
    try:
        target = loaded.buffer(np.zeros(THREADS * BATCH, np.uint32))
        params = pack(loaded.buffer(table), target)
        loaded.run(engine, "video", (1,), (THREADS,), params)
        return loaded.read(target, np.uint32, THREADS * BATCH).reshape(THREADS, BATCH)
    finally:
        loaded.close()


def _table(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    columns = [integers(32, THREADS, rng) for _ in range(3)]
    return np.stack(columns, axis=1).astype(np.uint32)


def test_engines_agree(full: bool, reference: Engine, jit: Engine, arena: Arena) -> None:
    texts = FORMS if full else FORMS[::THINNED]
    for seed, lines in enumerate(_batches(texts)):
        table = _table(seed)
        ours, theirs = (_run(e, arena, lines, table) for e in (reference, jit))
        for index, line in enumerate(lines):
            wrong = np.flatnonzero(ours[:, index] != theirs[:, index])
            at = int(wrong[0]) if wrong.size else 0
            assert not wrong.size, (
                f"{line.strip()} of {[hex(v) for v in table[min(at, 32)]]}: "
                f"{int(ours[at, index]):#x}, jit {int(theirs[at, index]):#x}"
            )


ANSWERS = [
    ("vadd.s32.u32.s32 %r10, %r0.b3, %r1.h1;", 0xF0000001, 0xFFFE0003, 0, 0xF0 - 2),
    ("vadd.u32.u32.u32.sat %r10, %r0, %r1;", 0xFFFFFFF0, 0x20, 0, 0xFFFFFFFF),
    ("vsub.u32.u32.u32.sat %r10, %r0, %r1;", 5, 6, 0, 0),
    ("vsub.s32.u32.u32.sat %r10.b1, %r0, %r1, %r2;", 5, 605, 0x11223344, 0x11228044),
    ("vadd.s32.s32.s32.add %r10, %r0.h0, %r1.b0, %r2;", 0x8000, 0xFF, 9, -0x8000 - 1 + 9),
    ("vabsdiff.u32.s32.s32 %r10, %r0, %r1;", 0x80000000, 0x7FFFFFFF, 0, 0xFFFFFFFF),
    ("vmin.s32.u32.s32.max %r10, %r0, %r1, %r2;", 7, -9, -3, -3),
    ("vmax.u32.s32.s32.min %r10, %r0.b0, %r1.b0, %r2;", 0x80, 0x85, 4, 0xFFFFFF85),
    ("vshl.u32.u32.u32.sat.clamp %r10, %r0, %r1;", 1, 40, 0, 0xFFFFFFFF),
    ("vshl.u32.u32.u32.wrap %r10, %r0, %r1;", 1, 40, 0, 256),
    ("vshr.s32.s32.u32.clamp %r10, %r0, %r1;", 0x80000000, 99, 0, 0xFFFFFFFF),
    ("vshr.u32.u32.u32.clamp.add %r10, %r0, %r1.b0, %r2;", 0x80000000, 32, 8, 8),
    ("vmad.s32.s32.u32 %r10, %r0.b0, %r1.b1, -%r2;", 0xFE, 0x300, 10, -16),
    ("vmad.s32.u32.u32 %r10, -%r0, %r1, %r2;", 3, 4, 2, -10),
    ("vmad.u32.u32.u32.po.shr7 %r10, %r0.h0, %r1.h0, %r2;", 0x100, 0x100, 0x7F, 0x201),
    ("vmad.s32.s32.s32.sat.shr15 %r10, %r0, %r1, %r2;", 1 << 30, 1 << 30, 0, 0x7FFFFFFF),
    ("vset.u32.s32.lt %r10, %r0, %r1;", 7, -1, 0, 0),
    ("vset.s32.s32.gt.add %r10, %r0, %r1, %r2;", 7, -1, 41, 42),
    ("vadd2.s32.s32.s32.sat %r10, %r0, %r1, %r2;", 0x7FFF8000, 0x0001FFFF, 0, 0x7FFF8000),
    ("vadd2.u32.u32.u32 %r10.h1, %r0.h32, %r1.h10, %r2;", 1 << 16, 5 << 16, 9, (5 + 1) << 16 | 9),
    ("vsub2.s32.u32.u32.add %r10, %r0, %r1, %r2;", 0x00050001, 0x00070002, 10, 7),
    ("vavrg2.s32.s32.s32 %r10, %r0, %r1, %r2;", 0x0003FFFC, 0x0004FFFF, 0, 0x0004FFFD),
    ("vabsdiff4.u32.u32.u32.add %r10, %r0, %r1, %r2;", 0x01020304, 0x04030201, 100, 108),
    ("vmin4.s32.s32.s32 %r10.b20, %r0, %r1, %r2;", 0x80010280, 0x7F7F7F7F, 0xAABBCCDD, 0xAA01CC80),
    ("vset4.u32.u32.eq %r10, %r0, %r1.b4567, %r2;", 0x01020304, 0x04030201, 0, 0x01010101),
    ("vset4.u32.u32.ne.add %r10.b321, %r0, %r1, %r2;", 0x01020304, 0x01000000, 3, 5),
]  # fmt: skip
"""An instruction, a, b, c, and its result."""


@pytest.mark.parametrize(("line", "a", "b", "c", "want"), ANSWERS, ids=lambda v: str(v)[:40])
def test_answers(
    line: str, a: int, b: int, c: int, want: int, engine: Engine, arena: Arena
) -> None:
    row = np.array([v % (1 << 32) for v in (a, b, c)], np.uint32)
    got = _run(engine, arena, [f"    {line}"], np.tile(row, (THREADS, 1)))
    assert got[:, 0].tolist() == [want % (1 << 32)] * THREADS


@pytest.mark.parametrize(
    "line",
    [
        "vadd.u32.u32.u32 %r1.b4, %r2, %r3, %r4;",
        "vadd.u32.u32.u32 %r1, %r2.h10, %r3;",
        "vadd.u32.u32.u32 %r1, -%r2, %r3;",
        "vmad.u32.u32.u32.po %r1, -%r2, %r3, %r4;",
        "vadd2.u32.u32.u32 %r1.h01, %r2, %r3, %r4;",
        "vadd2.u32.u32.u32 %r1, %r2.h4, %r3, %r4;",
        "vadd4.u32.u32.u32 %r1, %r2.b8000, %r3, %r4;",
        "vadd.u32.u32.u32.add %r1, %r2, %r3, %r4.b0;",
    ],
)
def test_selectors_are_checked(line: str) -> None:
    found = problems(parse(kernel("video", "u64", f"    {line}\n    ret;\n"), "video.ptx"))
    assert len(found) == 1
    assert line.partition(" ")[0] in found[0].problem
