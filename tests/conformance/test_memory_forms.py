"""Loads, stores and atomics: every form at least once, by what memory holds afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.helpers.builders import executed_forms, integers
from tests.helpers.engines import load, pack
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.ptx.isa import decode
from va100.ptx.isa.form import Family, Form
from va100.ptx.types import PtxType, Space

THREADS = 64
SLOT = 16
"""Bytes of memory a thread has."""


def each_used(form: Form) -> Iterator[str]:
    """Spellings in which every alternative of every slot occurs at least once."""
    base = [slot[0] for slot in form.slots]
    yield _spell(form, base)
    for at, slot in enumerate(form.slots):
        for choice in slot[1:]:
            yield _spell(form, [*base[:at], choice, *base[at + 1 :]])
    # Every type with every vector length: the widths meet the addresses.
    vectors = next((i for i, s in enumerate(form.slots) if "v2" in s), None)
    if vectors is not None:
        for vector in form.slots[vectors]:
            for kind in form.slots[-1]:
                parts = [*base[:-1], kind]
                parts[vectors] = vector
                yield _spell(form, parts)


def _spell(form: Form, parts: list[str]) -> str:
    return ".".join((form.opcode, *(p for p in parts if p)))


def operations(opcode: str) -> list[str]:
    """Spellings of an opcode that fit a slot of memory and a space a test can set up."""
    found: dict[str, None] = {}
    for form in executed_forms():
        if form.opcode == opcode:
            for text in each_used(form):
                operation = decode(text)
                sizes = [kind.size_bytes * operation.vector for kind in operation.types]
                if all(size <= SLOT for size in sizes):
                    found[text] = None
    return list(found)


LOADS = [t for o in ("ld", "ldu") for t in operations(o) if "param::func" not in t]
STORES = [t for t in operations("st") if decode(t).space is not Space.PARAM]
GROUP = 12


def groups(texts: list[str]) -> list[list[str]]:
    return [texts[i : i + GROUP] for i in range(0, len(texts), GROUP)]


def _register(kind: PtxType, index: int, *, wide: bool) -> str:
    if kind is PtxType.B128:
        return f"%q{index}"
    if kind in (PtxType.F32, PtxType.F64) or not wide:
        return f"%r{index}" if kind.size_bytes <= 4 else f"%d{index}"
    return f"%d{index}"


def _text(body: list[str]) -> str:
    lines = "\n".join(body)
    return f"""
