"""f32 and f64 arithmetic: IEEE operations, directed roundings, the approximate functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from va100.jit.context import Context
from va100.jit.emit import Poly, Value
from va100.jit.flush import flushed
from va100.jit.lattice import uniform
from va100.ptx.isa.form import Operation
from va100.ptx.types import PtxType

Text = Callable[[Poly, int, Sequence[str]], str]
Lower = Callable[[Context, Operation], None]


# ------------------------------------------------------------------ texts


def _add(p: Poly, bits: int, a: Sequence[str]) -> str:
    return p.op(f"fadd {p.floating(bits)} {a[0]}, {a[1]}")


def _sub(p: Poly, bits: int, a: Sequence[str]) -> str:
    return p.op(f"fsub {p.floating(bits)} {a[0]}, {a[1]}")


def _mul(p: Poly, bits: int, a: Sequence[str]) -> str:
    return p.op(f"fmul {p.floating(bits)} {a[0]}, {a[1]}")


def _div(p: Poly, bits: int, a: Sequence[str]) -> str:
    return p.op(f"fdiv {p.floating(bits)} {a[0]}, {a[1]}")


def _fma(p: Poly, bits: int, a: Sequence[str]) -> str:
    kind = p.floating(bits)
    return p.call(f"llvm.fma.{p.suffix(bits, floating=True)}", kind, [(kind, x) for x in a])


def _one(p: Poly, bits: int) -> str:
    return p.float_const(bits, 0x3F800000 if bits == 32 else 0x3FF0000000000000)


def _rcp(p: Poly, bits: int, a: Sequence[str]) -> str:
    return p.op(f"fdiv {p.floating(bits)} {_one(p, bits)}, {a[0]}")


def _sqrt(p: Poly, bits: int, a: Sequence[str]) -> str:
    kind = p.floating(bits)
    return p.call(f"llvm.sqrt.{p.suffix(bits, floating=True)}", kind, [(kind, a[0])])


# ------------------------------------------------------------------ IEEE arithmetic


def _arithmetic(text: Text, name: str) -> Lower:
    """Round to nearest inline; the directed roundings through a native function."""

    def lower(c: Context, op: Operation) -> None:
        sources = [flushed(c, op, c.read_sized(s, op.type)) for s in c.instruction.operands[1:]]
        bits = op.type.bits
        if op.rounding in ("", "rn"):
            p = c.poly(*sources)
            result = p.float_result(
                text(p, bits, [p.get_float(s) for s in sources]), bits, dirty=bits == 32
            )
        else:
            result = c.elementwise(f"va_m_{name}_{op.rounding}_f{bits}", sources, bits)
        c.write(c.instruction.operands[0], _finish(c, op, result))

    return lower


def _finish(c: Context, op: Operation, result: Value) -> Value:
    """Flush and saturate as the modifiers say."""
    result = flushed(c, op, result)
    return saturated(c, result) if op.saturate else result


def saturated(c: Context, value: Value) -> Value:
    """Clamp an f32 or f64 to [0, 1]; NaN and -0 become +0."""
    bits = value.shape.bits
    p = Poly(c, not value.shape.uniform)
    kind = p.floating(bits)
    x, zero, one = p.get_float(value), p.float_const(bits, 0), _one(p, bits)
    positive = p.op(f"fcmp ogt {kind} {x}, {zero}")
    floor = p.op(f"select {p.boolean} {positive}, {kind} {x}, {kind} {zero}")
    large = p.op(f"fcmp ogt {kind} {floor}, {one}")
    clamped = p.op(f"select {p.boolean} {large}, {kind} {one}, {kind} {floor}")
    return p.float_result(clamped, bits)


# ------------------------------------------------------------------ sign and order


def _sign_bit(bits: int) -> int:
    return 1 << (bits - 1)


def _lower_abs(c: Context, op: Operation) -> None:
    _lower_sign(c, op, "and", _sign_bit(op.type.bits) - 1)


def _lower_neg(c: Context, op: Operation) -> None:
    _lower_sign(c, op, "xor", _sign_bit(op.type.bits))


def _lower_sign(c: Context, op: Operation, llvm: str, pattern: int) -> None:
    """Change the sign bit; a NaN keeps its payload."""
    value = flushed(c, op, c.read_sized(c.instruction.operands[1], op.type))
    value = c.clean(value)
    p = Poly(c, not value.shape.uniform)
    bits = op.type.bits
    name = p.op(f"{llvm} {p.integer(bits)} {p.get(value)}, {p.const(bits, pattern)}")
    c.write(c.instruction.operands[0], p.result(name, uniform(bits)))


def _lower_copysign(c: Context, op: Operation) -> None:
    """Sign of the first operand, magnitude of the second."""
    sign, magnitude = (c.clean(c.read_sized(s, op.type)) for s in c.instruction.operands[1:3])
    p = c.poly(sign, magnitude)
    bits = op.type.bits
    kind = p.integer(bits)
    top = p.op(f"and {kind} {p.get(sign)}, {p.const(bits, _sign_bit(bits))}")
    rest = p.op(f"and {kind} {p.get(magnitude)}, {p.const(bits, _sign_bit(bits) - 1)}")
    c.write(c.instruction.operands[0], p.result(p.op(f"or {kind} {top}, {rest}"), uniform(bits)))


def _lower_extremum(c: Context, op: Operation) -> None:
    """``min``/``max``: a lone NaN loses (or, with ``.NaN``, wins); -0 orders below +0."""
    a, b = (flushed(c, op, c.read_sized(s, op.type)) for s in c.instruction.operands[1:3])
    p = c.poly(a, b)
    bits = op.type.bits
    kind, x, y = p.floating(bits), p.get_float(a), p.get_float(b)
    smaller = op.opcode == "min"
    first = p.op(f"fcmp {'olt' if smaller else 'ogt'} {kind} {x}, {y}")
    picked = p.op(f"select {p.boolean} {first}, {kind} {x}, {kind} {y}")
    # Equal values differ in the sign of zero at most: or keeps the minus, and the plus.
    integer = p.integer(bits)
    xi, yi = p.get(a), p.get(b)
    merged = p.op(f"{'or' if smaller else 'and'} {integer} {xi}, {yi}")
    equal = p.op(f"fcmp oeq {kind} {x}, {y}")
    bits_picked = p.op(f"bitcast {kind} {picked} to {integer}")
    value = p.op(f"select {p.boolean} {equal}, {integer} {merged}, {integer} {bits_picked}")
    canonical = p.const(bits, 0x7FFFFFFF if bits == 32 else 0x7FF8000000000000)
    x_nan, y_nan = (p.op(f"fcmp uno {kind} {v}, {v}") for v in (x, y))
    if "NaN" in op.modifiers:
        either = p.op(f"or {p.boolean} {x_nan}, {y_nan}")
        value = p.op(f"select {p.boolean} {either}, {integer} {canonical}, {integer} {value}")
    else:
        value = p.op(f"select {p.boolean} {x_nan}, {integer} {yi}, {integer} {value}")
        value = p.op(f"select {p.boolean} {y_nan}, {integer} {xi}, {integer} {value}")
        both = p.op(f"and {p.boolean} {x_nan}, {y_nan}")
        value = p.op(f"select {p.boolean} {both}, {integer} {canonical}, {integer} {value}")
    c.write(c.instruction.operands[0], p.result(value, uniform(bits)))


def _lower_testp(c: Context, op: Operation) -> None:
    """``testp``: what kind of number it is, by its bits."""
    bits = op.type.bits
    value = c.clean(c.read_sized(c.instruction.operands[1], op.type))
    p = Poly(c, not value.shape.uniform)
    kind = p.integer(bits)
    magnitude = p.op(f"and {kind} {p.get(value)}, {p.const(bits, _sign_bit(bits) - 1)}")
    infinity = 0x7F800000 if bits == 32 else 0x7FF0000000000000
    normal = 0x00800000 if bits == 32 else 0x0010000000000000
    how = op.combine or next(m for m in op.modifiers)
    tests: Mapping[str, tuple[str, int]] = {
        "finite": ("ult", infinity),
        "infinite": ("eq", infinity),
        "number": ("ule", infinity),
        "notanumber": ("ugt", infinity),
    }
    if how in tests:
        condition, limit = tests[how]
        found = p.op(f"icmp {condition} {kind} {magnitude}, {p.const(bits, limit)}")
    elif how == "normal":
        # Zeros count as normal.
        shifted = p.op(f"sub {kind} {magnitude}, {p.const(bits, normal)}")
        ordinary = p.op(f"icmp ult {kind} {shifted}, {p.const(bits, infinity - normal)}")
        zero = p.op(f"icmp eq {kind} {magnitude}, {p.const(bits, 0)}")
        found = p.op(f"or {p.boolean} {ordinary}, {zero}")
    else:
        less = p.op(f"sub {kind} {magnitude}, {p.const(bits, 1)}")
        found = p.op(f"icmp ult {kind} {less}, {p.const(bits, normal - 1)}")
    c.write_predicate(c.instruction.operands[0], p.predicate(found))


# ------------------------------------------------------------------ approximate functions


def _lower_function(c: Context, op: Operation) -> None:
    """One-operand functions whose core is the correctly rounded value."""
    if op.opcode in ("rcp", "sqrt") and op.rounding:
        _arithmetic(_rcp if op.opcode == "rcp" else _sqrt, op.opcode)(c, op)
        return
    value = flushed(c, op, c.read_sized(c.instruction.operands[1], op.type))
    bits = op.type.bits
    turns = "_2pi" if "2pi" in op.modifiers else ""
    helper = f"va_m_{op.opcode}{turns}{'_ftz' if op.ftz else ''}_f{bits}"
    result = c.elementwise(helper, [value], bits)
    c.write(c.instruction.operands[0], _finish(c, op, result))


def _lower_div(c: Context, op: Operation) -> None:
    if not op.approximate:
        _arithmetic(_div, "div")(c, op)
        return
    a, b = (flushed(c, op, c.read_sized(s, op.type)) for s in c.instruction.operands[1:3])
    helper = f"va_m_div_{op.approximate}{'_ftz' if op.ftz else ''}_f32"
    result = c.elementwise(helper, [a, b], 32)
    c.write(c.instruction.operands[0], _finish(c, op, result))


_LOWERINGS: Final[Mapping[str, Lower]] = {
    "add": _arithmetic(_add, "add"),
    "sub": _arithmetic(_sub, "sub"),
    "mul": _arithmetic(_mul, "mul"),
    "fma": _arithmetic(_fma, "fma"),
    "mad": _arithmetic(_fma, "fma"),
    "div": _lower_div,
    "rcp": _lower_function,
    "sqrt": _lower_function,
    "rsqrt": _lower_function,
    "sin": _lower_function,
    "cos": _lower_function,
    "lg2": _lower_function,
    "ex2": _lower_function,
    "tanh": _lower_function,
    "abs": _lower_abs,
    "neg": _lower_neg,
    "min": _lower_extremum,
    "max": _lower_extremum,
    "copysign": _lower_copysign,
    "testp": _lower_testp,
}


def lower_floating(c: Context, op: Operation) -> None:
    """f32 and f64 arithmetic."""
    if op.type not in (PtxType.F32, PtxType.F64):
        raise c.refuse("arithmetic on this type is not executed")
    _LOWERINGS[op.opcode](c, op)
