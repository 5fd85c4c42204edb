"""Texture fetches, gathers and queries: a sampler lane by lane, in Python's doubles.

The programming guide states how coordinates choose texels, the address modes, and that weights of
the linear filter are fixed point with 8 bits of fraction.  Where it is silent, the choices are
those told in ``docs/textures.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np

from va100.gpu.texture import AddressMode, Kind, Layout, TexelFormat, Texture, find_texture
from va100.ptx.program import Vector
from va100.ptx.texture import Place, place_of, queried
from va100.ptx.types import PtxType, Space
from va100.reference import lanes
from va100.reference.issue import Issue
from va100.reference.lanes import Lanes

OUTSIDE: Final = -1
"""Stands for a texel that is not there."""
_FACES: Final = 6
_NAN32: Final = 0x7FFFFFFF
_NAN16: Final = 0x7FFF
_ONE32: Final = 0x3F800000
_STEPS: Final = 256
"""Steps of a filter's weight."""
_ORDER: Final = {"r": 0, "g": 1, "b": 2, "a": 3}
_PTX_MODES: Final = {
    AddressMode.WRAP: 0, AddressMode.MIRROR: 1, AddressMode.CLAMP: 3, AddressMode.BORDER: 4,
}  # fmt: skip


def evaluate_fetch(issue: Issue) -> None:
    """``tex`` and ``tld4``."""
    operation, operands = issue.step.operation, issue.step.operands
    place = place_of(operation, operands)
    numbers = issue.read(place.object, PtxType.B64)
    integer = operation.types[-1] is PtxType.S32
    x = [issue.read(c, PtxType.B32) for c in place.coordinates]
    layers = issue.read(place.layer, PtxType.U32) if place.layer is not None else lanes.LANE * 0
    offsets = [lanes.signed(issue.read(o, PtxType.B32)) for o in place.offsets]
    channel = None
    if operation.opcode == "tld4":
        channel = next(n for name, n in _ORDER.items() if name in operation.modifiers)
    half = operation.type is PtxType.F16X2
    result = np.zeros((2 if half else 4, 32), np.uint32)
    for lane in lanes.lanes_of(issue.bits):
        sampler = Sampler(issue, lane, object_of(issue, lane, int(numbers[lane]), Kind.TEXTURE))
        coordinates = [_coordinate(c[lane], integer=integer) for c in x]
        spot = spot_of(sampler.texture, place, coordinates, int(layers[lane]), integer=integer)
        moved = [float(o[lane]) for o in offsets] or [0.0] * place.dimensions
        texel = sampler.sample(spot, moved, channel, integer=integer)
        result[:, lane] = _halves(sampler.texture, texel) if half else texel
    destination = operands[0]
    assert isinstance(destination, Vector)
    for element, value in zip(destination.elements, result, strict=False):
        issue.write(element, value)


def _coordinate(bits: Any, *, integer: bool) -> float:
    word = np.uint32(bits)
    return float(word.view(np.int32)) if integer else float(word.view(np.float32))


def object_of(issue: Issue, lane: int, number: int, kind: Kind) -> Texture:
    """What a lane's number stands for; faults when it is of no use."""
    found = find_texture(number)
    if found is not None and found.kind & kind:
        return found
    other = f"; it is a {Kind(found.kind).name.lower()} object" if found is not None else ""
    raise issue.broken(f"0x{number:x} is no {kind.name.lower()} object{other}", lane)


# ---------------------------------------------------------------- where to look


class Spot(NamedTuple):
    """Coordinates in texels, each dimension's extent and address mode, and the slice."""

    at: tuple[float, ...]
    extents: tuple[int, ...]
    modes: tuple[int, ...]
    slice: int


def spot_of(
    texture: Texture, place: Place, given: Sequence[float], layer: int, *, integer: bool
) -> Spot:
    """Where a lane looks."""
    count = place.dimensions
    extents = tuple(max(e, 1) for e in (texture.width, texture.height, texture.depth)[:count])
    modes = tuple(texture.address[:count])
    normalized = bool(texture.normalized) and not integer
    slice_index = 0
    if place.geometry in ("cube", "acube"):
        face, given = face_of(given)
        normalized, modes = True, (int(AddressMode.CLAMP),) * 2
        cube = min(layer, max(texture.layers, 1) - 1)
        slice_index = min(face + _FACES * cube, slices_of(texture) - 1)
    elif place.layer is not None:
        slice_index = min(layer, slices_of(texture) - 1)
    at = tuple(c * e if normalized else c for c, e in zip(given, extents, strict=False))
    return Spot(at, extents, modes, slice_index)


