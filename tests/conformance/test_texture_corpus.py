"""Texture kernels that a compiler wrote, against what NumPy makes of the same texels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.engines import Loaded, load, pack
from tests.helpers.textures import Shape, made
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.gpu.texture import Kind, Layout, TexelFormat

WIDTH, HEIGHT = 40, 24


@pytest.fixture
def corpus(shared: Callable[[str], Path], arena: Arena) -> Iterator[Loaded]:
    path = shared("data/ptx/12_textures.ptx")
    loaded = load(path.read_text(encoding="utf-8"), arena, path.name)
    yield loaded
    loaded.close()


@pytest.mark.parametrize("linear", [False, True])
def test_an_image_read_at_other_places(
    linear: bool, corpus: Loaded, engine: Engine, arena: Arena
) -> None:
    image = np.random.default_rng(5).normal(0, 10, (9, 13)).astype(np.float32)
    shape = Shape(width=13, height=9, channels=1, linear=linear, normalized=True)
    x = ((np.arange(WIDTH) + np.float32(0.5)).astype(np.float32) / np.float32(WIDTH)) * 13.0
    y = ((np.arange(HEIGHT) + np.float32(0.5)).astype(np.float32) / np.float32(HEIGHT)) * 9.0
    if linear:
        (i, a), (j, b) = (np.divmod(c - 0.5, 1) for c in (x, y))
        a, b = (np.floor(w * 256 + 0.5) / 256 for w in (a, b))
        columns = [np.clip(i + k, 0, 12).astype(int) for k in (0, 1)]
        rows = [np.clip(j + k, 0, 8).astype(int)[:, None] for k in (0, 1)]
        want = sum(
            (b if k else 1 - b)[:, None] * (a if n else 1 - a) * image[rows[k], columns[n]]
            for k in (0, 1)
            for n in (0, 1)
        ).astype(np.float32)
    else:
        want = image[np.floor(y).astype(int)[:, None], np.floor(x).astype(int)]
    with made(arena, shape, shape.store(image)) as (number, _):
        out = corpus.buffer(np.zeros(WIDTH * HEIGHT, np.float32))
        params = pack(number, out, np.uint32(WIDTH), np.uint32(HEIGHT))
        corpus.run(engine, "tex2d", (3, 2), (16, 16), params)
        got = corpus.read(out, np.float32, WIDTH * HEIGHT).reshape(HEIGHT, WIDTH)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_linear_memory(corpus: Loaded, engine: Engine, arena: Arena) -> None:
    texels = np.random.default_rng(1).normal(size=(30, 4)).astype(np.float32)
    shape = Shape(width=30, height=0, layout=Layout.LINEAR)
    with made(arena, shape, shape.store(texels)) as (number, _):
        out = corpus.buffer(np.full(128, 9, np.float32))
        corpus.run(engine, "tex1dfetch", (1,), (32,), pack(number, out))
        got = corpus.read(out, np.float32, 128).reshape(32, 4)
    np.testing.assert_array_equal(got, np.concatenate([texels, np.zeros((2, 4), np.float32)]))


def test_a_gather(corpus: Loaded, engine: Engine, arena: Arena) -> None:
    """At (0.1, 0.2) of ten by ten: between columns 0 and 1, rows 1 and 2."""
    image = np.arange(100, dtype=np.float32).reshape(10, 10)
    shape = Shape(width=10, height=10, channels=1, normalized=True)
    with made(arena, shape, shape.store(image)) as (number, _):
        out = corpus.buffer(np.zeros(4, np.float32))
        corpus.run(engine, "tex_gather", (1,), (1,), pack(number, out))
        assert corpus.read(out, np.float32, 4).tolist() == [20, 21, 11, 10]


def test_every_geometry_of_one_color(corpus: Loaded, engine: Engine, arena: Arena) -> None:
    """The kernel uses one object in four ways, of which a texture of one color hides three."""
    shape = Shape(width=4, height=4, channels=1, normalized=True, linear=True)
    texels = np.full(16, 2.5, np.float32)
    with made(arena, shape, shape.store(texels)) as (number, _):
        out = corpus.buffer(np.zeros(32, np.float32))
        corpus.run(engine, "tex3d_lod", (1,), (32,), pack(number, out))
        assert set(corpus.read(out, np.float32, 32).tolist()) == {10.0}


def test_a_surface(corpus: Loaded, engine: Engine, arena: Arena) -> None:
    """Each thread copies 16 bytes from row 0 to row 1, over the byte it wrote there before."""
    shape = Shape(width=512, height=2, channels=1, format=TexelFormat.U8, kind=Kind.SURFACE)
    texels = np.random.default_rng(2).integers(0, 256, (2, 512), dtype=np.uint8)
    want = texels.copy()
    want[1] = texels[0]
    with made(arena, shape, shape.store(texels)) as (number, base):
        corpus.run(engine, "surf", (1,), (32,), pack(number, np.uint32(512)))
        rows = np.frombuffer(arena.download(base, shape.size_bytes), np.uint8)
    np.testing.assert_array_equal(rows.reshape(2, shape.pitch)[:, :512], want)
