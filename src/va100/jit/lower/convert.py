"""``cvt`` among integers, f16, bf16, tf32, f32 and f64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from va100.jit.context import Context
from va100.jit.emit import Poly, Value
from va100.jit.flush import flushed
from va100.jit.lattice import uniform
from va100.jit.pure import lower_pure
from va100.ptx.isa.form import Operation
from va100.ptx.types import PtxType

_HALF: Final = (PtxType.F16, PtxType.BF16)
_PACKED: Final = (PtxType.F16X2, PtxType.BF16X2)
_INTEGER_ROUNDINGS: Final = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


def lower_convert(c: Context, op: Operation) -> None:
    """Choose by the kinds of source and destination."""
    target, source = op.types[0], op.types[-1]
    if "pack" in op.modifiers:
        _pack(c, op)
        return
    if not target.is_float and not source.is_float:
        _integer_to_integer(c, op, target, source)
    elif target in _PACKED or target in _HALF or source in _HALF or target is PtxType.TF32:
        _through_helper(c, op, target, source)
    elif not source.is_float:
        _integer_to_float(c, op, target, source)
    elif not target.is_float:
        _float_to_integer(c, op, target, source)
    else:
        _float_to_float(c, op, target, source)


def _pack(c: Context, op: Operation) -> None:
    """``cvt.pack``: two clamped integers side by side, the second one lowest, then ``c``."""
    bits, kind = op.type.bits, PtxType.B32
    low, high = (
        (-(1 << bits - 1), (1 << bits - 1) - 1) if op.type.is_signed else (0, (1 << bits) - 1)
    )

    def text(p: Poly, _: Operation, a: Sequence[str]) -> str:
        integer, keep = p.integer(32), p.const(32, (1 << bits) - 1)
        parts = []
        for given in a[:2]:
            value = given
            for condition, limit in (("slt", low), ("sgt", high)):
                bound = p.const(32, limit)
                beyond = p.op(f"icmp {condition} {integer} {value}, {bound}")
                value = p.op(f"select {p.boolean} {beyond}, {integer} {bound}, {integer} {value}")
            parts.append(p.op(f"and {integer} {value}, {keep}"))
        result = p.op(f"shl {integer} {parts[0]}, {p.const(32, bits)}")
        result = p.op(f"or {integer} {result}, {parts[1]}")
        if len(a) > 2:
            rest = p.op(f"shl {integer} {a[2]}, {p.const(32, 2 * bits)}")
            result = p.op(f"or {integer} {result}, {rest}")
        return result

    lower_pure(c, op, [kind] * (len(c.instruction.operands) - 1), kind, text)


def _integer_to_integer(c: Context, op: Operation, target: PtxType, source: PtxType) -> None:
    if op.saturate:
        _saturating(c, op, target, source)
        return

    def text(p: Poly, _: Operation, a: Sequence[str]) -> str:
        if target.bits == source.bits:
            return p.op(f"add {p.integer(target.bits)} {a[0]}, {p.const(target.bits, 0)}")
        how = "trunc" if target.bits < source.bits else "sext" if source.is_signed else "zext"
        return p.op(f"{how} {p.integer(source.bits)} {a[0]} to {p.integer(target.bits)}")

    register = c.flow.registers[c.instruction.operands[0].name]  # type: ignore[union-attr]
    if register.bits > target.bits:
        _narrow_into_wide(c, op, target, source, register.bits)
        return
    lower_pure(c, op, [source], target, text)


def _narrow_into_wide(
    c: Context, op: Operation, target: PtxType, source: PtxType, bits: int
) -> None:
    """A result narrower than its register is extended by the destination's sign."""
    value = c.resized(
        c.read_sized(c.instruction.operands[1], source), target.bits, signed=source.is_signed
    )
    c.write(c.instruction.operands[0], c.resized(value, bits, signed=target.is_signed))


def _saturating(c: Context, op: Operation, target: PtxType, source: PtxType) -> None:
    """Clamp to the destination's range before narrowing."""
    value = c.clean(c.read_sized(c.instruction.operands[1], source))
    wide = c.resized(value, 64, signed=source.is_signed)
    p = Poly(c, not wide.shape.uniform)
    kind, name = p.integer(64), p.get(wide)
    low = -(1 << (target.bits - 1)) if target.is_signed else 0
    high = (1 << (target.bits - 1)) - 1 if target.is_signed else (1 << target.bits) - 1
    least, most = ("smax", "smin")
    if source is PtxType.U64:
        name = (
            p.call(
                f"llvm.umin.{p.suffix(64)}",
                kind,
                [(kind, name), (kind, p.const(64, min(high, 2**63 - 1)))],
            )
            if high < 2**64 - 1
            else name
        )
    else:
        name = p.call(
            f"llvm.{least}.{p.suffix(64)}", kind, [(kind, name), (kind, p.const(64, low))]
        )
        if high < 2**63 - 1:
            name = p.call(
                f"llvm.{most}.{p.suffix(64)}", kind, [(kind, name), (kind, p.const(64, high))]
            )
    result = c.resized(p.result(name, uniform(64)), target.bits)
    destination = c.flow.registers[c.instruction.operands[0].name].bits  # type: ignore[union-attr]
    c.write(c.instruction.operands[0], c.resized(result, destination, signed=target.is_signed))