.version 8.8
.target sm_80
.address_size 64
.const .align 16 .b8 table[{THREADS * SLOT}];
.visible .entry access(.param .u64 source, .param .u64 target, .param .align 16 .b8 block[{SLOT}])
{{
    .reg .b32 %r<16>;
    .reg .b64 %d<32>;
    .reg .b128 %q<4>;
    .shared .align 16 .b8 box[{THREADS * SLOT}];
    .local .align 16 .b8 own[{SLOT}];
    mov.u32 %r15, %tid.x;
    mul.wide.u32 %d20, %r15, {SLOT};
    ld.param.u64 %d21, [source];
    ld.param.u64 %d22, [target];
    add.s64 %d21, %d21, %d20;
    mul.wide.u32 %d23, %r15, 32;
    add.s64 %d22, %d22, %d23;
    ld.global.v2.u64 {{%d24, %d25}}, [%d21];
    mov.u64 %d26, box;
    add.s64 %d26, %d26, %d20;
    mov.u64 %d27, table;
    add.s64 %d27, %d27, %d20;
    mov.u64 %d28, own;
    mov.u64 %d29, 0;
{lines}
    ret;
}}
"""


_PLACES = {
    Space.GLOBAL: "[%d21]",
    Space.GENERIC: "[%d21]",
    Space.SHARED: "[%d26]",
    Space.LOCAL: "[%d28]",
    Space.CONST: "[%d27]",
    Space.PARAM: "[block]",
}


def _vector(names: list[str]) -> str:
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


def _hint(text: str) -> str:
    return ", %d29" if "cache_hint" in text else ""


def _run(engine: Engine, arena: Arena, body: list[str], count: int) -> tuple[np.ndarray, ...]:
    """Run accesses; returns source bytes, block bytes, target bytes by access and thread."""
    rng = np.random.default_rng(8)
    source = rng.integers(0, 256, THREADS * SLOT, dtype=np.uint8)
    block = rng.integers(0, 256, SLOT, dtype=np.uint8)
    loaded = load(_text(body), arena, "access.ptx")
    try:
        arena.view(loaded.module.addresses["table"], source.size)[:] = source
        place = loaded.buffer(source)
        target = loaded.buffer(np.zeros(count * THREADS * 32, np.uint8))
        params = pack(place, target) + block.tobytes()
        loaded.run(engine, "access", (1,), (THREADS,), params)
        output = loaded.read(target, np.uint8, count * THREADS * 32)
    finally:
        loaded.close()
    return source.reshape(THREADS, SLOT), block, output.reshape(count, THREADS, 32)


def _extended(kind: PtxType, raw: np.ndarray, count: int) -> np.ndarray:
    """What 64-bit registers hold after loading ``count`` values: (threads, count)."""
    size = kind.size_bytes
    dtype = np.dtype(f"{'i' if kind.is_signed else 'u'}{size}")
    values = np.ascontiguousarray(raw[:, : size * count]).view(dtype)
    return values.astype(np.int64 if kind.is_signed else np.uint64).view(np.uint64)


@pytest.mark.parametrize("texts", groups(LOADS), ids=lambda texts: texts[0])
def test_loads(texts: list[str], engine: Engine, arena: Arena) -> None:
    body = [
        "    st.shared.v2.u64 [%d26], {%d24, %d25};",
        "    st.local.v2.u64 [%d28], {%d24, %d25};",
    ]
    for index, text in enumerate(texts):
        operation = decode(text)
        names = [_register(operation.type, i, wide=True) for i in range(operation.vector)]
        body.append(f"    {text} {_vector(names)}, {_PLACES[operation.space]}{_hint(text)};")
        if operation.type is PtxType.B128:
            body.append(f"    st.global.b128 [%d22+{index * THREADS * 32}], {names[0]};")
            continue
        for i, name in enumerate(names):
            size = 32 if name[1] == "r" else 64
            at = index * THREADS * 32 + 8 * i
            body.append(f"    st.global.b{size} [%d22+{at}], {name};")
    source, block, output = _run(engine, arena, body, len(texts))
    for text, got in zip(texts, output, strict=True):
        operation = decode(text)
        raw = np.tile(block, (THREADS, 1)) if operation.space is Space.PARAM else source
        kind, count = operation.type, operation.vector
        if kind is PtxType.B128:
            kind, count = PtxType.B64, 2
        want = _extended(kind, raw, count)
        np.testing.assert_array_equal(got.view(np.uint64)[:, :count], want, err_msg=text)


@pytest.mark.parametrize("texts", groups(STORES), ids=lambda texts: texts[0])
def test_stores(texts: list[str], engine: Engine, arena: Arena) -> None:
    body = []
    for index, text in enumerate(texts):
        operation = decode(text)
        kind, count = operation.type, operation.vector
        if kind is PtxType.B128:
            body.append("    ld.global.b128 %q0, [%d21];")
        names = []
        for i in range(count):
            size = kind.size_bytes
            name = _register(kind, i, wide=True)
            names.append(name)
            shift = 8 * size * i
            if kind is not PtxType.B128:
                half = "%d24" if shift < 64 else "%d25"
                body.append(f"    shr.u64 %d{i}, {half}, {shift % 64};")
            if name[1] == "r":
                body.append(f"    cvt.u32.u64 {name}, %d{i};")
        at = index * THREADS * 32
        place = {
            Space.GLOBAL: f"[%d22+{at}]", Space.GENERIC: f"[%d22+{at}]",
            Space.SHARED: "[%d26]", Space.LOCAL: "[%d28]",
        }[operation.space]  # fmt: skip
        if operation.space in (Space.SHARED, Space.LOCAL):
            space = operation.space.value
            body.append(f"    st.{space}.v2.u64 {place}, {{%d29, %d29}};")
        body.append(f"    {text} {place}, {_vector(names)}{_hint(text)};")
        if operation.space in (Space.SHARED, Space.LOCAL):
            body.append(f"    ld.{space}.v2.u64 {{%d0, %d1}}, {place};")
            body.append(f"    st.global.v2.u64 [%d22+{at}], {{%d0, %d1}};")
    source, _, output = _run(engine, arena, body, len(texts))
    for text, got in zip(texts, output, strict=True):
        operation = decode(text)
        size = operation.type.size_bytes * operation.vector
        np.testing.assert_array_equal(got[:, :size], source[:, :size], err_msg=text)
        assert not got[:, size:].any(), text


# ---------------------------------------------------------------- atomics

ATOMICS = operations("atom")
REDUCTIONS = operations("red")
CELLS = 4
"""Memory cells that the threads of one atomic share."""


def _change(text: str, old: int, b: int, c: int) -> int:
    """One thread's turn, in Python integers; floats are exact multiples here."""
    operation = decode(text)
    kind = operation.type
    bits = kind.bits
    if operation.combine == "add" and kind.is_float:
        return _float_sum(kind, old, b)

    def sign(value: int) -> int:
        return value - (1 << bits) if kind.is_signed and value >> (bits - 1) else value

    x, y = sign(old), sign(b)
    result = {
        "add": x + y, "and": x & y, "or": x | y, "xor": x ^ y, "exch": y,
        "min": min(x, y), "max": max(x, y),
        "inc": 0 if x >= y else x + 1,
        "dec": y if x == 0 or x > y else x - 1,
        "cas": sign(c) if x == y else x,
    }[operation.combine]  # fmt: skip
    return result % (1 << bits)


