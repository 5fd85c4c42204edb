"""What an instruction's result looks like, given its operands' shapes.

The abstract half of every lowering: the fixpoint in :mod:`va100.jit.analysis` and the emission
in :mod:`va100.jit.lower` both ask here, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from va100.jit import lattice
from va100.jit.lattice import Shape, affine, constant, uniform, varying
from va100.ptx.isa.form import Operation
from va100.ptx.isa.special import SPECIAL_REGISTERS
from va100.work import WARP_SIZE, Dim3

Transfer = Callable[[Operation, Sequence[Shape]], Shape]


def result_shape(operation: Operation, operands: Sequence[Shape], bits: int) -> Shape:
    """Shape of a pure instruction's destination of ``bits`` bits."""
    rule = _RULES.get(operation.opcode)
    if rule is not None and not _is_float(operation):
        return _as_width(rule(operation, operands), bits)
    return uniform(bits) if all(s.uniform for s in operands) else varying(bits)


def needs_guard(operation: Operation, operands: Sequence[Shape]) -> bool:
    """Whether the affine result holds only if a 32-bit sum does not wrap."""
    source = operation.types[-1]
    return any(
        not lattice.extension_is_exact(
            lattice.resize(operands[i], min(operands[i].bits, source.bits), signed=False),
            signed=source.is_signed,
        )
        for i in _extended(operation)
    )


def _extended(operation: Operation) -> tuple[int, ...]:
    """Operands whose extension to a wider type must not wrap for the result to be affine."""
    if _is_float(operation):
        return ()
    if operation.opcode in ("mul", "mad") and "wide" in operation.modifiers:
        return (0, 1)
    if operation.opcode == "cvt":
        target, source = operation.types[0], operation.types[-1]
        return (0,) if target.bits > source.bits else ()
    return ()


def _is_float(operation: Operation) -> bool:
    return any(t.is_float for t in operation.types)


def _as_width(shape: Shape, bits: int) -> Shape:
    return shape if shape.bits == bits else lattice.resize(shape, bits, signed=False)


def _move(_: Operation, s: Sequence[Shape]) -> Shape:
    return s[0]


def _add(operation: Operation, s: Sequence[Shape]) -> Shape:
    return _pointwise(operation, s) if operation.saturate else lattice.add(s[0], s[1])


def _sub(operation: Operation, s: Sequence[Shape]) -> Shape:
    return _pointwise(operation, s) if operation.saturate else lattice.add(s[0], s[1], -1)


def _neg(_: Operation, s: Sequence[Shape]) -> Shape:
    return lattice.add(constant(s[0].bits, 0), s[0], -1)


def _product(operation: Operation, s: Sequence[Shape]) -> Shape:
    if "wide" in operation.modifiers:
        # The fixpoint makes a literal as wide as the result: it has the width of a factor.
        narrow, signed = operation.type.bits, operation.type.is_signed
        a, b = (lattice.resize(_as_width(x, narrow), 2 * narrow, signed=signed) for x in s[:2])
        return lattice.mul(a, b)
    if "hi" in operation.modifiers:
        return _pointwise(operation, s[:2])
    return lattice.mul(s[0], s[1])


def _mad(operation: Operation, s: Sequence[Shape]) -> Shape:
    if "hi" in operation.modifiers or operation.saturate:
        return _pointwise(operation, s)
    return lattice.add(_product(operation, s[:2]), s[2])


def _shl(_: Operation, s: Sequence[Shape]) -> Shape:
    return lattice.shift_left(s[0], s[1])


def _shr(operation: Operation, s: Sequence[Shape]) -> Shape:
    return lattice.shift_right(s[0], s[1], signed=operation.type.is_signed)


def _and(_: Operation, s: Sequence[Shape]) -> Shape:
    return lattice.bit_and(s[0], s[1])


def _or(_: Operation, s: Sequence[Shape]) -> Shape:
    return lattice.bit_or(s[0], s[1])


def _xor(_: Operation, s: Sequence[Shape]) -> Shape:
    return lattice.bit_or(s[0], s[1], exclusive=True)


def _divide(_: Operation, s: Sequence[Shape]) -> Shape:
    return lattice.divide(s[0], s[1], remainder=False)


def _remainder(_: Operation, s: Sequence[Shape]) -> Shape:
    return lattice.divide(s[0], s[1], remainder=True)


def _convert(operation: Operation, s: Sequence[Shape]) -> Shape:
    target, source = operation.types[0], operation.types[-1]
    if operation.saturate:
        return _pointwise(operation, s)
    value = s[0]
    if value.bits > source.bits:
        value = lattice.resize(value, source.bits, signed=source.is_signed)
    return lattice.resize(value, target.bits, signed=source.is_signed)


def _cvta(_: Operation, s: Sequence[Shape]) -> Shape:
    return s[0] if s[0].offsets else uniform(s[0].bits) if s[0].uniform else s[0]


def _pointwise(operation: Operation, s: Sequence[Shape]) -> Shape:
    bits = operation.type.bits
    return uniform(bits) if all(x.uniform for x in s) else varying(bits)


