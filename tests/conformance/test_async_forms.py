"""Asynchronous copies and ``mbarrier`` objects: every form, by what memory holds afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.builders import executed_forms, spellings
from tests.helpers.engines import load, pack
from tests.helpers.kernels import kernel
from va100.errors import DeviceFault, IllegalAddress, IllegalInstruction, MisalignedAddress
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.ptx.isa import decode
from va100.ptx.isa.form import Family

THREADS = 64
FORMS = [t for f in executed_forms() if f.family is Family.ASYNC for t in spellings(f)]
COPIES = [t for t in FORMS if "global" in decode(t).modifiers]
HANDLING = [t for t in FORMS if t.startswith("cp.async") and t not in COPIES]
OBJECTS = [t for t in FORMS if t.startswith("mbarrier")]
WAITS = ("cp.async.commit_group;", "cp.async.wait_group 0;", "cp.async.wait_all;")


def _sizes(text: str) -> tuple[int, ...]:
    return (16,) if ".cg." in text else (4, 8, 16)


def _copy_text(text: str, size: int, amount: str, *, scattered: bool) -> str:
    """Each thread copies ``size`` bytes into its place of shared memory, which held ones."""
    hint = ", %d30" if "cache_hint" in text else ""
    turn = "xor.b32 %r5, %r3, 5;" if scattered else "mov.u32 %r5, %r3;"
    return kernel(
        "copied",
        "u64 u64 u64",
        f"""
    .shared .align 16 .b8 box[{THREADS * 16}];
    mov.u64 %d30, 0;
    {turn}
    mul.lo.u32 %r6, %r5, {size};
    mov.u32 %r16, box;
    add.u32 %r7, %r16, %r6;
    mul.wide.u32 %d1, %r3, {size};
    add.s64 %d2, %d60, %d1;
    add.s64 %d3, %d61, %d0;
    ld.global.u32 %r8, [%d3];
    setp.ne.u32 %p1, %r8, 0;
    mov.u32 %r9, -1;
    mul.lo.u32 %r10, %r3, 16;
    mov.u32 %r11, box;
    add.u32 %r11, %r11, %r10;
    st.shared.v4.u32 [%r11], {{%r9, %r9, %r9, %r9}};
    bar.sync 0;
    {text} [%r7], [%d2], {size}{amount}{hint};
    cp.async.commit_group;
    cp.async.wait_group 0;
    bar.sync 0;
    ld.shared.v4.u32 {{%r12, %r13, %r14, %r15}}, [%r11];
    mul.wide.u32 %d4, %r3, 16;
    add.s64 %d5, %d62, %d4;
    st.global.v4.u32 [%d5], {{%r12, %r13, %r14, %r15}};
    ret;