_FLOATS = {PtxType.F16: "f2", PtxType.F16X2: "f2", PtxType.F32: "f4", PtxType.F64: "f8"}


def _float_sum(kind: PtxType, old: int, b: int) -> int:
    size = kind.size_bytes
    x, y = (np.frombuffer(v.to_bytes(size, "little"), _FLOATS[kind]) for v in (old, b))
    return int.from_bytes((x + y).tobytes(), "little")


def _small_floats(kind: PtxType, count: int, rng: np.random.Generator) -> np.ndarray:
    """Quarters: their sums are exact, so the order of the threads does not show."""
    dtype = np.dtype(_FLOATS[kind])
    each = kind.size_bytes // dtype.itemsize
    quarters = (rng.integers(-40, 40, count * each) / 4).astype(dtype)
    return quarters.view(f"u{kind.size_bytes}").astype(np.uint64)


def _columns(text: str, rng: np.random.Generator) -> list[np.ndarray]:
    kind = decode(text).type
    if kind in _FLOATS:
        return [_small_floats(kind, n, rng) for n in (CELLS, THREADS, THREADS)]
    columns = [integers(kind.bits, n, rng) for n in (CELLS, THREADS, THREADS)]
    if decode(text).combine == "cas":
        columns[1] = np.where(
            np.arange(THREADS) % 3 == 0, columns[0][np.arange(THREADS) % CELLS], columns[1]
        )
    return columns