def slices_of(texture: Texture) -> int:
    """Layers and faces."""
    layers = max(texture.layers, 1)
    return int(_FACES * layers if texture.is_cube else layers)


def face_of(direction: Sequence[float]) -> tuple[int, tuple[float, float]]:
    """The face of a cube that a direction meets, and where on it, from 0 to 1."""
    x, y, z = direction
    ax, ay, az = abs(x), abs(y), abs(z)
    if az >= ax and az >= ay:
        face, s, t, m = (5, -x, -y, az) if z < 0 else (4, x, -y, az)
    elif ay >= ax:
        face, s, t, m = (3, x, -z, ay) if y < 0 else (2, x, z, ay)
    else:
        face, s, t, m = (1, z, -y, ax) if x < 0 else (0, -z, -y, ax)
    return face, tuple((_ratio(v, m) + 1) / 2 for v in (s, t))  # type: ignore[return-value]


def _ratio(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


def placed(texture: Texture, i: float, extent: int, mode: int) -> int:
    """The number of a texel that exists, or :data:`OUTSIDE`."""
    if 0 <= i < extent:
        return int(i)
    if mode == AddressMode.BORDER or texture.layout == Layout.LINEAR:
        return OUTSIDE
    if texture.normalized and mode == AddressMode.WRAP:
        return int(i) % extent if math.isfinite(i) else 0
    if texture.normalized and mode == AddressMode.MIRROR:
        r = int(i) % (2 * extent) if math.isfinite(i) else 0
        return r if r < extent else 2 * extent - 1 - r
    return extent - 1 if i >= extent else 0


class Axis(NamedTuple):
    """One or two texels of a dimension, and the weight of the second in 256ths."""

    first: int
    second: int = 0
    weight: float = 0.0


def _floor(value: float) -> float:
    return float(math.floor(value)) if math.isfinite(value) else value


def axis_of(texture: Texture, spot: Spot, d: int, offset: float, *, pair: bool) -> Axis:
    """What a dimension contributes."""
    c, extent, mode = spot.at[d], spot.extents[d], spot.modes[d]
    if math.isnan(c):
        c = 0.0
    shifted = c - 0.5 if pair else c
    whole = _floor(shifted)
    first = placed(texture, whole + offset, extent, mode)
    if not pair:
        return Axis(first)
    rest = shifted - whole
    weight = 0.0 if math.isnan(rest) else math.floor(rest * _STEPS + 0.5)
    return Axis(first, placed(texture, whole + offset + 1, extent, mode), float(weight))


# ---------------------------------------------------------------- texels


class Sampler:
    """A lane at a texture."""

    def __init__(self, issue: Issue, lane: int, texture: Texture) -> None:
        self.issue = issue
        self.lane = lane
        self.texture = texture
        self.format = TexelFormat(texture.format)

    @property
    def gives_floats(self) -> bool:
        """Whether texels read as floating-point numbers."""
        return gives_floats(self.texture)

    def sample(
        self, spot: Spot, offsets: Sequence[float], channel: int | None, *, integer: bool
    ) -> list[int]:
        """Four words: a texel, a filtered one, or one channel of four."""
        texture = self.texture
        linear = bool(texture.linear) and self.gives_floats and not integer
        linear = linear and texture.layout != Layout.LINEAR
        pair = linear or channel is not None
        axes = [axis_of(texture, spot, d, o, pair=pair) for d, o in enumerate(offsets)]
        if channel is not None:
            (left, right, _), (upper, lower, _) = axes
            corners = ((left, lower), (right, lower), (right, upper), (left, upper))
            return [self.texel(corner, spot.slice)[channel] for corner in corners]
        if linear:
            return self.filtered(axes, spot.slice)
        return self.texel([axis.first for axis in axes], spot.slice)

    def filtered(self, axes: Sequence[Axis], slice_index: int) -> list[int]:
        """The weighted sum, in double, rounded once."""
        sums = np.zeros(4)
        for corner in range(1 << len(axes)):
            at, weight = [], 1.0
            for d, axis in enumerate(axes):
                second = corner >> d & 1
                at.append(axis.second if second else axis.first)
                weight *= (axis.weight if second else _STEPS - axis.weight) / _STEPS
            values = np.array(self.texel(at, slice_index), np.uint32).view(np.float32)
            sums = sums + np.float64(weight) * values.astype(np.float64)
        words = sums.astype(np.float32).view(np.uint32)
        return [_NAN32 if math.isnan(s) else int(w) for s, w in zip(sums, words, strict=True)]

    def texel(self, at: Sequence[int], slice_index: int) -> list[int]:
        """Four words, the border's outside."""
        texture = self.texture
        if OUTSIDE in at:
            return [0] * 4 if texture.layout == Layout.LINEAR else list(texture.border)
        i, j = at[0], at[1] if len(at) > 1 else 0
        k = at[2] if len(at) > 2 else slice_index
        size = self.format.size_bytes
        address = texture.base + k * texture.slice + j * texture.pitch
        address += i * size * texture.channels
        storage = self.issue.warp.cta.launch.storage
        if not storage.arena.accessible(address, 1):
            self.issue.illegal(self.lane, address, Space.GLOBAL, size * texture.channels)
        where = np.uint64(address) + np.arange(texture.channels, dtype=np.uint64) * np.uint64(size)
        raw = storage.gather(where, size)
        missing = [0, 0, 0, _ONE32 if self.gives_floats else 1]
        return [*(self._channel(v) for v in raw), *missing[texture.channels :]]

    def _channel(self, raw: Any) -> int:
        kind = self.format
        if kind is TexelFormat.F16:
            value = raw.view(np.float16)
            return _NAN32 if np.isnan(value) else _word(np.float32(value))
        if kind.size_bytes == 4:
            return int(raw)
        number = int(lanes.signed(np.array([raw]))[0]) if kind.is_signed else int(raw)
        if self.texture.as_integer:
            return number & 0xFFFFFFFF
        most = (1 << 8 * kind.size_bytes - kind.is_signed) - 1
        return _word(np.float32(max(number / most, -1.0)))


def gives_floats(texture: Texture) -> bool:
    """Whether texels read as floating-point numbers."""
    kind = TexelFormat(texture.format)
    return kind.is_float or (not texture.as_integer and kind.size_bytes < 4)


def _word(value: np.float32) -> int:
    return int(value.view(np.uint32))


def _halves(texture: Texture, texel: Sequence[int]) -> list[int]:
    parts = [_half(w) if gives_floats(texture) else w & 0xFFFF for w in texel]
    return [parts[0] | parts[1] << 16, parts[2] | parts[3] << 16]


def _half(word: int) -> int:
    value = np.uint32(word).view(np.float32)
    return _NAN16 if np.isnan(value) else int(np.float16(value).view(np.uint16))


# ---------------------------------------------------------------- queries


def evaluate_query(issue: Issue) -> None:
    """``txq`` and ``suq``."""
    operation = issue.step.operation
    kind = Kind.TEXTURE if operation.opcode == "txq" else Kind.SURFACE
    numbers = issue.read(queried(issue.step.operands), PtxType.B64)
    query = next(QUERIES[m] for m in operation.sequence if m in QUERIES)
    result = np.zeros(32, np.uint32)
    for lane in lanes.lanes_of(issue.bits):
        result[lane] = query(object_of(issue, lane, int(numbers[lane]), kind))
    issue.write(issue.step.operands[0], result)


def evaluate_type(issue: Issue) -> None:
    """``istypep``."""
    names = {"texref": Kind.TEXTURE, "surfref": Kind.SURFACE, "samplerref": None}
    wanted = next(names[t.value] for t in issue.step.operation.types)
    numbers: Lanes = issue.read(queried(issue.step.operands), PtxType.B64)
    found = [find_texture(int(n)) for n in numbers]
    is_it = [t is not None and wanted is not None and t.kind == wanted for t in found]
    issue.write(issue.step.operands[0], np.array(is_it))


def _address_mode(d: int, texture: Texture) -> int:
    return _PTX_MODES[AddressMode(texture.address[d])]


def _memory_layout(texture: Texture) -> int:
    return int(texture.layout != Layout.ARRAY)


def _levels(texture: Texture) -> int:
    return int(texture.kind == Kind.TEXTURE)


def _never(texture: Texture) -> int:
    del texture
    return 0


QUERIES: Final[Mapping[str, Callable[[Texture], int]]] = {
    "width": attrgetter("width"),
    "height": attrgetter("height"),
    "depth": attrgetter("depth"),
    "channel_data_type": attrgetter("format"),
    "channel_order": attrgetter("channels"),
    "normalized_coords": attrgetter("normalized"),
    "array_size": attrgetter("layers"),
    "num_mipmap_levels": _levels,
    "num_samples": _never,
    "force_unnormalized_coords": _never,
    "filter_mode": attrgetter("linear"),
    "addr_mode_0": partial(_address_mode, 0),
    "addr_mode_1": partial(_address_mode, 1),
    "addr_mode_2": partial(_address_mode, 2),
    "memory_layout": _memory_layout,
}
"""Name of a query to what answers it."""