""",
    )


def _run_copy(
    engine: Engine, arena: Arena, text: str, given: np.ndarray, source: np.ndarray
) -> np.ndarray:
    loaded = load(text, arena, "copied.ptx")
    try:
        target = loaded.buffer(np.zeros(THREADS * 16, np.uint8))
        params = pack(loaded.buffer(source), loaded.buffer(given.astype(np.uint32)), target)
        loaded.run(engine, "copied", (1,), (THREADS,), params)
        return loaded.read(target, np.uint8, THREADS * 16)
    finally:
        loaded.close()


def _copied(source: np.ndarray, size: int, amounts: np.ndarray, *, scattered: bool) -> np.ndarray:
    box = np.full(THREADS * 16, 0xFF, np.uint8)
    for thread in range(THREADS):
        place = (thread ^ 5 if scattered else thread) * size
        row = np.zeros(size, np.uint8)
        read = min(int(amounts[thread]), size)
        row[:read] = source[thread * size : thread * size + read]
        box[place : place + size] = row
    return box


AMOUNTS = ("", ", {size}", ", %r8", ", %p1", ", !%p1", ", 0", ", 3")


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("amount", AMOUNTS)
@pytest.mark.parametrize("size", [4, 8, 16])
def test_copies(size: int, amount: str, scattered: bool, engine: Engine, arena: Arena) -> None:
    """Whole, shortened and ignored sources; destinations in order and crosswise."""
    rng = np.random.default_rng(size)
    source = rng.integers(0, 256, THREADS * 16, dtype=np.uint8)
    given = rng.integers(0, 2 if "%p1" in amount else 19, THREADS)
    text = _copy_text(
        "cp.async.ca.shared.global", size, amount.format(size=size), scattered=scattered
    )
    got = _run_copy(engine, arena, text, given, source)
    amounts = {
        ", %r8": given,
        ", %p1": np.where(given != 0, 0, size),
        ", !%p1": np.where(given != 0, size, 0),
        ", 0": np.zeros(THREADS),
        ", 3": np.full(THREADS, 3),
    }.get(amount, np.full(THREADS, size))
    np.testing.assert_array_equal(got, _copied(source, size, amounts, scattered=scattered))


def test_a_copy_of_one_place_to_all(engine: Engine, arena: Arena) -> None:
    source = np.random.default_rng(2).integers(0, 256, THREADS * 16, dtype=np.uint8)
    text = _copy_text("cp.async.cg.shared.global", 16, "", scattered=False)
    text = text.replace("add.s64 %d2, %d60, %d1;", "add.s64 %d2, %d60, 32;")
    got = _run_copy(engine, arena, text, np.zeros(THREADS), source)
    np.testing.assert_array_equal(got, np.tile(source[32:48], THREADS))


@pytest.mark.parametrize("text", COPIES)
def test_copy_forms(text: str, engine: Engine, arena: Arena) -> None:
    """Cache operators, policies and prefetch sizes change nothing."""
    rng = np.random.default_rng(3)
    source = rng.integers(0, 256, THREADS * 16, dtype=np.uint8)
    size = _sizes(text)[-1]
    given = rng.integers(0, size + 1, THREADS)
    got = _run_copy(engine, arena, _copy_text(text, size, ", %r8", scattered=False), given, source)
    np.testing.assert_array_equal(got, _copied(source, size, given, scattered=False))
    got = _run_copy(engine, arena, _copy_text(text, size, "", scattered=True), given, source)
    whole = np.full(THREADS, size)
    np.testing.assert_array_equal(got, _copied(source, size, whole, scattered=True))


def test_a_copy_that_reads_nothing_takes_any_address(engine: Engine, arena: Arena) -> None:
    """As pointers that a bounds check has masked off are written."""
    text = _copy_text("cp.async.cg.shared.global", 16, ", 0", scattered=False)
    text = text.replace(
        "    cp.async.cg", "    add.s64 %d2, %d2, 0x7000000000000;\n    cp.async.cg"
    )
    got = _run_copy(engine, arena, text, np.zeros(THREADS), np.ones(THREADS * 16, np.uint8))
    assert not got.any()


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("add.s64 %d2, %d2, 0x7000000000000;", IllegalAddress),
        ("add.s64 %d2, %d2, 8;", MisalignedAddress),
        ("add.u32 %r7, %r7, 4096;", IllegalAddress),
        ("add.u32 %r7, %r7, 4;", MisalignedAddress),
    ],
)
@pytest.mark.parametrize("amount", ["", ", %r8"])
def test_copies_are_checked(
    line: str, fault: type[DeviceFault], amount: str, engine: Engine, arena: Arena
) -> None:
    text = _copy_text("cp.async.cg.shared.global", 16, amount, scattered=False)
    text = text.replace("    cp.async.cg", f"    {line}\n    cp.async.cg")
    with pytest.raises(fault):
        _run_copy(engine, arena, text, np.full(THREADS, 16), np.ones(THREADS * 16, np.uint8))


@pytest.mark.parametrize("text", HANDLING)
def test_waiting_for_copies(text: str, engine: Engine, arena: Arena) -> None:
    """Groups and waits stand where they must; the copy is there afterwards."""
    operand = {"wait_group": " 0", "mbarrier": " [flag]"}
    extra = next((v for k, v in operand.items() if k in decode(text).modifiers), "")
    generic = "mbarrier" in decode(text).modifiers and ".shared" not in text
    body = f"""
    .shared .align 16 .b8 box[512];
    .shared .align 8 .b8 flag[8];
    setp.eq.u32 %p1, %r3, 0;
    mov.u32 %r10, flag;
    cvt.u64.u32 %d9, %r10;
    cvta.shared.u64 %d9, %d9;
    @%p1 mbarrier.init.shared.b64 [%r10], 64;
    bar.sync 0;
    mul.wide.u32 %d1, %r3, 4;
    add.s64 %d2, %d60, %d1;
    shl.b32 %r4, %r3, 2;
    mov.u32 %r5, box;
    add.u32 %r6, %r5, %r4;
    cp.async.ca.shared.global [%r6], [%d2], 4;
    {text}{" [%d9]" if generic else extra};
    cp.async.wait_all;
    bar.sync 0;
    xor.b32 %r7, %r6, 4;
    ld.shared.u32 %r8, [%r7];
    add.s64 %d3, %d61, %d0;
    st.global.u32 [%d3], %r8;
    ret;
