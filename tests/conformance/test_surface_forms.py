"""Surfaces: every form, JIT against reference by what they read and leave, and the stated rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.builders import executed_forms, spellings
from tests.helpers.engines import load, pack
from tests.helpers.kernels import kernel
from tests.helpers.textures import Shape, made
from va100.errors import DeviceFault, IllegalAddress, IllegalInstruction, MisalignedAddress
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.gpu.texture import Kind, Layout, TexelFormat
from va100.ptx.isa import decode
from va100.ptx.isa.form import Family

THREADS = 32
TEXTS = [t for f in executed_forms() if f.family is Family.TEXTURE for t in spellings(f)]
CACHES = ("ca", "cg", "cs", "cv", "wb", "wt")
GEOMETRIES = ("1d", "2d", "3d", "a1d", "a2d")
WRITTEN = {
    "1d": "{%r11}", "2d": "{%r11, %r12}", "3d": "{%r11, %r12, %r13, %r13}",
    "a1d": "{%r10, %r11}", "a2d": "{%r10, %r11, %r12, %r12}",
}  # fmt: skip
SHAPES = {
    "1d": Shape(height=0, kind=Kind.SURFACE, width=32),
    "2d": Shape(kind=Kind.SURFACE, width=16),
    "3d": Shape(depth=3, kind=Kind.SURFACE, width=16),
    "a1d": Shape(height=0, layers=3, kind=Kind.SURFACE, width=16),
    "a2d": Shape(layers=3, kind=Kind.SURFACE, width=16),
}  # fmt: skip
REGISTERS = {"b8": "%h", "b16": "%h", "b32": "%r2", "u32": "%r2", "s32": "%r2", "f32": "%f",
             "b64": "%d2", "u64": "%d2", "s64": "%d2"}  # fmt: skip


def geometry_of(text: str) -> str:
    return next(m for m in text.split(".") if m in GEOMETRIES)


def without_caches(opcode: str) -> list[str]:
    """Spellings that do not differ in how they go through caches only."""
    return [t for t in TEXTS if t.startswith(opcode + ".") and not set(t.split(".")) & set(CACHES)]


def elements(text: str) -> list[str]:
    """Registers of the data."""
    kind, count = decode(text).type.value, decode(text).vector
    return [f"{REGISTERS[kind]}{k}" for k in range(count)]


def listed(text: str) -> str:
    names = elements(text)
    return names[0] if text.startswith("sured") else "{" + ", ".join(names) + "}"


def moves(text: str, verb: str, base: str) -> list[str]:
    """Loads or stores of an instruction's data, 32 bytes a thread."""
    kind = decode(text).type.value
    lines = []
    for k, name in enumerate(elements(text)):
        size = max(decode(text).type.size_bytes, 1)
        place = f"[{base}+{k * size}]"
        lines.append(f"{verb}.global.{kind.replace('f', 'b') if kind[0] != 'f' else kind} "
                     + (f"{name}, {place};" if verb == "ld" else f"{place}, {name};"))  # fmt: skip
    return lines


def source(texts: list[str]) -> str:
    """Coordinates of 16 bytes and data of 32 bytes a thread, for each instruction in turn.

    Loads leave their data.
    """
    body = ["mov.u64 %d10, %d60;", "mul.wide.u32 %d1, %r3, 16;", "add.s64 %d2, %d61, %d1;",
            "mul.wide.u32 %d1, %r3, 32;", "add.s64 %d3, %d62, %d1;"]  # fmt: skip
    for text in texts:
        where = f"[%d10, {WRITTEN[geometry_of(text)]}]"
        body.append("ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d2];")
        if text.startswith("suld"):
            body += [f"{text} {listed(text)}, {where};", *moves(text, "st", "%d3")]
        else:
            body += [*moves(text, "ld", "%d3"), f"{text} {where}, {listed(text)};"]
        body += [f"add.s64 %d2, %d2, {THREADS * 16};", f"add.s64 %d3, %d3, {THREADS * 32};"]
    return kernel("reach", "u64 u64 u64", "\n".join([*body, "ret;"]))