def _atomic_text(text: str) -> str:
    operation = decode(text)
    kind = operation.type
    letter = {2: "%h", 4: "%r", 8: "%d"}[kind.size_bytes]
    names = [f"{letter}{i}" for i in range(3)]
    shared = operation.space is Space.SHARED
    size = kind.size_bytes
    bits = 8 * size
    place = "[%d12]" if shared else "[%d10]"
    sources = ", ".join(names[1 : 3 if operation.combine == "cas" else 2])
    first = f"{names[0]}, " if operation.opcode == "atom" else ""
    keep = f"    st.global.b{bits} [%d11], {names[0]};" if operation.opcode == "atom" else ""
    copy_in = f"""
    setp.ge.u32 %p0, %r15, {CELLS};
    @%p0 bra READY;
    ld.global.b{bits} {names[0]}, [%d10];
    st.shared.b{bits} [%d12], {names[0]};
READY:
    bar.sync 0;
"""
    copy_out = f"""
    bar.sync 0;
    @%p0 bra DONE;
    ld.shared.b{bits} {names[0]}, [%d12];
    st.global.b{bits} [%d10], {names[0]};
DONE:
"""
    return f"""
.version 8.8
.target sm_80
.address_size 64
.visible .entry turn(.param .u64 cells, .param .u64 b, .param .u64 c, .param .u64 old)
{{
    .reg .pred %p<2>;
    .reg .b16 %h<4>;
    .reg .b32 %r<16>;
    .reg .b64 %d<20>;
    .shared .align 8 .b8 box[{CELLS * 8}];
    mov.u32 %r15, %tid.x;
    and.b32 %r14, %r15, {CELLS - 1};
    mul.wide.u32 %d18, %r14, {size};
    mul.wide.u32 %d19, %r15, {size};
    ld.param.u64 %d10, [cells];
    add.s64 %d10, %d10, %d18;
    ld.param.u64 %d13, [b];
    add.s64 %d13, %d13, %d19;
    ld.param.u64 %d14, [c];
    add.s64 %d14, %d14, %d19;
    ld.param.u64 %d11, [old];
    add.s64 %d11, %d11, %d19;
    mov.u64 %d12, box;
    add.s64 %d12, %d12, %d18;
    mov.u64 %d9, 0;
    ld.global.b{bits} {names[1]}, [%d13];
    ld.global.b{bits} {names[2]}, [%d14];
{copy_in if shared else ""}
    {text} {first}{place}, {sources}{", %d9" if "cache_hint" in text else ""};
{keep}
{copy_out if shared else ""}
    ret;
}}
"""


def _some_order_explains(
    text: str, start: int, inputs: list[tuple[int, int]], seen: list[int], end: int
) -> bool:
    """Whether the threads can have taken turns, whatever the order.

    Each turn leads from what a thread saw to what it left: there is an order if and only if these
    edges make up one path from the first value to the last (Euler).
    """
    edges = [(old, _change(text, old, *own)) for old, own in zip(seen, inputs, strict=True)]
    balance = {start: 0, end: 0}
    for old, new in edges:
        balance[old] = balance.get(old, 0) + 1
        balance[new] = balance.get(new, 0) - 1
    balance[start] -= 1
    balance[end] += 1
    reached = {start}
    for _ in edges:
        reached |= {new for old, new in edges if old in reached}
    return not any(balance.values()) and all(old in reached for old, _ in edges)


COMMUTING = ("add", "and", "or", "xor", "min", "max")


@pytest.mark.parametrize("text", [*ATOMICS, *REDUCTIONS])
def test_atomics(text: str, engine: Engine, arena: Arena) -> None:
    operation = decode(text)
    dtype = np.dtype(f"u{operation.type.size_bytes}")
    cells, b, c = (column.astype(dtype) for column in _columns(text, np.random.default_rng(4)))
    loaded = load(_atomic_text(text), arena, "turn.ptx")
    try:
        places = [loaded.buffer(a) for a in (cells, b, c, np.zeros(THREADS, dtype))]
        loaded.run(engine, "turn", (1,), (THREADS,), pack(*places))
        after = loaded.read(places[0], dtype, CELLS)
        seen = loaded.read(places[3], dtype, THREADS)
    finally:
        loaded.close()
    for cell in range(CELLS):
        mine = list(range(cell, THREADS, CELLS))
        inputs = [(int(b[i]), int(c[i])) for i in mine]
        if operation.combine in COMMUTING:
            value = int(cells[cell])
            for operands in inputs:
                value = _change(text, value, *operands)
            assert int(after[cell]) == value, text
        if operation.opcode == "atom":
            found = [int(seen[i]) for i in mine]
            assert _some_order_explains(text, int(cells[cell]), inputs, found, int(after[cell])), (
                text
            )


