"""Texture fetches, gathers and queries: every form, JIT against reference, and the stated rules."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.builders import executed_forms, spellings
from tests.helpers.engines import Loaded, load, pack
from tests.helpers.kernels import kernel
from tests.helpers.textures import Shape, coordinates, made
from va100.errors import IllegalAddress, IllegalInstruction, UnsupportedInstruction
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.gpu.texture import (
    AddressMode,
    Kind,
    Layout,
    TexelFormat,
    Texture,
    add_texture,
    find_texture,
    native_bytes,
    remove_texture,
)
from va100.ptx.isa import decode
from va100.ptx.isa.form import Family

THREADS = 32
TEXTS = [t for f in executed_forms() if f.family is Family.TEXTURE for t in spellings(f)]
FETCHES = [t for t in TEXTS if t.startswith(("tex.", "tld4."))]
QUERIES = [t for t in TEXTS if t.startswith("txq.")]
GEOMETRIES = ("1d", "2d", "3d", "a1d", "a2d", "cube", "acube")
SAMPLED = {"2dms": "2d", "a2dms": "a2d"}
"""Geometry of several samples a texel to that of the texture there is."""
WRITTEN = {
    "1d": "{%r11}", "2d": "{%r11, %r12}", "3d": "{%r11, %r12, %r13, %r13}",
    "a1d": "{%r10, %r11}", "a2d": "{%r10, %r11, %r12, %r12}",
    "cube": "{%r11, %r12, %r13, %r13}", "acube": "{%r10, %r11, %r12, %r13}",
}  # fmt: skip
SLOPES = {"1d": "{%r11}", "2d": "{%r11, %r12}", "3d": "{%r11, %r12, %r13, %r13}"}
GEOMETRIES_SHAPES = {
    "1d": Shape(height=0), "2d": Shape(), "3d": Shape(depth=3), "a1d": Shape(height=0, layers=3),
    "a2d": Shape(layers=3), "cube": Shape(width=4, height=4, is_cube=True),
    "acube": Shape(width=4, height=4, is_cube=True, layers=2),
}  # fmt: skip


def geometry_of(text: str) -> str:
    names = (SAMPLED.get(m, m) for m in text.split("."))
    return next(name for name in names if name in GEOMETRIES)


def written(text: str) -> str:
    """The coordinates; %r24 is the number of a sample."""
    if ".2dms." in text:
        return "{%r24, %r11, %r12, %r12}"
    return "{%r10, %r24, %r11, %r12}" if ".a2dms." in text else WRITTEN[geometry_of(text)]


def instruction(text: str, offsets: str = "") -> str:
    """One fetch of the coordinates in %r10 to %r13 into %r20 to %r23."""
    geometry = geometry_of(text)
    out = "{%r20, %r21}" if ".v2." in text else "{%r20, %r21, %r22, %r23}"
    level = ""
    if ".level." in text:
        level = ", %f1"
    elif ".grad." in text:
        slope = SLOPES[{"a1d": "1d", "a2d": "2d"}.get(geometry, geometry.removeprefix("a"))
                       if "cube" not in geometry else "3d"]  # fmt: skip
        level = f", {slope}, {slope}"
    return f"{text} {out}, [%d10, {written(text)}]{level}{offsets};"


def fetching(texts: list[str], offsets: str = "") -> str:
    """A kernel that fetches with each instruction; integer coordinates follow the others."""
    body = ["mov.f32 %f1, 0f00000000;", "mov.u64 %d10, %d60;", "mul.wide.u32 %d1, %r3, 16;",
            "add.s64 %d2, %d61, %d1;", "add.s64 %d3, %d62, %d1;"]  # fmt: skip
    for index, text in enumerate(texts):
        at = THREADS * 16 if text.endswith(".s32") else 0
        body += [
            f"ld.global.v4.u32 {{%r10, %r11, %r12, %r13}}, [%d2+{at}];",
            "mov.u32 %r24, 0;",
            "mov.u32 %r22, 0;",
            "mov.u32 %r23, 0;",
            instruction(text, offsets),
            f"st.global.v4.u32 [%d3+{index * THREADS * 16}], {{%r20, %r21, %r22, %r23}};",
        ]
    return kernel("fetch", "u64 u64 u64", "\n".join([*body, "ret;"]))


def fetched(
    engine: Engine, loaded: Loaded, number: int, given: np.ndarray, count: int
) -> np.ndarray:
    """Words by instruction, thread and component."""
    target = loaded.buffer(np.zeros(count * THREADS * 4, np.uint32))
    params = pack(number, loaded.buffer(given), target)
    loaded.run(engine, "fetch", (1,), (THREADS,), params)
    return loaded.read(target, np.uint32, count * THREADS * 4).reshape(count, THREADS, 4)


def shapes(geometry: str, count: int) -> list[Shape]:
    """Textures of a geometry: every format and mode comes up over the geometries."""
    rng = np.random.default_rng(GEOMETRIES.index(geometry))
    formats = list(TexelFormat) * 2
    found = []
    for k in range(count):
        modes = rng.choice(list(AddressMode), 3)
        kind = formats[(k + GEOMETRIES.index(geometry)) % len(formats)]
        found.append(
            replace(
                GEOMETRIES_SHAPES[geometry],
                format=kind,
                channels=int(rng.choice([1, 2, 4])),
                address=tuple(AddressMode(int(m)) for m in modes),
                linear=bool(k & 1) or kind.is_float,
                normalized=bool(k & 2),
                as_integer=bool(rng.integers(2)),
                layout=Layout.PITCH if geometry == "2d" and k & 4 else Layout.ARRAY,
            )
        )
    return found


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_fetches_agree(geometry: str, reference: Engine, jit: Engine, arena: Arena) -> None:
    texts = [t for t in FETCHES if geometry_of(t) == geometry]
    loaded = load(fetching(texts), arena, "fetch.ptx")
    try:
        for seed, shape in enumerate(shapes(geometry, 10)):
            rng = np.random.default_rng(seed)
            given = np.concatenate(
                [coordinates(shape, THREADS, rng, integer=i) for i in (False, True)]
            )
            with made(arena, shape, shape.random(rng)) as (number, _):
                want = fetched(reference, loaded, number, given, len(texts))
                got = fetched(jit, loaded, number, given, len(texts))
            wrong = np.argwhere(got != want)
            assert not wrong.size, (shape, texts[wrong[0][0]], wrong[0], given[wrong[0][1]])
            sampled = [t for t in texts if t.startswith(("tex.2dms", "tex.a2dms"))]
            for text in sampled:  # the only sample of a texel is the texel
                texel = want[texts.index(text.replace("ms.", "."))]
                np.testing.assert_array_equal(want[texts.index(text)], texel)
    finally:
        loaded.close()


@pytest.mark.parametrize("geometry", ["1d", "2d", "3d", "a2d"])
def test_offsets_move_by_texels(
    geometry: str, reference: Engine, jit: Engine, arena: Arena
) -> None:
    texts = [t for t in FETCHES if geometry_of(t) == geometry and ".v4.f32" in t]
    text = fetching(texts, ", {1, -2, 3, 0}" if geometry != "1d" else ", -2")
    loaded = load(text, arena, "fetch.ptx")
    try:
        for seed, shape in enumerate(shapes(geometry, 4)):
            rng = np.random.default_rng(seed)
            given = np.concatenate(
                [coordinates(shape, THREADS, rng, integer=i) for i in (False, True)]
            )
            with made(arena, shape, shape.random(rng)) as (number, _):
                want = fetched(reference, loaded, number, given, len(texts))
                got = fetched(jit, loaded, number, given, len(texts))
            np.testing.assert_array_equal(got, want)
    finally:
        loaded.close()


# ------------------------------------------------------------------ the stated rules


def look(
    engine: Engine, arena: Arena, shape: Shape, texels: np.ndarray, text: str, at: list
) -> np.ndarray:
    """First component at each of a few places (tuples of x, y, …)."""
    given = np.zeros((2 * THREADS, 4), np.uint32)
    for thread, place in enumerate(at):
        for d, value in enumerate(place):
            raw = np.float32(value).view(np.uint32)
            given[thread, d + 1] = raw
            given[THREADS + thread, d + 1] = np.int64(value).astype(np.uint32)
    loaded = load(fetching([text]), arena, "fetch.ptx")
    try:
        with made(arena, shape, shape.store(texels)) as (number, _):
            return fetched(engine, loaded, number, given, 1)[0, : len(at)]
    finally:
        loaded.close()


def floats(words: np.ndarray) -> list[float]:
    return [float(w) for w in np.ascontiguousarray(words).view(np.float32).reshape(-1)]


LINE = np.array([10, 20, 30, 40], np.float32)


@pytest.mark.parametrize(
    ("mode", "normalized", "want"),
    [
        (AddressMode.CLAMP, False, [10, 10, 20, 40, 40]),
        (AddressMode.BORDER, False, [7, 10, 20, 40, 7]),
        (AddressMode.WRAP, True, [40, 10, 20, 40, 10]),
        (AddressMode.MIRROR, True, [10, 10, 20, 40, 40]),
        (AddressMode.WRAP, False, [10, 10, 20, 40, 40]),
    ],
)
def test_address_modes(
    mode: AddressMode, normalized: bool, want: list[float], engine: Engine, arena: Arena
) -> None:
    shape = Shape(
        width=4, height=0, channels=1, address=(mode,) * 3, normalized=normalized,
        border=(0x40E00000, 0, 0, 0),
    )  # fmt: skip
    places = [-0.5, 0.25, 1.5, 3.75, 4.5]
    scale = 4 if normalized else 1
    got = look(engine, arena, shape, LINE, "tex.1d.v4.f32.f32", [(p / scale,) for p in places])
    assert floats(got[:, 0]) == want
    assert floats(got[0, 1:]) == ([0, 0, 0] if want[0] == 7 else [0, 0, 1])


def test_a_linear_filter_has_weights_of_256ths(engine: Engine, arena: Arena) -> None:
    """1/4 is a weight exactly; 0.3 becomes 77/256, 0.998 and more become 1."""
    shape = Shape(width=4, height=0, channels=1, linear=True)
    places = [0.5, 0.75, 0.8, 1.499, 3.9, -5.0]
    got = look(engine, arena, shape, LINE, "tex.1d.v4.f32.f32", [(p,) for p in places])
    assert floats(got[:, 0]) == [10, 12.5, 10 + 10 * 77 / 256, 20, 40, 10]


def test_a_plane_is_filtered_in_both_directions(engine: Engine, arena: Arena) -> None:
    texels = np.array([[0, 8], [16, 32]], np.float32)
    shape = Shape(width=2, height=2, channels=1, linear=True, normalized=True)
    got = look(engine, arena, shape, texels, "tex.2d.v4.f32.f32", [(0.5, 0.5), (0.375, 0.25)])
    assert floats(got[:, 0]) == [14, 2]


def test_integers_are_scaled_or_given_as_they_are(engine: Engine, arena: Arena) -> None:
    texels = np.array([0, 255, 51, 128], np.uint8)
    shape = Shape(width=4, height=0, channels=1, format=TexelFormat.U8)
    places = [(k,) for k in range(4)]
    got = look(engine, arena, shape, texels, "tex.1d.v4.f32.s32", places)
    assert floats(got[:, 0]) == [0, 1, float(np.float32(0.2)), float(np.float32(128 / 255))]
    whole = replace(shape, as_integer=True)
    got = look(engine, arena, whole, texels, "tex.1d.v4.u32.s32", places)
    assert got[:, 0].tolist() == texels.tolist()
    signed = replace(shape, format=TexelFormat.S8)
    got = look(engine, arena, signed, texels, "tex.1d.v4.f32.s32", places)
    assert floats(got[:3, 0]) == [0, float(np.float32(-1 / 127)), float(np.float32(51 / 127))]
    assert floats(got[3:, 0]) == [-1]


def test_linear_memory_reads_zero_outside(engine: Engine, arena: Arena) -> None:
    shape = Shape(width=4, height=0, channels=1, layout=Layout.LINEAR)
    got = look(engine, arena, shape, LINE, "tex.1d.v4.f32.s32", [(-1,), (0,), (3,), (4,)])
    assert floats(got[:, 0]) == [0, 10, 40, 0]


def test_a_gather_goes_round_the_footprint(engine: Engine, arena: Arena) -> None:
    texels = np.arange(16, dtype=np.float32)
    shape = Shape(width=4, height=4, channels=1)
    got = look(engine, arena, shape, texels, "tld4.r.2d.v4.f32.f32", [(2.0, 2.0)])
    assert floats(got[0]) == [9, 10, 6, 5]


def test_directions_choose_faces(engine: Engine, arena: Arena) -> None:
    shape = Shape(width=1, height=1, channels=1, is_cube=True)
    axes = [(2, 1, 0), (-2, 0, 1), (0, 2, 1), (1, -2, 0), (0, 1, 2), (1, 0, -2)]
    texels = np.arange(6, dtype=np.float32)
    got = look(engine, arena, shape, texels, "tex.cube.v4.f32.f32", axes)
    assert floats(got[:, 0]) == [0, 1, 2, 3, 4, 5]


# ------------------------------------------------------------------ queries


ANSWERS = {
    "width": 7, "height": 5, "depth": 3, "channel_data_type": 0x20, "channel_order": 2,
    "normalized_coords": 1, "array_size": 9, "num_mipmap_levels": 1, "num_samples": 0,
    "force_unnormalized_coords": 0, "filter_mode": 1, "addr_mode_0": 0, "addr_mode_1": 1,
    "addr_mode_2": 4,
}  # fmt: skip


@pytest.mark.parametrize("text", QUERIES)
def test_queries(text: str, engine: Engine, arena: Arena) -> None:
    level = ", %r30" if ".level." in text else ""
    source = kernel(
        "ask",
        "u64 u64",
        f"{text} %r31, [%d60{level and ']' + level}{'' if level else ']'};\n"
        "add.s64 %d2, %d61, %d0;\nst.global.u32 [%d2], %r31;\nret;",
    )
    shape = Shape(
        depth=3, layers=9, channels=2, normalized=True, linear=True,
        address=(AddressMode.WRAP, AddressMode.MIRROR, AddressMode.BORDER),
    )  # fmt: skip
    loaded = load(source, arena, "ask.ptx")
    try:
        with made(arena, shape, np.zeros(shape.size_bytes, np.uint8)) as (number, _):
            target = loaded.buffer(np.zeros(THREADS, np.uint32))
            loaded.run(engine, "ask", (1,), (THREADS,), pack(number, target))
        got = loaded.read(target, np.uint32, THREADS)
    finally:
        loaded.close()
    name = next(m for m in text.split(".") if m in ANSWERS)
    assert set(got.tolist()) == {ANSWERS[name]}


def test_what_an_object_is(engine: Engine, arena: Arena) -> None:
    lines = [
        f"istypep.{kind}ref %p1, %d{60 + which};\nselp.u32 %r{10 + 3 * which + k}, 1, 0, %p1;"
        for which in range(2)
        for k, kind in enumerate(("tex", "surf", "sampler"))
    ]
    stores = [f"st.global.u32 [%d62+{4 * k}], %r{10 + k};" for k in range(6)]
    loaded = load(kernel("ask", "u64 u64 u64", "\n".join([*lines, *stores, "ret;"])), arena)
    try:
        content = np.zeros(Shape().size_bytes, np.uint8)
        with (
            made(arena, Shape(), content) as (texture, _),
            made(arena, Shape(kind=Kind.SURFACE), content) as (surface, _),
        ):
            target = loaded.buffer(np.zeros(6, np.uint32))
            loaded.run(engine, "ask", (1,), (1,), pack(texture, surface, target))
        assert loaded.read(target, np.uint32, 6).tolist() == [1, 0, 0, 0, 1, 0]
    finally:
        loaded.close()


# ------------------------------------------------------------------ what is wrong


@pytest.fixture
def fetch(arena: Arena) -> Iterator[Callable[[Engine, int], np.ndarray]]:
    """Fetch from an object by number, at the origin."""
    loaded = load(fetching(["tex.2d.v4.f32.f32"]), arena, "fetch.ptx")
    given = np.zeros((THREADS, 4), np.uint32)
    yield lambda engine, number: fetched(engine, loaded, number, given, 1)
    loaded.close()


def test_a_number_that_is_no_object_is_a_fault(fetch, engine: Engine) -> None:
    with pytest.raises(IllegalInstruction, match="0x3039 is no texture object"):
        fetch(engine, 12345)


def test_a_surface_is_no_texture(fetch, engine: Engine, arena: Arena) -> None:
    shape = Shape(kind=Kind.SURFACE)
    with (
        made(arena, shape, np.zeros(shape.size_bytes, np.uint8)) as (number, _),
        pytest.raises(IllegalInstruction, match="object; it is a surface object"),
    ):
        fetch(engine, number)


def test_a_destroyed_object_is_a_fault(fetch, engine: Engine, arena: Arena) -> None:
    shape = Shape()
    with made(arena, shape, np.zeros(shape.size_bytes, np.uint8)) as (number, _):
        fetch(engine, number)
    with pytest.raises(IllegalInstruction, match=f"0x{number:x} is no texture object"):
        fetch(engine, number)


def test_freed_texels_are_a_fault(fetch, engine: Engine, arena: Arena) -> None:
    shape = Shape()
    block = arena.upload(np.zeros(1 << 20, np.uint8))
    arena.free(block)
    base = block + (1 << 19)  # smaller buffers of this test may take the beginning
    number = add_texture(shape.texture(base))
    try:
        with pytest.raises(IllegalAddress) as caught:
            fetch(engine, number)
        assert (caught.value.address, caught.value.size) == (base, 16)
    finally:
        remove_texture(number, Kind.TEXTURE)


@pytest.mark.parametrize(
    ("operands", "what"),
    [
        ("[%d10, %d11, {%r11, %r12}]", "samplers apart"),
        ("[%d10, {%r11, %r12}], %f1", "comparing depths"),
        ("[here, {%r11, %r12}]", "references are not taken"),
    ],
)
def test_what_is_not_taken_is_named(operands: str, what: str, engine: Engine, arena: Arena) -> None:
    text = kernel(
        "fetch", "u64", f"tex.2d.v4.f32.f32 {{%r20, %r21, %r22, %r23}}, {operands};\nret;"
    ).replace(".address_size 64\n", ".address_size 64\n.global .texref here;\n")
    loaded = load(text, arena, "fetch.ptx")
    try:
        with pytest.raises(UnsupportedInstruction, match=what):
            loaded.run(engine, "fetch", (1,), (1,), pack(0))
    finally:
        loaded.close()


def test_the_description_is_the_native_one() -> None:
    assert native_bytes() == ctypes.sizeof(Texture)
    assert find_texture(0) is None


def test_all_fetches_are_tried() -> None:
    assert {geometry_of(t) for t in FETCHES} == set(GEOMETRIES)
    assert all(decode(t).form.family is Family.TEXTURE for t in TEXTS)