def places(shape: Shape, unit: int, rng: np.random.Generator, *, inside: bool) -> np.ndarray:
    """Layer, x, y, z: x counts texels, or bytes in steps of a ``unit``."""
    columns = shape.width if unit == 1 else shape.width * shape.texel_bytes // unit
    words = np.zeros((THREADS, 4), np.int32)
    slack = 0 if inside else 2
    words[:, 0] = rng.integers(-slack, shape.slices + slack, THREADS)
    words[:, 1] = rng.integers(-slack, columns + slack, THREADS) * unit
    words[:, 2] = rng.integers(-slack, shape.rows + slack, THREADS)
    words[:, 3] = rng.integers(-slack, shape.slices + slack, THREADS)
    return words


def run(
    engine: Engine, arena: Arena, texts: list[str], shape: Shape, content: np.ndarray,
    where: np.ndarray, data: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The data and the surface afterwards."""
    loaded = load(source(texts), arena, "reach.ptx")
    threads = len(where) // len(texts)
    try:
        with made(arena, shape, content) as (number, base):
            target = loaded.buffer(data)
            params = pack(number, loaded.buffer(where), target)
            loaded.run(engine, "reach", (1,), (threads,), params)
            left = np.frombuffer(arena.download(base, content.size), np.uint8)
            return loaded.read(target, np.uint8, data.size), left
    finally:
        loaded.close()


def group_of(text: str) -> tuple[str, ...]:
    """What instructions share that may reach one surface."""
    operation = decode(text)
    if "p" not in operation.modifiers:
        return operation.opcode, "b", geometry_of(text)
    return operation.opcode, "p", geometry_of(text), operation.type.value


GROUPS = {
    group: [t for op in ("suld", "sust", "sured") for t in without_caches(op)
            if group_of(t) == group]
    for group in dict.fromkeys(
        group_of(t) for op in ("suld", "sust", "sured") for t in without_caches(op)
    )
}  # fmt: skip


def shape_for(text: str, rng: np.random.Generator) -> Shape:
    """A surface the instruction may be used on."""
    operation, shape = decode(text), SHAPES[geometry_of(text)]
    if "p" not in operation.modifiers:
        return replace(shape, format=TexelFormat(int(rng.choice(list(TexelFormat)))))
    if operation.opcode == "sured":
        wide = operation.type.bits == 64
        kind = rng.choice([TexelFormat.U32, TexelFormat.S32])
        return replace(shape, format=TexelFormat(int(kind)), channels=2 if wide else 1)
    kinds = [
        k
        for k in TexelFormat
        if operation.type.is_bits
        or (k.is_float, k.is_signed) == (operation.type.is_float, operation.type.is_signed)
    ]
    channels = int(rng.choice([1, 2, 4]))
    return replace(shape, format=TexelFormat(int(rng.choice(kinds))), channels=channels)


def places_for(text: str, shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Places for each thread, outside too where that is no fault."""
    operation = decode(text)
    unit = 1 if "p" in operation.modifiers else operation.type.size_bytes * operation.vector
    return places(shape, unit, rng, inside=not {"clamp", "zero"} & operation.modifiers)


@pytest.mark.parametrize("group", GROUPS, ids="-".join)
def test_forms_agree(group: tuple[str, ...], reference: Engine, jit: Engine, arena: Arena) -> None:
    texts = GROUPS[group]
    if group[2] != "2d":  # a third of the others, a different one for each geometry
        texts = texts[GEOMETRIES.index(group[2]) % 3 :: 3]
    rng = np.random.default_rng(len(texts))
    shape = shape_for(texts[0], rng)
    where = np.concatenate([places_for(t, shape, rng) for t in texts])
    content = shape.random(rng)
    data = rng.integers(0, 256, len(texts) * THREADS * 32, dtype=np.uint8)
    want = run(reference, arena, texts, shape, content, where, data)
    got = run(jit, arena, texts, shape, content, where, data)
    wrong = np.flatnonzero(got[0] != want[0]) // (THREADS * 32)
    assert not wrong.size, texts[wrong[0]]
    np.testing.assert_array_equal(got[1], want[1])
    assert (want[group[0] != "suld"] != (data, content)[group[0] != "suld"]).any()


def test_cache_operators_change_nothing(reference: Engine, jit: Engine, arena: Arena) -> None:
    cached = [t for t in TEXTS if set(t.split(".")) & set(CACHES) and ".2d." in t][::9]
    plain = [".".join(m for m in t.split(".") if m not in CACHES) for t in cached]
    rng = np.random.default_rng(3)
    shape = replace(SHAPES["2d"], format=TexelFormat.U32)
    where = np.concatenate([places_for(t, shape, rng) for t in plain])
    data = rng.integers(0, 256, len(plain) * THREADS * 32, dtype=np.uint8)
    content = shape.random(rng)
    want = run(reference, arena, plain, shape, content, where, data)
    got = run(jit, arena, cached, shape, content, where, data)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


# ------------------------------------------------------------------ the stated rules


ROW = replace(SHAPES["1d"], format=TexelFormat.U8, channels=1, width=8)
BYTES = np.arange(1, 9, dtype=np.uint8)


def reach(engine: Engine, arena: Arena, text: str, at: list[int], data: list[int]) -> tuple:
    """Reach a row of the bytes 1 to 8 at byte offsets; data are 32-byte records."""
    where = np.zeros((len(at), 4), np.int32)
    where[:, 1] = at
    records = np.zeros((len(at), 32), np.uint8)
    records[:, : len(data[0:1]) or 1] = np.array(data, np.uint8).reshape(-1, 1)
    got, left = run(engine, arena, [text], ROW, ROW.store(BYTES), where, records.reshape(-1))
    return got.reshape(-1, 32)[:, :2].tolist(), left[:8].tolist()


def test_outside_is_clamped_or_zero(engine: Engine, arena: Arena) -> None:
    got, _ = reach(engine, arena, "suld.b.1d.b16.clamp", [-6, 2, 8, 11], [9, 9, 9, 9])
    assert got == [[1, 2], [3, 4], [7, 8], [7, 8]]
    got, _ = reach(engine, arena, "suld.b.1d.b16.zero", [-6, 2, 8, 11], [9, 9, 9, 9])
    assert got == [[0, 0], [3, 4], [0, 0], [0, 0]]
    _, left = reach(engine, arena, "sust.b.1d.b8.zero", [-1, 0, 8], [21, 22, 23])
    assert left == [22, 2, 3, 4, 5, 6, 7, 8]
    _, left = reach(engine, arena, "sust.b.1d.b8.clamp", [-1, 8], [21, 22])
    assert left == [21, 2, 3, 4, 5, 6, 7, 22]


@pytest.mark.parametrize("text", ["suld.b.1d.b16.trap", "suld.b.1d.b16", "sust.b.1d.b16.trap"])
def test_outside_is_a_fault_that_says_where(text: str, engine: Engine, arena: Arena) -> None:
    with pytest.raises(IllegalAddress) as caught:
        reach(engine, arena, text, [0, 8], [9, 9])
    fault = caught.value
    assert (fault.space, fault.size, fault.thread) == ("surface", 2, (1, 0, 0))
    assert "byte 8, row 0, slice 0 of a surface of 8 bytes, 1 rows, 1 slices" in str(fault)


def test_a_misaligned_access_is_a_fault(engine: Engine, arena: Arena) -> None:
    with pytest.raises(MisalignedAddress) as caught:
        reach(engine, arena, "suld.b.1d.b16", [3], [0])
    assert (caught.value.space, caught.value.address, caught.value.size) == ("surface", 3, 2)


def put(engine: Engine, arena: Arena, text: str, kind: TexelFormat, words: list[int]) -> bytes:
    shape = replace(SHAPES["1d"], format=kind, channels=1, width=len(words))
    where = np.zeros((len(words), 4), np.int32)
    where[:, 1] = range(len(words))
    data = np.zeros((len(words), 8), np.uint32)
    data[:, 0] = words
    content = np.full(shape.size_bytes, 0xEE, np.uint8)
    _, left = run(engine, arena, [text], shape, content, where, data.view(np.uint8).reshape(-1))
    return left[: len(words) * kind.size_bytes].tobytes()


def test_formatted_stores_convert(engine: Engine, arena: Arena) -> None:
    words = [0, 255, 256, 0xFFFFFFFF]
    assert put(engine, arena, "sust.p.1d.u32", TexelFormat.U8, words) == bytes([0, 255, 255, 255])
    left = put(engine, arena, "sust.p.1d.s32", TexelFormat.S8, [5, 128, 0xFFFFFF00, 0xFFFFFFFF])
    assert np.frombuffer(left, np.int8).tolist() == [5, 127, -128, -1]
    floats = np.array([1, 65536, 1e-8, np.nan], np.float32).view(np.uint32).tolist()
    left = put(engine, arena, "sust.p.1d.f32", TexelFormat.F16, floats)
    assert np.frombuffer(left, np.uint16).tolist() == [0x3C00, 0x7C00, 0, 0x7FFF]


def test_a_store_of_another_type_is_a_fault(engine: Engine, arena: Arena) -> None:
    with pytest.raises(IllegalInstruction, match="a store of floats to a surface of unsigned"):
        put(engine, arena, "sust.p.1d.f32", TexelFormat.U8, [0])


def test_reductions_of_many_lanes_add_up(engine: Engine, arena: Arena) -> None:
    shape = replace(SHAPES["1d"], format=TexelFormat.U32, channels=1, width=4)
    where = np.zeros((THREADS, 4), np.int32)
    data = np.zeros((THREADS, 8), np.uint32)
    data[:, 0] = range(THREADS)
    content = shape.store(np.array([7, 0, 0, 0], np.uint32))
    raw = data.view(np.uint8).reshape(-1)
    for text, want in (("sured.b.add.1d.u32.trap", 7 + 496), ("sured.p.max.1d.b32.trap", 31)):
        _, left = run(engine, arena, [text], shape, content, where, raw)
        assert left[:4].view(np.uint32)[0] == want


def test_a_texture_is_no_surface(engine: Engine, arena: Arena) -> None:
    shape = replace(ROW, kind=Kind.TEXTURE)
    where, data = np.zeros((1, 4), np.int32), np.zeros(32, np.uint8)
    with pytest.raises(IllegalInstruction, match="is no surface object; it is a texture object"):
        run(engine, arena, ["suld.b.1d.b8"], shape, ROW.store(BYTES), where, data)


@pytest.mark.parametrize("text", [t for t in TEXTS if t.startswith("suq.")])
def test_queries(text: str, engine: Engine, arena: Arena) -> None:
    answers = {"width": 7, "height": 5, "depth": 3, "array_size": 2, "channel_order": 4,
               "channel_data_type": 0x20, "memory_layout": 0}  # fmt: skip
    shape = Shape(depth=3, layers=2, kind=Kind.SURFACE, layout=Layout.ARRAY)
    body = f"{text} %r5, [%d60];\nst.global.u32 [%d61], %r5;\nret;"
    loaded = load(kernel("ask", "u64 u64", body), arena)
    try:
        with made(arena, shape, np.zeros(shape.size_bytes, np.uint8)) as (number, _):
            target = loaded.buffer(np.zeros(1, np.uint32))
            loaded.run(engine, "ask", (1,), (1,), pack(number, target))
        assert loaded.read(target, np.uint32, 1)[0] == answers[text.split(".")[1]]
    finally:
        loaded.close()


def test_lanes_that_are_off_reach_nothing(engine: Engine, arena: Arena) -> None:
    """Wrong objects and places of lanes that a guard or a branch leaves out are no fault."""
    text = "suld.b.1d.b8.trap"
    guarded = source([text]).replace(
        f"{text} ", f"setp.lt.u32 %p1, %r3, 4;\n@%p1 {text} "
    ).replace("mov.u64 %d10, %d60;", "mov.u64 %d10, %d60;\nsetp.lt.u32 %p2, %r3, 4;\n"
              "selp.u64 %d10, %d60, 0, %p2;")  # fmt: skip
    loaded = load(guarded, arena, "reach.ptx")
    where = np.zeros((THREADS, 4), np.int32)
    where[:, 1] = range(THREADS)
    try:
        with made(arena, ROW, ROW.store(BYTES)) as (number, _):
            target = loaded.buffer(np.full(THREADS * 32, 9, np.uint8))
            params = pack(number, loaded.buffer(where), target)
            loaded.run(engine, "reach", (1,), (THREADS,), params)
            got = loaded.read(target, np.uint8, THREADS * 32).reshape(THREADS, 32)[:, 0]
        assert got.tolist() == [1, 2, 3, 4] + [0] * 28
        assert issubclass(IllegalInstruction, DeviceFault)
    finally:
        loaded.close()