"""
    source = np.random.default_rng(5).integers(0, 1 << 32, THREADS, dtype=np.uint32)
    loaded = load(kernel("waits", "u64 u64", body), arena, "waits.ptx")
    try:
        target = loaded.buffer(np.zeros(THREADS, np.uint32))
        loaded.run(engine, "waits", (1,), (THREADS,), pack(loaded.buffer(source), target))
        got = loaded.read(target, np.uint32, THREADS)
    finally:
        loaded.close()
    np.testing.assert_array_equal(got, source[np.arange(THREADS) ^ 1])


# ---------------------------------------------------------------- mbarrier objects


def _objects_text(lines: str) -> str:
    """One warp's first lanes work on the object at ``flag``, 12 arrivals a phase."""
    return kernel(
        "objects",
        "u64",
        f"""
    .shared .align 8 .b8 flag[16];
    mov.u32 %r10, flag;
    cvt.u64.u32 %d9, %r10;
    cvta.shared.u64 %d9, %d9;
    setp.eq.u32 %p1, %r3, 0;
    mul.wide.u32 %d1, %r3, 32;
    add.s64 %d2, %d60, %d1;
    mov.u32 %r20, 77;
    mov.u64 %d20, 0;
{lines}
    st.global.u64 [%d2], %d20;
    st.global.u32 [%d2+8], %r20;
    ret;
""",
    )


def _run_objects(engine: Engine, arena: Arena, lines: str, threads: int = 32) -> np.ndarray:
    """(threads, 4) words: low and high of %d20, then %r20."""
    loaded = load(_objects_text(lines), arena, "objects.ptx")
    try:
        target = loaded.buffer(np.zeros(threads * 8, np.uint32))
        loaded.run(engine, "objects", (1,), (threads,), pack(target))
        return loaded.read(target, np.uint32, threads * 8).reshape(threads, 8)[:, :4]
    finally:
        loaded.close()


def _place(text: str) -> str:
    return "[%r10]" if ".shared" in text else "[%d9]"


def _both(text: str) -> tuple[str, str]:
    return text, _place(text)


def _spelled(name: str) -> list[str]:
    return [t for t in OBJECTS if name in decode(t).modifiers]


@pytest.mark.parametrize("text", _spelled("init"))
def test_init(text: str, engine: Engine, arena: Arena) -> None:
    got = _run_objects(
        engine,
        arena,
        f"""
    @%p1 {text} {_place(text)}, 12;
    bar.warp.sync -1;
    @%p1 mbarrier.arrive.shared.b64 %d20, [%r10];
    mbarrier.pending_count.b64 %r20, %d20;
""",
    )
    assert got[0, 2] == 12


@pytest.mark.parametrize("text", _spelled("inval"))
def test_inval(text: str, engine: Engine, arena: Arena) -> None:
    """The memory is free for something else, and is an object no more."""
    lines = f"""
    @%p1 mbarrier.init.shared.b64 [%r10], 12;
    @%p1 {text} {_place(text)};
    bar.warp.sync -1;
    mov.u64 %d5, 41;
    @%p1 st.shared.u64 [%r10], %d5;
    bar.warp.sync -1;
    ld.shared.u64 %d20, [%r10];
"""
    assert (_run_objects(engine, arena, lines)[:, 0] == 41).all()
    with pytest.raises(IllegalInstruction, match="no mbarrier"):
        _run_objects(engine, arena, lines + "    mbarrier.arrive.shared.b64 %d20, [%r10];\n")