@pytest.mark.parametrize("opcode", ["atom", "red"])
@pytest.mark.parametrize("operation", ["inc", "dec"])
def test_counters_wrap(opcode: str, operation: str, engine: Engine, arena: Arena) -> None:
    """All threads count with one limit: the cell has gone round as often as it must."""
    limit, start = 4, 2
    loaded = load(_atomic_text(f"{opcode}.global.{operation}.u32"), arena, "turn.ptx")
    try:
        cells = loaded.buffer(np.full(CELLS, start, np.uint32))
        same = loaded.buffer(np.full(THREADS, limit, np.uint32))
        old = loaded.buffer(np.zeros(THREADS, np.uint32))
        loaded.run(engine, "turn", (1,), (THREADS,), pack(cells, same, same, old))
        after = loaded.read(cells, np.uint32, CELLS)
    finally:
        loaded.close()
    steps = THREADS // CELLS
    want = (start + steps) % (limit + 1) if operation == "inc" else (start - steps) % (limit + 1)
    assert after.tolist() == [want] * CELLS


def test_every_memory_form_is_here() -> None:
    """Spellings tested cover every row of the two families."""
    tested = {decode(t).form for t in (*LOADS, *STORES, *ATOMICS, *REDUCTIONS)}
    advising = {"prefetch", "prefetchu", "applypriority", "discard", "createpolicy"}
    for form in executed_forms():
        if form.family in (Family.MEMORY, Family.ATOMIC) and form.opcode not in advising:
            assert form in tested, form


ADVICE = [t for o in ("prefetch", "prefetchu", "applypriority", "discard") for t in operations(o)]


@pytest.mark.parametrize("text", ADVICE)
def test_advice_changes_nothing(text: str, engine: Engine, arena: Arena) -> None:
    place = "[%d28]" if ".local" in text else "[%d21]"
    size = "" if text.startswith("prefetch") else ", 128"
    body = [f"    {text} {place}{size};", "    st.global.v2.u64 [%d22], {%d24, %d25};"]
    source, _, output = _run(engine, arena, body, 1)
    np.testing.assert_array_equal(output[0, :, :SLOT], source)


@pytest.mark.parametrize("text", operations("createpolicy"))
def test_policies(text: str, reference: Engine, jit: Engine, arena: Arena) -> None:
    """A policy's bits are nobody's business, but they are the same ones, and accesses take them."""
    operands = {
        "range": ["[%d21], 0x100000, %r15", "[%d21], %r14, %r15"],
        "fractional": ["", "0f3F000000", "%f1"],
        "cvt": ["%d24"],
    }[decode(text).sequence[0]]
    body = ["    .reg .f32 %f<4>;", "    cvt.rn.f32.u32 %f1, %r15;", "    mov.u32 %r14, 4096;"]
    body.append("    mul.f32 %f1, %f1, 0f3CF5C28F;")
    for index, given in enumerate(operands):
        body.append(f"    {text} %d{index}{', ' if given else ''}{given};")
        body.append(f"    ld.global.L2::cache_hint.u64 %d9, [%d21], %d{index};")
        at = index * THREADS * 32
        body.append(f"    st.global.L2::cache_hint.v2.u64 [%d22+{at}], {{%d{index}, %d9}}, %d9;")
    source, _, ours = _run(reference, arena, body, len(operands))
    _, _, theirs = _run(jit, arena, body, len(operands))
    np.testing.assert_array_equal(ours, theirs, err_msg=text)
    for output in ours:
        np.testing.assert_array_equal(output[:, 8:16], source[:, :8])