def _integer_to_float(c: Context, op: Operation, target: PtxType, source: PtxType) -> None:
    value = c.clean(c.read_sized(c.instruction.operands[1], source))
    exact = source.bits < (32 if target is PtxType.F32 else 64)
    if op.rounding in ("", "rn") or exact:
        p = Poly(c, not value.shape.uniform)
        how = "sitofp" if source.is_signed else "uitofp"
        name = p.op(f"{how} {p.integer(source.bits)} {p.get(value)} to {p.floating(target.bits)}")
        result = p.float_result(name, target.bits)
    else:
        wide = c.resized(value, 64, signed=source.is_signed)
        sign = "s" if source.is_signed else "u"
        result = c.elementwise(
            f"va_m_cvt_{op.rounding}_{target.value}_{sign}64", [wide], target.bits
        )
    if op.saturate:
        result = _clamped(c, result)
    c.write(c.instruction.operands[0], result)


def _float_to_integer(c: Context, op: Operation, target: PtxType, source: PtxType) -> None:
    """Round, then saturate; NaN gives 0, or the top bit from f64 or into 64 bits."""
    value = flushed(c, op, c.read_sized(c.instruction.operands[1], source))
    p = Poly(c, not value.shape.uniform)
    kind, x = p.floating(source.bits), p.get_float(value)
    rounding = _INTEGER_ROUNDINGS[op.rounding]
    if rounding != "trunc":
        x = p.call(f"llvm.{rounding}.{p.suffix(source.bits, floating=True)}", kind, [(kind, x)])
    how = "fptosi" if target.is_signed else "fptoui"
    integer = p.integer(target.bits)
    name = p.call(
        f"llvm.{how}.sat.{p.suffix(target.bits)}.{p.suffix(source.bits, floating=True)}",
        integer,
        [(kind, x)],
    )
    if source is PtxType.F64 or target.bits == 64:
        odd = p.op(f"fcmp uno {kind} {x}, {x}")
        top = p.const(target.bits, 1 << (target.bits - 1))
        name = p.op(f"select {p.boolean} {odd}, {integer} {top}, {integer} {name}")
    result = p.result(name, uniform(target.bits))
    register = c.flow.registers[c.instruction.operands[0].name].bits  # type: ignore[union-attr]
    c.write(c.instruction.operands[0], c.resized(result, register, signed=target.is_signed))


def _float_to_float(c: Context, op: Operation, target: PtxType, source: PtxType) -> None:
    value = flushed(c, op, c.read_sized(c.instruction.operands[1], source))
    if target is source:
        result = _rounded(c, op, value, source)
    elif target is PtxType.F64:
        p = Poly(c, not value.shape.uniform)
        name = p.op(f"fpext {p.floating(32)} {p.get_float(value)} to {p.floating(64)}")
        result = p.float_result(name, 64)
    elif op.rounding in ("", "rn"):
        p = Poly(c, not value.shape.uniform)
        name = p.op(f"fptrunc {p.floating(64)} {p.get_float(value)} to {p.floating(32)}")
        result = p.float_result(name, 32, dirty=True)
    else:
        result = c.elementwise(f"va_m_cvt_{op.rounding}_f32_f64", [value], 32)
    if target is PtxType.F32:
        result = flushed(c, op, result)
    if op.saturate:
        result = _clamped(c, result)
    c.write(c.instruction.operands[0], result)


def _rounded(c: Context, op: Operation, value: Value, kind: PtxType) -> Value:
    """Same type: round to an integral value, or leave as is."""
    if op.rounding not in _INTEGER_ROUNDINGS:
        return value
    p = Poly(c, not value.shape.uniform)
    text = p.floating(kind.bits)
    name = p.call(
        f"llvm.{_INTEGER_ROUNDINGS[op.rounding]}.{p.suffix(kind.bits, floating=True)}",
        text,
        [(text, p.get_float(value))],
    )
    return p.float_result(name, kind.bits, dirty=kind is PtxType.F32)


def _clamped(c: Context, value: Value) -> Value:
    """``.sat``: into [0, 1], NaN to +0."""
    bits = value.shape.bits
    p = Poly(c, not value.shape.uniform)
    kind, x = p.floating(bits), p.get_float(value)
    zero = p.float_const(bits, 0)
    one = p.float_const(bits, 0x3F800000 if bits == 32 else 0x3FF0000000000000)
    positive = p.op(f"fcmp ogt {kind} {x}, {zero}")
    floor = p.op(f"select {p.boolean} {positive}, {kind} {x}, {kind} {zero}")
    large = p.op(f"fcmp ogt {kind} {floor}, {one}")
    return p.float_result(p.op(f"select {p.boolean} {large}, {kind} {one}, {kind} {floor}"), bits)


def _through_helper(c: Context, op: Operation, target: PtxType, source: PtxType) -> None:
    """Conversions with a 16-bit side run through a native function named after the form."""
    sources = c.instruction.operands[1:]
    values = [c.clean(c.read_sized(s, source)) for s in sources]
    name = helper_name(op)
    if name not in c.helpers:
        raise c.refuse("this conversion is not executed")
    bits = target.bits
    result = c.elementwise(name, values, bits)
    register = c.flow.registers[c.instruction.operands[0].name].bits  # type: ignore[union-attr]
    c.write(c.instruction.operands[0], c.resized(result, register, signed=target.is_signed))


def helper_name(op: Operation) -> str:
    """The native function is named after the types and the modifiers that change the result.

    ``.ftz`` does where the source is f32: no f16 is subnormal in f32.  ``.sat`` does where the
    destination is floating point: into integers all conversions saturate.
    """
    target, source = op.types[0], op.types[-1]
    present = {
        "ftz": op.ftz and source is PtxType.F32,
        "sat": "sat" in op.modifiers and target.is_float,
        "relu": "relu" in op.modifiers,
        "satfinite": "satfinite" in op.modifiers,
    }
    parts = [
        "va_m_cvt",
        target.value,
        source.value,
        op.rounding,
        *(m for m in present if present[m]),
    ]
    return "_".join(part for part in parts if part)
