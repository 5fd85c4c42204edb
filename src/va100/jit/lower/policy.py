"""``createpolicy``: 64 bits that PTX leaves opaque and nothing here looks at.

From the top: how the policy was made (4 bits), its priority (4), the share of accesses in
sixteenths less one (4), its second priority (4), and the sizes of a range in units of 256 bytes
(24 each).
"""

from __future__ import annotations

from typing import Final

from va100.jit.context import Context
from va100.jit.emit import Value
from va100.jit.lattice import constant, uniform
from va100.ptx.isa.form import Operation
from va100.ptx.types import PtxType

_CODES: Final = {
    "L2::evict_normal": 0,
    "L2::evict_first": 2,
    "L2::evict_last": 4,
    "L2::evict_unchanged": 6,
}


def lower_policy(c: Context, op: Operation) -> None:
    """Make a policy from a fraction, a range, or an access property's bits."""
    if "cvt" in op.modifiers:
        policy = c.read_sized(c.instruction.operands[1], PtxType.B64)
    elif "range" in op.modifiers:
        policy = _ranged(c, op)
    else:
        policy = _fractional(c, op)
    c.write(c.instruction.operands[0], policy)


def _base(op: Operation, how: int) -> int:
    codes = [_CODES[m] for m in op.sequence if m in _CODES]
    second = codes[1] if len(codes) > 1 else _CODES["L2::evict_unchanged"]
    return how << 60 | codes[0] << 56 | second << 48


def _fractional(c: Context, op: Operation) -> Value:
    base = _base(op, 1)
    if len(c.instruction.operands) == 1:
        return c.constant(constant(64, base | 15 << 52))
    share = c.read_sized(c.instruction.operands[1], PtxType.F32)
    p = c.poly(share)
    kind, suffix = p.floating(32), p.suffix(32, floating=True)
    scaled = p.op(f"fmul {kind} {p.get_float(share)}, {p.float_const(32, 0x41800000)}")
    scaled = p.call(f"llvm.ceil.{suffix}", kind, [(kind, scaled)])
    for name, limit in (("minnum", 0x41800000), ("maxnum", 0x3F800000)):
        bound = p.float_const(32, limit)
        scaled = p.call(f"llvm.{name}.{suffix}", kind, [(kind, scaled), (kind, bound)])
    number = p.op(f"fptoui {kind} {scaled} to {p.integer(64)}")
    number = p.op(f"sub {p.integer(64)} {number}, {p.const(64, 1)}")
    number = p.op(f"shl {p.integer(64)} {number}, {p.const(64, 52)}")
    return p.result(p.op(f"or {p.integer(64)} {number}, {p.const(64, base)}"), uniform(64))


def _ranged(c: Context, op: Operation) -> Value:
    sizes = [c.read_sized(s, PtxType.U32) for s in c.instruction.operands[2:4]]
    p = c.poly(*sizes)
    units = []
    for size in sizes:
        wide = p.op(f"zext {p.integer(32)} {p.get(size)} to {p.integer(64)}")
        units.append(p.op(f"lshr {p.integer(64)} {wide}, {p.const(64, 8)}"))
    first = p.op(f"shl {p.integer(64)} {units[0]}, {p.const(64, 24)}")
    both = p.op(f"or {p.integer(64)} {first}, {units[1]}")
    return p.result(p.op(f"or {p.integer(64)} {both}, {p.const(64, _base(op, 2))}"), uniform(64))