@pytest.mark.parametrize("text", _spelled("arrive") + _spelled("arrive_drop"))
def test_arrivals(text: str, engine: Engine, arena: Arena) -> None:
    """The pending count goes down by one a lane, or by two; a phase ends at zero."""
    step = 2 if "noComplete" in text else 1
    drop = "arrive_drop" in decode(text).modifiers
    count = ", 2" if step == 2 else ""
    got = _run_objects(
        engine,
        arena,
        f"""
    @%p1 mbarrier.init.shared.b64 [%r10], 100;
    bar.warp.sync -1;
    {text} %d20, {_place(text)}{count};
    mbarrier.pending_count.b64 %r20, %d20;
    bar.warp.sync -1;
    mov.u32 %r5, {99 - 32 * step};
    @%p1 mbarrier.arrive.noComplete.shared.b64 %d6, [%r10], %r5;
    @%p1 mbarrier.arrive.shared.b64 _, [%r10];
    bar.warp.sync -1;
    mbarrier.test_wait.shared.b64 %p2, [%r10], %d20;
    selp.u32 %r6, 1000, 0, %p2;
    add.u32 %r20, %r20, %r6;
    @%p1 mbarrier.arrive.shared.b64 %d7, [%r10];
    mbarrier.pending_count.b64 %r7, %d7;
    shl.b32 %r7, %r7, 16;
    @%p1 add.u32 %r20, %r20, %r7;
""",
    )
    later = 100 - 32 * step * drop
    want = [100 - step * lane + 1000 + (later << 16 if lane == 0 else 0) for lane in range(32)]
    assert got[:, 2].tolist() == want


@pytest.mark.parametrize("text", _spelled("test_wait"))
def test_waiting(text: str, engine: Engine, arena: Arena) -> None:
    """False in the current phase, true in the next; by state and by parity."""
    parity = "parity" in decode(text).modifiers
    now, then = ("%r0", "%r1") if parity else ("%d5", "%d6")
    setting = "mov.u32 %r0, 0;\n    mov.u32 %r1, 1;" if parity else ""
    got = _run_objects(
        engine,
        arena,
        f"""
    {setting}
    @%p1 mbarrier.init.shared.b64 [%r10], 33;
    bar.warp.sync -1;
    mbarrier.arrive.shared.b64 %d5, [%r10];
    {text} %p2, {_place(text)}, {now};
    bar.warp.sync -1;
    @%p1 mbarrier.arrive.shared.b64 _, [%r10];
    bar.warp.sync -1;
    {text} %p3, {_place(text)}, {now};
    mbarrier.arrive.shared.b64 %d6, [%r10];
    {text} %p4, {_place(text)}, {then};
    selp.u32 %r20, 1, 0, %p2;
    selp.u32 %r21, 2, 0, %p3;
    selp.u32 %r22, 4, 0, %p4;
    or.b32 %r20, %r20, %r21;
    or.b32 %r20, %r20, %r22;
""",
    )
    assert got[:, 2].tolist() == [2] * 32


def test_states_are_alike_in_both_engines(reference: Engine, jit: Engine, arena: Arena) -> None:
    lines = """
    @%p1 mbarrier.init.shared.b64 [%r10], 7;
    bar.warp.sync -1;
    mbarrier.arrive.shared.b64 %d20, [%r10];
"""
    ours, theirs = (_run_objects(e, arena, lines) for e in (reference, jit))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("mbarrier.init.shared.b64 [%r10], 0;", "waits for 1"),
        ("mbarrier.init.shared.b64 [%r10], 0x100000;", "waits for 1"),
        ("mbarrier.arrive.shared.b64 %d20, [%r10];", "no mbarrier"),
        ("mbarrier.test_wait.parity.shared.b64 %p2, [%r10], 0;", "no mbarrier"),
        (
            "mbarrier.init.shared.b64 [%r10], 5;\n"
            "mbarrier.arrive.noComplete.shared.b64 %d20, [%r10], 5;",
            "noComplete",
        ),
        (
            "mbarrier.init.shared.b64 [%r10], 5;\n"
            "mbarrier.arrive.noComplete.shared.b64 %d20, [%r10], 6;",
            "6 arrivals",
        ),
        (
            "mbarrier.init.shared.b64 [%r10], 0xfffff;\n"
            "cp.async.mbarrier.arrive.shared.b64 [%r10];",
            "pending",
        ),
    ],
)
def test_misuse_of_objects(lines: str, message: str, engine: Engine, arena: Arena) -> None:
    with pytest.raises(IllegalInstruction, match=message):
        _run_objects(engine, arena, lines)


