"""Texture and surface objects over test buffers, and coordinates worth trying."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from va100.gpu.arena import Arena
from va100.gpu.texture import (
    AddressMode,
    Kind,
    Layout,
    TexelFormat,
    Texture,
    add_texture,
    remove_texture,
)

WORDS = (0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7149F2CA, 0xF149F2CA,
         0x00000001, 0x3F800000, 0xBF800000, 0x3F000000, 0x3EFFFFFF, 0x3F7FFFFF)  # fmt: skip
"""Coordinates at the edges: zeros, infinities, NaN, huge, tiny, one and a half."""
NUMBERS = (0, -1, 1, -(1 << 31), (1 << 31) - 1)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a test asks of a texture or surface."""

    width: int = 7
    height: int = 5
    depth: int = 0
    layers: int = 0
    is_cube: bool = False
    format: TexelFormat = TexelFormat.F32
    channels: int = 4
    address: tuple[AddressMode, AddressMode, AddressMode] = (AddressMode.CLAMP,) * 3
    linear: bool = False
    normalized: bool = False
    as_integer: bool = False
    layout: Layout = Layout.ARRAY
    kind: Kind = Kind.TEXTURE
    border: tuple[int, int, int, int] = (0x3F800000, 0x40000000, 0x40400000, 0x40800000)
    pad: int = field(default=32)
    """Bytes between rows."""

    @property
    def texel_bytes(self) -> int:
        return self.channels * self.format.size_bytes

    @property
    def pitch(self) -> int:
        return -(-self.width * self.texel_bytes // 32) * 32 + self.pad

    @property
    def rows(self) -> int:
        return max(self.height, 1)

    @property
    def slices(self) -> int:
        layers = max(self.layers, 1)
        return max(6 * layers if self.is_cube else layers, self.depth)

    @property
    def size_bytes(self) -> int:
        return self.pitch * self.rows * self.slices

    def texture(self, base: int) -> Texture:
        """The description of one that begins at an address."""
        texture = Texture(
            base=base, pitch=self.pitch, slice=self.pitch * self.rows, kind=self.kind,
            layout=self.layout, width=self.width, height=self.height, depth=self.depth,
            layers=self.layers, is_cube=self.is_cube, format=self.format,
            channels=self.channels, linear=self.linear, normalized=self.normalized,
            as_integer=self.as_integer,
        )  # fmt: skip
        texture.address[:] = self.address
        texture.border[:] = self.border
        return texture

    def store(self, texels: np.ndarray) -> np.ndarray:
        """Texels, indexed slice, row, column, channel, as they lie in memory."""
        box = np.zeros((self.slices, self.rows, self.pitch), np.uint8)
        raw = np.ascontiguousarray(texels).view(np.uint8)
        raw = raw.reshape(self.slices, self.rows, self.width * self.texel_bytes)
        box[:, :, : raw.shape[2]] = raw
        return box.reshape(-1)

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Texels of all kinds, as they lie in memory."""
        raw = rng.integers(0, 256, self.size_bytes, dtype=np.uint8)
        if self.format is TexelFormat.F32:
            values = rng.normal(0, 100, self.size_bytes // 4).astype(np.float32).view(np.uint32)
            odd = rng.random(values.size) < 0.05
            return np.where(odd, raw.view(np.uint32), values).view(np.uint8)
        return raw


@contextmanager
def made(arena: Arena, shape: Shape, content: np.ndarray) -> Iterator[tuple[int, int]]:
    """An object over a buffer of its own: its number, and the buffer's address."""
    base = arena.upload(content)
    number = add_texture(shape.texture(base))
    try:
        yield number, base
    finally:
        remove_texture(number, shape.kind)
        arena.free(base)


def coordinates(shape: Shape, count: int, rng: np.random.Generator, *, integer: bool) -> np.ndarray:
    """Words of layer, x, y and z for each thread: shape (count, 4)."""
    words = np.zeros((count, 4), np.uint32)
    words[:, 0] = rng.integers(-2, shape.slices + 3, count).astype(np.int32).view(np.uint32)
    extents = (shape.width, shape.rows, shape.depth or shape.rows)
    for d, extent in enumerate(extents):
        if integer:
            column = rng.integers(-4, extent + 4, count)
            column = np.where(rng.random(count) < 0.1, rng.choice(NUMBERS, count), column)
            words[:, d + 1] = column.astype(np.int32).view(np.uint32)
            continue
        scale = 1 if shape.normalized or shape.is_cube else extent
        column = rng.uniform(-1.5, 2.5, count) * scale
        exact = (np.round(column * 2 * extent / scale) / (2 * extent) * scale).astype(np.float64)
        column = np.where(rng.random(count) < 0.4, exact, column).astype(np.float32)
        odd = rng.choice(np.array(WORDS, np.uint32), count)
        words[:, d + 1] = np.where(rng.random(count) < 0.15, odd, column.view(np.uint32))
    return words