_RULES: Final[Mapping[str, Transfer]] = {
    "mov": _move,
    "add": _add,
    "sub": _sub,
    "neg": _neg,
    "mul": _product,
    "mad": _mad,
    "shl": _shl,
    "shr": _shr,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "div": _divide,
    "rem": _remainder,
    "cvt": _convert,
    "cvta": _cvta,
}


# ------------------------------------------------------------------ special registers


def special_shape(name: str, block: Dim3) -> Shape | None:
    """Shape of a special register for a block shape; ``None`` when it is no known register."""
    if name in _UNIFORM_SPECIALS:
        return uniform(_UNIFORM_SPECIALS[name])
    if name.startswith(_UNSET) or name in ("%tid.w", "%ctaid.w"):
        return constant(SPECIAL_REGISTERS[name].bits, 0)
    if name in ("%ntid.w", "%nctaid.w"):
        return constant(32, 1)
    if name.startswith("%tid"):
        return _thread_index(name.rpartition(".")[2], block)
    if name.startswith("%ntid"):
        return constant(32, getattr(block, name.rpartition(".")[2]))
    if name.startswith("%ctaid"):
        return _cta_index(name.rpartition(".")[2], block)
    if name.startswith("%nctaid"):
        return uniform(32, 1, 2**31 - 1)
    if name == "%laneid":
        return affine(32, tuple(range(WARP_SIZE)), 0, 0, lattice.MAX_ALIGN)
    if name in LANE_MASKS:
        return affine(32, tuple(LANE_MASKS[name](lane) for lane in range(WARP_SIZE)), 0, 0)
    return None


_UNIFORM_SPECIALS: Final[Mapping[str, int]] = {
    "%warpid": 32,
    "%nwarpid": 32,
    "%smid": 32,
    "%nsmid": 32,
    "%gridid": 64,
    "%clock": 32,
    "%clock_hi": 32,
    "%clock64": 64,
    "%globaltimer": 64,
    "%globaltimer_lo": 32,
    "%globaltimer_hi": 32,
    "%dynamic_smem_size": 32,
    "%total_smem_size": 32,
    "%reserved_smem_offset_begin": 32,
    "%reserved_smem_offset_0": 32,
    "%reserved_smem_offset_1": 32,
    "%reserved_smem_offset_end": 32,
    "%reserved_smem_offset_cap": 32,
    "%envreg1": 32,
    "%envreg2": 32,
}


_UNSET: Final = ("%pm", "%envreg", "%current_graph_exec")
"""Beginnings of the names that read as zero: nothing sets them."""


def _lanes_equal(lane: int) -> int:
    return 1 << lane


def _lanes_below(lane: int) -> int:
    return (1 << lane) - 1


def _lanes_up_to(lane: int) -> int:
    return (2 << lane) - 1


def _lanes_above(lane: int) -> int:
    return 0xFFFFFFFF & ~((2 << lane) - 1)


def _lanes_from(lane: int) -> int:
    return 0xFFFFFFFF & ~((1 << lane) - 1)


LANE_MASKS: Final[Mapping[str, Callable[[int], int]]] = {
    "%lanemask_eq": _lanes_equal,
    "%lanemask_lt": _lanes_below,
    "%lanemask_le": _lanes_up_to,
    "%lanemask_gt": _lanes_above,
    "%lanemask_ge": _lanes_from,
}


def _thread_index(axis: str, block: Dim3) -> Shape:
    """``%tid`` of a linear block index ``warp * 32 + lane``."""
    extent = getattr(block, axis)
    if extent == 1:
        return constant(32, 0)
    plane = {"x": 1, "y": block.x, "z": block.x * block.y}[axis]
    if axis == "x" and block.y == 1 and block.z == 1:
        return affine(32, tuple(range(32)), 0, (block.x - 1) // 32 * 32, 5)
    if plane % 32 == 0:
        return uniform(32, 0, extent - 1)
    if axis == "x" and block.x % 32 == 0:
        return affine(32, tuple(range(32)), 0, block.x - 32, 5)
    if axis == "x" and 32 % block.x == 0:
        return affine(32, tuple(i % block.x for i in range(32)), 0, 0, lattice.MAX_ALIGN)
    if 32 % plane == 0 and extent % (32 // plane) == 0:
        rows = 32 // plane
        return affine(
            32, tuple(i // plane for i in range(32)), 0, extent - rows, rows.bit_length() - 1
        )
    if 32 % plane == 0 and (32 // plane) % extent == 0:
        offsets = tuple(i // plane % extent for i in range(32))
        return affine(32, offsets, 0, 0, lattice.MAX_ALIGN)
    return varying(32)


def _cta_index(axis: str, block: Dim3) -> Shape:
    """Bounded so that ``ctaid * ntid`` stays in 31 bits; launches beyond are specialised apart."""
    most = (2**31 - 1) // getattr(block, axis) - 1 if axis == "x" else 65534
    return uniform(32, 0, most)