def test_an_object_is_in_shared_memory(engine: Engine, arena: Arena) -> None:
    with pytest.raises(IllegalAddress):
        _run_objects(engine, arena, "mbarrier.init.b64 [%d60], 4;")
    with pytest.raises(MisalignedAddress):
        _run_objects(engine, arena, "mbarrier.init.shared.b64 [%r10+4], 4;")


RING = """
    // Warp 0 produces, the others consume: two slots, each with a full and an empty object.
    .shared .align 8 .b8 full[16];
    .shared .align 8 .b8 empty[16];
    .shared .align 16 .b8 box[256];
    mov.u32 %r10, full;
    mov.u32 %r11, empty;
    mov.u32 %r12, box;
    mov.u32 %r4, %laneid;
    shl.b32 %r5, %r4, 2;
    setp.ne.u32 %p0, %r3, 0;
    @%p0 bra READY;
    mbarrier.init.shared.b64 [%r10], 32;
    mbarrier.init.shared.b64 [%r10+8], 32;
    mbarrier.init.shared.b64 [%r11], 64;
    mbarrier.init.shared.b64 [%r11+8], 64;
READY:
    bar.sync 0;
    mov.u32 %r6, 0;
    setp.ge.u32 %p1, %r3, 32;
    @%p1 bra CONSUME;
PRODUCE:
    and.b32 %r7, %r6, 1;
    shl.b32 %r8, %r7, 3;
    add.u32 %r13, %r10, %r8;
    add.u32 %r14, %r11, %r8;
    shr.u32 %r9, %r6, 1;
    and.b32 %r9, %r9, 1;
    xor.b32 %r15, %r9, 1;
WAIT_EMPTY:
    mbarrier.test_wait.parity.shared.b64 %p2, [%r14], %r15;
    @!%p2 bra WAIT_EMPTY;
    mul.wide.u32 %d1, %r6, 128;
    mul.wide.u32 %d2, %r4, 4;
    add.s64 %d1, %d1, %d2;
    add.s64 %d1, %d60, %d1;
    shl.b32 %r16, %r7, 7;
    add.u32 %r16, %r16, %r12;
    add.u32 %r16, %r16, %r5;
    cp.async.ca.shared.global [%r16], [%d1], 4;
    cp.async.mbarrier.arrive.noinc.shared.b64 [%r13];
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p3, %r6, 40;
    @%p3 bra PRODUCE;
    ret;
CONSUME:
    and.b32 %r7, %r6, 1;
    shl.b32 %r8, %r7, 3;
    add.u32 %r13, %r10, %r8;
    add.u32 %r14, %r11, %r8;
    shr.u32 %r9, %r6, 1;
    and.b32 %r9, %r9, 1;
WAIT_FULL:
    mbarrier.test_wait.parity.shared.b64 %p2, [%r13], %r9;
    @!%p2 bra WAIT_FULL;
    shl.b32 %r16, %r7, 7;
    add.u32 %r16, %r16, %r12;
    xor.b32 %r17, %r5, 8;
    add.u32 %r16, %r16, %r17;
    ld.shared.u32 %r18, [%r16];
    add.u32 %r19, %r19, %r18;
    mul.lo.u32 %r19, %r19, 3;
    mbarrier.arrive.shared.b64 _, [%r14];
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p3, %r6, 40;
    @%p3 bra CONSUME;
    sub.u32 %r20, %r3, 32;
    mul.wide.u32 %d3, %r20, 4;
    add.s64 %d3, %d61, %d3;
    st.global.u32 [%d3], %r19;
    ret;
"""


