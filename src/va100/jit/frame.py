"""Where a function that is compiled in chunks keeps everything between its blocks.

One piece of memory a call: the masked world's state, the words of calls, and every register that
outlives a block, once as a scalar where the converged world keeps one, and once as 32 lanes.  The
native core (``native/exec/chunks.cpp``) reads the same layout from :meth:`Frame.facts`.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from va100.jit.analysis import Analysis
from va100.jit.calls import words_of
from va100.jit.lattice import Shape, signed_limits
from va100.ptx import effects
from va100.ptx.program import Variable
from va100.ptx.types import PtxType, Space

ALIVE: Final = 0
RETURNED: Final = 4
BUDGET: Final = 8
AFTER: Final = 12
FIRST_WARP: Final = 16
ARGUMENTS: Final = 24
STACK: Final = 32
WORDS: Final = 64
"""Offsets of what every frame begins with; the ready blocks follow as words of 64 bits."""

_LINE: Final = 64
_SCALAR: Final = 16
_NO_PATTERN: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The layout of one function's frame: offsets in bytes."""

    analysis: Analysis
    pending: int
    """Lanes that wait at each block: 32 bits a block."""
    calls: Mapping[str, int]
    """Words of call parameters."""
    scalars: Mapping[str, int]
    vectors: Mapping[str, int]
    passing: Mapping[str, int]
    """Registers that do not outlive a block: where the masked world keeps them within it.  Blocks
    share the room."""
    size_bytes: int

    def facts(self) -> bytes:
        """What the native core must know, in its own form: see ``Facts`` there."""
        analysis = self.analysis
        names = sorted(n for n in self.scalars if n in self.vectors)
        number = {name: k for k, name in enumerate(names)}
        patterns: dict[tuple[int, ...], int] = {}
        slots = b"".join(self._slot(name, patterns) for name in names)
        live: list[int] = []
        starts = [0]
        for block in analysis.blocks:
            live += sorted(number[n] for n in analysis.live_in[block.index] if n in number)
            starts.append(len(live))
        zeroed = self._undefined()
        count = len(analysis.blocks)
        header = struct.pack(
            "<8I", count, len(names), len(patterns), len(live), len(zeroed), self.pending,
            self.size_bytes, 0,
        )  # fmt: skip
        lanes = b"".join(struct.pack("<32q", *pattern) for pattern in patterns)
        tail = struct.pack(f"<{len(starts)}I", *starts) + struct.pack(f"<{len(live)}I", *live)
        tail += b"".join(struct.pack("<2I", *piece) for piece in zeroed)
        tail += bytes(b.index in analysis.reentry for b in analysis.blocks)
        return header + slots + lanes + tail

    def _slot(self, name: str, patterns: dict[tuple[int, ...], int]) -> bytes:
        """A register that the converged world keeps as a scalar and the masked one does not."""
        places = self.scalars[name], self.vectors[name]
        if name not in self.analysis.shapes:
            return struct.pack("<5Iiqq", *places, 0, 0, _NO_PATTERN, 0, 0, 0)
        shape = self.analysis.shapes[name]
        pattern = _NO_PATTERN
        if shape.offsets and any(shape.offsets):
            signed = tuple(_signed64(o) for o in shape.offsets)
            pattern = patterns.setdefault(signed, len(patterns))
        low, high = _range(shape)
        align = shape.align if 0 < shape.align < shape.bits else 0
        return struct.pack("<5Iiqq", *places, shape.bits, align, pattern, 0, low, high)

    def _undefined(self) -> list[tuple[int, int]]:
        """Places and sizes of registers that may be read before anything is written to them."""
        found = []
        for name in sorted(self.analysis.live_in[0]) if self.analysis.live_in else ():
            if name in self.scalars:
                found.append((self.scalars[name], _SCALAR))
            if name in self.vectors:
                found.append((self.vectors[name], _lanes_bytes(self.analysis, name)))
        return found


def lay_out_frame(
    analysis: Analysis, params: Mapping[str, Variable], *, passing: bool = False
) -> Frame:
    """Give everything that outlives a block its place; ``passing``: all else, too."""
    count = len(analysis.blocks)
    pending = WORDS + 8 * -(-count // 64)
    at = _up(pending + 4 * count, _LINE)
    calls = {}
    for key, variable in params.items():
        if variable.space is Space.PARAM:
            calls[key] = at
            at += 128 * words_of(variable)
    scalars = {}
    for name in sorted(analysis.stored | analysis.invariant):
        kept = _kept_as_scalar(analysis, name)
        if kept:
            scalars[name] = at
            at += _SCALAR
    vectors, at = _side_by_side(
        analysis, sorted(analysis.stored - analysis.invariant), _up(at, _LINE)
    )
    places, at = _lay_out_passing(analysis, at) if passing else ({}, at)
    return Frame(
        analysis=analysis,
        pending=pending,
        calls=calls,
        scalars=scalars,
        vectors=vectors,
        passing=places,
        size_bytes=_up(at, _LINE),
    )


def _lay_out_passing(analysis: Analysis, start: int) -> tuple[dict[str, int], int]:
    """Places of registers that nobody keeps, and where they end; those of several blocks first."""
    kept = analysis.stored | analysis.invariant
    blocks = [
        dict.fromkeys(
            name
            for k in range(b.start, b.end)
            for name in _written(analysis, k)
            if name not in kept
        )
        for b in analysis.blocks
    ]
    uses = Counter(name for names in blocks for name in names)
    shared = [name for name, count in uses.items() if count > 1]
    places, start = _side_by_side(analysis, shared, start)
    end = start
    for names in blocks:
        own, own_end = _side_by_side(analysis, [n for n in names if uses[n] == 1], start)
        places.update(own)
        end = max(end, own_end)
    return places, end


def _side_by_side(analysis: Analysis, names: Iterable[str], at: int) -> tuple[dict[str, int], int]:
    places = {}
    for name in names:
        places[name] = at
        at += _up(_lanes_bytes(analysis, name), _LINE)
    return places, at


def _written(analysis: Analysis, index: int) -> tuple[str, ...]:
    instruction, operation = analysis.flow.instructions[index], analysis.flow.operations[index]
    carry = (effects.CARRY,) if effects.sets_carry(operation) else ()
    return (*effects.writes(instruction, operation), *carry)


def _kept_as_scalar(analysis: Analysis, name: str) -> bool:
    if name in analysis.invariant:
        return True
    if _is_predicate(analysis, name):
        return name in analysis.uniform_predicates
    return not analysis.shapes[name].varying


def _is_predicate(analysis: Analysis, name: str) -> bool:
    return analysis.flow.registers.get(name, PtxType.PRED) is PtxType.PRED


def _lanes_bytes(analysis: Analysis, name: str) -> int:
    return 4 if _is_predicate(analysis, name) else analysis.flow.registers[name].bits * 4


def _range(shape: Shape) -> tuple[int, int]:
    """The interval the converged world counts on, as far as 64 bits tell it."""
    least, most = signed_limits(min(shape.bits, 64))
    return max(shape.low, least), min(shape.high, most)


def _signed64(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _up(value: int, to: int) -> int:
    return -(-value // to) * to