def test_a_ring_of_copies(engine: Engine, arena: Arena) -> None:
    """Warps that wait for one another by loops on ``test_wait`` alone."""
    source = np.random.default_rng(9).integers(0, 1 << 32, 40 * 32, dtype=np.uint32)
    loaded = load(kernel("ring", "u64 u64", RING), arena, "ring.ptx")
    try:
        target = loaded.buffer(np.zeros(64, np.uint32))
        loaded.run(engine, "ring", (1,), (96,), pack(loaded.buffer(source), target))
        got = loaded.read(target, np.uint32, 64)
    finally:
        loaded.close()
    total = np.zeros(32, np.uint32)
    for row in source.reshape(40, 32):
        total = (total + row[np.arange(32) ^ 2]) * np.uint32(3)
    np.testing.assert_array_equal(got, np.tile(total, 2))


LANES_WAIT = """
    // Half of a warp waits for what the other half has yet to do.
    .shared .align 8 .b8 flag[8];
    mov.u32 %r10, flag;
    setp.eq.u32 %p0, %r3, 0;
    @%p0 mbarrier.init.shared.b64 [%r10], 16;
    bar.warp.sync -1;
    mov.u32 %r5, 1;
    setp.lt.u32 %p1, %r3, 16;
    @!%p1 bra ARRIVE;
WAIT:
    mbarrier.test_wait.parity.shared.b64 %p2, [%r10], 0;
    @!%p2 bra WAIT;
    mov.u32 %r5, 2;
    bra DONE;
ARRIVE:
    mbarrier.arrive.shared.b64 _, [%r10];
DONE:
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], %r5;
    ret;
"""


def test_lanes_of_a_warp_wait_for_each_other(engine: Engine, arena: Arena) -> None:
    loaded = load(kernel("lanes", "u64", LANES_WAIT), arena, "lanes.ptx")
    try:
        target = loaded.buffer(np.zeros(32, np.uint32))
        loaded.run(engine, "lanes", (1,), (32,), pack(target))
        assert loaded.read(target, np.uint32, 32).tolist() == [2] * 16 + [1] * 16
    finally:
        loaded.close()


def test_every_form_is_here() -> None:
    names = ("init", "inval", "arrive", "arrive_drop", "test_wait")
    tested = {t for name in names for t in _spelled(name)} | {"mbarrier.pending_count.b64"}
    assert tested | set(COPIES) | set(HANDLING) == set(FORMS)


# ---------------------------------------------------------------- kernels of a compiler

PIPELINES = {
    "cpasync_asm": (128, 5, 0, 4),
    "pipeline_prim": (64, 6, 512, 1),
    "cuda_barrier": (50, 5, 1000, 1),
    "cuda_pipeline2": (96, 7, 768, 1),
}
"""Kernel to threads, steps, bytes of dynamic shared memory, words a thread."""


def _pipelined(name: str, source: np.ndarray, steps: int, threads: int) -> np.ndarray:
    """What each kernel of the corpus says in CUDA C++."""
    rows = source.reshape(steps, threads, -1)
    if name in ("cpasync_asm", "pipeline_prim"):
        return rows[:, np.arange(threads) ^ 1].reshape(-1)
    return source[::-1] if name == "cuda_barrier" else source


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines(name: str, shared: Callable[[str], Path], engine: Engine, arena: Arena) -> None:
    """Double buffering by groups, by ``__pipeline_*``, by ``cuda::barrier`` and ``pipeline``."""
    threads, steps, shared_bytes, words = PIPELINES[name]
    count = steps * threads * words
    source = np.random.default_rng(6).integers(0, 1 << 32, count, dtype=np.uint32)
    ahead = np.concatenate((source, np.zeros(2 * threads * words, np.uint32)))
    path = shared("data/ptx/06_cp_async.ptx")
    loaded = load(path.read_text(encoding="utf-8"), arena, path.name)
    try:
        target = loaded.buffer(np.zeros(count, np.uint32))
        length = count if name == "cuda_barrier" else steps
        params = pack(loaded.buffer(ahead), target, np.uint32(length))
        loaded.run(engine, name, (1,), (threads,), params, shared_bytes=shared_bytes)
        got = loaded.read(target, np.uint32, count)
    finally:
        loaded.close()
    np.testing.assert_array_equal(got, _pipelined(name, source, steps, threads))
