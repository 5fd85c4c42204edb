"""What single instructions give, in Python integers and rationals.

Written from the PTX ISA document, one lane at a time, and sharing nothing with the library.
``None`` means this oracle has no opinion: approximate functions, NaN payloads PTX leaves open.
"""

from __future__ import annotations

import math
import operator
from fractions import Fraction

from tests.helpers import rationals as q
from tests.helpers.builders import Signature
from va100.ptx.isa.form import Operation
from va100.ptx.types import PtxType

CANONICAL = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}
F64_NAN = 0x7FF8000000000000


def expected(signature: Signature, values: list[int]) -> list[int | None] | None:
    """Results of one lane, or ``None`` when the oracle has no opinion."""
    operation = signature.operation
    function = ORACLES.get((operation.form.family.value, operation.opcode))
    if function is None or "cc" in operation.modifiers:
        return None
    # Odd predicate operands are written negated by the builder.
    values = [
        v ^ 1 if kind == "pred" and slot % 2 else v
        for slot, (v, kind) in enumerate(zip(values, signature.sources, strict=True))
    ]
    if signature.immediate is not None:
        values = [*values[:3], signature.immediate, *values[3:]]
    results = function(operation, *values)
    if results is None or isinstance(results, int):
        results = [results]
    return results[: len(signature.results)]


def _bits(operation: Operation) -> int:
    return operation.type.bits


def _cut(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def _sign(value: int, bits: int) -> int:
    value = _cut(value, bits)
    return value - (1 << bits) if value >> (bits - 1) else value


def _typed(kind: PtxType, value: int) -> int:
    return _sign(value, kind.bits) if kind.is_signed else _cut(value, kind.bits)


def _clamp32(value: int) -> int:
    return min(max(value, -(1 << 31)), (1 << 31) - 1)


# ---------------------------------------------------------------- integers


def _clmad(op: Operation, a: int, b: int, c: int) -> int:
    product = 0
    while b:
        product ^= a * (b & -b)
        b &= b - 1
    return c ^ _cut(product >> 64 if "hi" in op.modifiers else product, 64)


def _arithmetic(op: Operation, a: int, b: int) -> int:
    x, y = _typed(op.type, a), _typed(op.type, b)
    total = x + y if op.opcode == "add" else x - y
    return _cut(_clamp32(total) if op.saturate else total, _bits(op))


def _product(op: Operation, a: int, b: int) -> int:
    x, y = _typed(op.type, a), _typed(op.type, b)
    if "wide" in op.modifiers:
        return _cut(x * y, 2 * _bits(op))
    return _cut(x * y >> (_bits(op) if "hi" in op.modifiers else 0), _bits(op))


def _mad(op: Operation, a: int, b: int, c: int) -> int:
    product = _product(op, a, b)
    if op.saturate:
        return _cut(_clamp32(_sign(product, 32) + _sign(c, 32)), 32)
    return _cut(product + c, _bits(op) * (2 if "wide" in op.modifiers else 1))


def _mul24(op: Operation, a: int, b: int) -> int:
    x, y = ((_sign(v, 24) if op.type.is_signed else _cut(v, 24)) for v in (a, b))
    return _cut(x * y >> (16 if "hi" in op.modifiers else 0), 32)


def _mad24(op: Operation, a: int, b: int, c: int) -> int:
    product = _mul24(op, a, b)
    if op.saturate:
        return _cut(_clamp32(_sign(product, 32) + _sign(c, 32)), 32)
    return _cut(product + c, 32)


def _sad(op: Operation, a: int, b: int, c: int) -> int:
    return _cut(c + abs(_typed(op.type, a) - _typed(op.type, b)), _bits(op))


def _div(op: Operation, a: int, b: int) -> int | None:
    x, y = _typed(op.type, a), _typed(op.type, b)
    if y == 0:
        return None
    return _cut(abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1), _bits(op))


def _rem(op: Operation, a: int, b: int) -> int | None:
    x, y = _typed(op.type, a), _typed(op.type, b)
    if y == 0:
        return None
    return _cut(int(math.copysign(1, x)) * (abs(x) % abs(y)), _bits(op))


def _abs(op: Operation, a: int) -> int:
    return _cut(abs(_typed(op.type, a)), _bits(op))


def _neg(op: Operation, a: int) -> int:
    return _cut(-a, _bits(op))


def _extreme(op: Operation, a: int, b: int) -> int:
    choose = min if op.opcode == "min" else max
    return _cut(choose(_typed(op.type, a), _typed(op.type, b)), _bits(op))


def _popc(op: Operation, a: int) -> int:
    return _cut(a, _bits(op)).bit_count()


def _clz(op: Operation, a: int) -> int:
    return _bits(op) - _cut(a, _bits(op)).bit_length()


def _bfind(op: Operation, a: int) -> int:
    x = _typed(op.type, a)
    if x < 0:
        x = ~x
    if x == 0:
        return 0xFFFFFFFF
    position = x.bit_length() - 1
    return _bits(op) - 1 - position if "shiftamt" in op.modifiers else position


def _brev(op: Operation, a: int) -> int:
    return int(f"{_cut(a, _bits(op)):0{_bits(op)}b}"[::-1], 2)


def _fns(op: Operation, mask: int, base: int, offset: int) -> int:
    del op
    step = _sign(offset, 32)
    if step == 0:
        return base if base < 32 and mask >> base & 1 else 0xFFFFFFFF
    position, left = base, abs(step)
    while 0 <= position < 32:
        left -= mask >> position & 1
        if left == 0:
            return position
        position += 1 if step > 0 else -1
    return 0xFFFFFFFF


def _bfe(op: Operation, a: int, b: int, c: int) -> int:
    msb = _bits(op) - 1
    pos, length = b & 0xFF, c & 0xFF
    sbit = 0
    if op.type.is_signed and length:
        sbit = a >> min(pos + length - 1, msb) & 1
    return sum(
        (a >> (pos + i) & 1 if i < length and pos + i <= msb else sbit) << i for i in range(msb + 1)
    )


def _bfi(op: Operation, a: int, b: int, c: int, d: int) -> int:
    pos, length = c & 0xFF, d & 0xFF
    result = b
    for i in range(length):
        if pos + i >= _bits(op):
            break
        result = result & ~(1 << pos + i) | (a >> i & 1) << pos + i
    return result


def _szext(op: Operation, a: int, b: int) -> int:
    n = b if b < 32 else 32 if "clamp" in op.modifiers else b % 32
    if n == 0:
        return 0
    return _cut(_sign(a, n), 32) if op.type.is_signed else _cut(a, n)


def _bmsk(op: Operation, a: int, b: int) -> int:
    if "clamp" in op.modifiers:
        return _cut(((1 << min(b, 32)) - 1) << a, 32) if a < 32 else 0
    return _cut(((1 << (b % 32)) - 1) << (a % 32), 32)


def _dot(op: Operation, a: int, b: int, c: int) -> int:
    a_bits = 8 if op.opcode == "dp4a" else 16
    start = 2 if "hi" in op.modifiers else 0
    total = c
    for i in range(32 // a_bits):
        x, y = a >> a_bits * i, b >> 8 * (i + start)
        x = _sign(x, a_bits) if op.types[0].is_signed else _cut(x, a_bits)
        y = _sign(y, 8) if op.types[1].is_signed else _cut(y, 8)
        total += x * y
    return _cut(total, 32)


# ---------------------------------------------------------------- logic


def _two(function):
    def evaluate(op: Operation, a: int, b: int) -> int:
        return _cut(function(a, b), _bits(op))

    return evaluate


def _not(op: Operation, a: int) -> int:
    return _cut(~a, _bits(op))


def _cnot(op: Operation, a: int) -> int:
    del op
    return int(a == 0)


def _shl(op: Operation, a: int, b: int) -> int:
    return _cut(a << min(b, _bits(op)), _bits(op))


def _shr(op: Operation, a: int, b: int) -> int:
    return _cut(_typed(op.type, a) >> min(b, _bits(op)), _bits(op))


def _shf(op: Operation, a: int, b: int, c: int) -> int:
    n = c % 32 if "wrap" in op.modifiers else min(c, 32)
    both = b << 32 | a
    return _cut(both << n >> 32 if "l" in op.modifiers else both >> n, 32)


def _prmt(op: Operation, a: int, b: int, c: int) -> int:
    source = (b << 32 | a).to_bytes(8, "little")
    n = c & 3
    picks = {
        "f4e": [n, n + 1, n + 2, n + 3],
        "b4e": [n, (n - 1) % 8, (n - 2) % 8, (n - 3) % 8],
        "rc8": [n] * 4,
        "ecl": [max(n, i) for i in range(4)],
        "ecr": [min(n, i) for i in range(4)],
        "rc16": [2 * (n & 1), 2 * (n & 1) + 1] * 2,
    }.get(op.combine)
    if picks is not None:
        return int.from_bytes(bytes(source[p] for p in picks), "little")
    result = 0
    for i in range(4):
        selector = c >> 4 * i & 15
        byte = source[selector & 7]
        if selector & 8:
            byte = 255 * (byte >> 7)
        result |= byte << 8 * i
    return result


def _lop3(op: Operation, a: int, b: int, c: int, table: int, *flag: int) -> list[int]:
    result = 0
    for bit in range(32):
        index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | c >> bit & 1
        result |= (table >> index & 1) << bit
    if not flag:
        return [result]
    true = int(result != 0)
    return [result, true | flag[0] if op.combine == "or" else true & flag[0]]


# ---------------------------------------------------------------- comparisons

_ORDER = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "lo": operator.lt, "ls": operator.le,
    "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip
_COMBINE = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def _compare(op: Operation, name: str, a: int, b: int) -> bool:
    if name not in q.SHAPES:
        kind = PtxType(name)
        return _ORDER[op.compare](_typed(kind, a), _typed(kind, b))
    if op.ftz and name in ("f32", "f16"):
        a, b = _flush(name, a), _flush(name, b)
    nan = q.NAN in (q.decode(name, a)[0], q.decode(name, b)[0])
    if op.compare in ("num", "nan"):
        return nan == (op.compare == "nan")
    if nan:
        return op.compare.endswith("u") and len(op.compare) == 3
    return _ORDER[op.compare[:2]](_order_value(name, a), _order_value(name, b))


def _order_value(name: str, bits: int) -> float | Fraction:
    kind, sign, _ = q.decode(name, bits)
    if kind == q.INFINITE:
        return -math.inf if sign else math.inf
    return q.signed(name, bits)


def _halves(op: Operation, a: int, b: int) -> list[bool]:
    name = op.source_type.value
    if not name.endswith("x2"):
        return [_compare(op, name, a, b)]
    return [_compare(op, name[:-2], a >> s & 0xFFFF, b >> s & 0xFFFF) for s in (0, 16)]


def _setp(op: Operation, a: int, b: int, *flag: int) -> list[int]:
    true = _halves(op, a, b)
    if len(true) == 1:
        true.append(not true[0])
    return [_combined(op, int(t), flag) for t in true]


def _combined(op: Operation, true: int, flag: tuple[int, ...]) -> int:
    return _COMBINE[op.combine](true, flag[0]) if flag else true


def _set(op: Operation, a: int, b: int, *flag: int) -> int:
    true = [_combined(op, int(t), flag) for t in _halves(op, a, b)]
    name = op.type.value
    if len(true) == 2:
        one = {"f16x2": 0x3C00, "bf16x2": 0x3F80}.get(name, 0xFFFF)
        return true[0] * one | true[1] * one << 16
    one = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(name, _cut(-1, _bits(op)))
    return one * true[0]


def _selp(op: Operation, a: int, b: int, flag: int) -> int:
    del op
    return a if flag else b


def _slct(op: Operation, a: int, b: int, c: int) -> int:
    if op.source_type is PtxType.S32:
        return a if _sign(c, 32) >= 0 else b
    if op.ftz:
        c = _flush("f32", c)
    kind, sign, size = q.decode("f32", c)
    if kind == q.NAN:
        return b
    return a if not sign or (kind == "num" and size == 0) else b


# ---------------------------------------------------------------- floating point


def _flush(name: str, bits: int) -> int:
    kind, sign, _ = q.decode(name, bits)
    width, precision, emax = q.SHAPES[name]
    field = bits >> (precision - 1) & (2 * emax + 1)
    return sign << (width - 1) if kind == "num" and field == 0 else bits


def _saturated(name: str, bits: int) -> int:
    kind, sign, size = q.decode(name, bits)
    one = q.SHAPES[name][2] << (q.SHAPES[name][1] - 1)
    if kind == q.NAN or sign:
        return 0
    return one if kind == q.INFINITE or size > 1 else bits


def _nan(name: str) -> int:
    return CANONICAL.get(name, F64_NAN)


def _infinity(name: str, sign: int) -> int:
    width, precision, emax = q.SHAPES[name]
    return (2 * emax + 1) << (precision - 1) | sign << (width - 1)


def _finish(op: Operation, name: str, bits: int) -> int:
    flushed = ("f32",) if op.opcode == "cvt" else ("f32", "f16")
    if op.ftz and name in flushed:
        bits = _flush(name, bits)
    if "sat" in op.modifiers:
        bits = _saturated(name, bits)
    if "relu" in op.modifiers:
        kind, sign, _ = q.decode(name, bits)
        bits = _nan(name) if kind == q.NAN else 0 if sign else bits
    return bits


def _fma(op: Operation, name: str, a: int, b: int, c: int, *, product: bool = False) -> int:
    """Sum of a product and c; a bare product has no c whose sign could matter."""
    mode = op.rounding or "rn"
    if op.ftz:
        a, b, c = (_flush(name, v) for v in (a, b, c))
    (ka, sa, xa), (kb, sb, xb), (kc, sc, xc) = (q.decode(name, v) for v in (a, b, c))
    sign = sa ^ sb
    if product:
        sc, xc, kc = sign, Fraction(0), "num"
    if q.NAN in (ka, kb, kc):
        return _finish(op, name, _nan(name))
    if q.INFINITE in (ka, kb):
        zero = (ka == "num" and xa == 0) or (kb == "num" and xb == 0)
        if zero or (kc == q.INFINITE and sc != sign):
            return _finish(op, name, _nan(name))
        return _finish(op, name, _infinity(name, sign))
    if kc == q.INFINITE:
        return _finish(op, name, _infinity(name, sc))
    exact = xa * xb * (-1 if sign else 1) + xc * (-1 if sc else 1)
    zero_sign = q.sum_zero_sign(mode, sign, sc)
    return _finish(op, name, q.encode(name, mode, exact, zero_sign=zero_sign))


def _each(function):
    """Apply to a scalar, or to both halves of a packed operand."""

    def evaluate(op: Operation, *values: int) -> int | None:
        name = op.type.value
        if not name.endswith("x2"):
            return function(op, name, *values)
        halves = [function(op, name[:-2], *(v >> s & 0xFFFF for v in values)) for s in (0, 16)]
        return None if None in halves else halves[0] | halves[1] << 16

    return evaluate


def _one(name: str) -> int:
    return q.SHAPES[name][2] << (q.SHAPES[name][1] - 1)


def _f_add(op: Operation, name: str, a: int, b: int) -> int:
    return _fma(op, name, a, _one(name), b)


def _f_sub(op: Operation, name: str, a: int, b: int) -> int:
    return _fma(op, name, a, _one(name), b ^ 1 << q.SHAPES[name][0] - 1)


def _f_mul(op: Operation, name: str, a: int, b: int) -> int:
    return _fma(op, name, a, b, 0, product=True)


def _f_fma(op: Operation, name: str, a: int, b: int, c: int) -> int:
    return _fma(op, name, a, b, c)


def _f_div(op: Operation, name: str, a: int, b: int) -> int | None:
    if op.approximate:
        return None
    if op.ftz:
        a, b = _flush(name, a), _flush(name, b)
    (ka, sa, xa), (kb, sb, xb) = q.decode(name, a), q.decode(name, b)
    sign = sa ^ sb
    if q.NAN in (ka, kb) or (ka, kb) == (q.INFINITE,) * 2 or (ka == kb == "num" and xa == xb == 0):
        return _nan(name)
    if ka == q.INFINITE or (kb == "num" and xb == 0):
        return _infinity(name, sign)
    if kb == q.INFINITE:
        return sign << q.SHAPES[name][0] - 1
    bits = q.encode(name, op.rounding, xa / xb * (-1 if sign else 1), zero_sign=sign)
    return _finish(op, name, bits)


def _f_rcp(op: Operation, name: str, a: int) -> int | None:
    return _f_div(op, name, _one(name), a)


def _f_sqrt(op: Operation, name: str, a: int) -> int | None:
    if op.approximate:
        return None
    if op.ftz:
        a = _flush(name, a)
    kind, sign, size = q.decode(name, a)
    if kind == "num" and size == 0:
        return a
    if kind == q.NAN or sign:
        return _nan(name)
    return a if kind == q.INFINITE else q.square_root(name, op.rounding, size)


def _f_extreme(op: Operation, name: str, a: int, b: int) -> int:
    if op.ftz:
        a, b = _flush(name, a), _flush(name, b)
    nans = [q.decode(name, v)[0] == q.NAN for v in (a, b)]
    if all(nans) or (any(nans) and "NaN" in op.modifiers):
        return _nan(name)
    if any(nans):
        return b if nans[0] else a
    choose = min if op.opcode == "min" else max
    return choose((a, b), key=lambda v: (_order_value(name, v), -q.decode(name, v)[1]))


def _f_abs(op: Operation, name: str, a: int) -> int | None:
    if q.decode(name, a)[0] == q.NAN:
        return None
    return (_flush(name, a) if op.ftz else a) & (1 << q.SHAPES[name][0] - 1) - 1


def _f_neg(op: Operation, name: str, a: int) -> int | None:
    if q.decode(name, a)[0] == q.NAN:
        return None
    return (_flush(name, a) if op.ftz else a) ^ 1 << q.SHAPES[name][0] - 1


def _copysign(op: Operation, a: int, b: int) -> int:
    sign = 1 << _bits(op) - 1
    return b & (sign - 1) | a & sign


def _testp(op: Operation, a: int) -> int:
    name = op.type.value
    kind = q.decode(name, a)[0]
    subnormal = kind == "num" and _flush(name, a) != a
    return int(
        {
            "finite": kind == "num",
            "infinite": kind == q.INFINITE,
            "number": kind != q.NAN,
            "notanumber": kind == q.NAN,
            "normal": kind == "num" and not subnormal,
            "subnormal": subnormal,
        }[op.combine]
    )


# ---------------------------------------------------------------- conversions

_ROUND = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}


def _pack(op: Operation, a: int, b: int, c: int = 0) -> int:
    bits = op.type.bits
    low = -(1 << bits - 1) if op.type.is_signed else 0
    x, y = (min(max(_sign(v, 32), low), low + (1 << bits) - 1) for v in (a, b))
    return _cut(c << 2 * bits | _cut(x, bits) << bits | _cut(y, bits), 32)


def _cvt(op: Operation, a: int, *b: int) -> int | None:
    target, source = op.type, op.source_type
    if "pack" in op.modifiers:
        return _pack(op, a, *b)
    if b:
        high, low = (_narrow(op, target.value[:-2], "f32", v) for v in (a, *b))
        return high << 16 | low
    if target is PtxType.TF32:
        return _tf32(op, a)
    if source.is_integer:
        value = _typed(source, a)
        if target.is_integer:
            return _integer_result(op, value)
        bits = q.encode(target.value, op.rounding, Fraction(value))
        return _finish(op, target.value, bits)
    if op.ftz and source is PtxType.F32:
        a = _flush("f32", a)
    if target.is_integer:
        return _to_integer(op, a)
    return _narrow(op, target.value, source.value, a)


def _integer_result(op: Operation, value: int) -> int:
    kind = op.type
    low, high = (
        (-(1 << kind.bits - 1), (1 << kind.bits - 1) - 1)
        if kind.is_signed
        else (0, (1 << kind.bits) - 1)
    )
    if op.saturate:
        value = min(max(value, low), high)
    # The builder holds bytes in 32-bit registers: the rest is the extension.
    return _cut(_typed(kind, value), max(kind.bits, 32 if kind.bits == 8 else 0))


def _to_integer(op: Operation, a: int) -> int:
    name, kind = op.source_type.value, op.type
    low, high = (
        (-(1 << kind.bits - 1), (1 << kind.bits - 1) - 1)
        if kind.is_signed
        else (0, (1 << kind.bits) - 1)
    )
    what, sign, _ = q.decode(name, a)
    if what == q.NAN:
        value = 1 << kind.bits - 1 if name == "f64" or kind.bits == 64 else 0
    elif what == q.INFINITE:
        value = low if sign else high
    else:
        value = min(max(_ROUND[op.rounding](q.signed(name, a)), low), high)
    return _cut(_typed(kind, value), max(kind.bits, 32 if kind.bits == 8 else 0))


def _narrow(op: Operation, target: str, source: str, a: int) -> int | None:
    if op.ftz and source == "f32":
        a = _flush("f32", a)
    kind, sign, size = q.decode(source, a)
    if kind == q.NAN:
        if "sat" in op.modifiers and "satfinite" not in op.modifiers:
            return 0
        return None if target == source or source == "bf16" else _nan(target)
    if kind == q.INFINITE:
        bits = _infinity(target, sign)
    else:
        value = -size if sign else size
        if op.rounding in _ROUND:
            value = Fraction(_ROUND[op.rounding](value))
            bits = q.encode(target, "rn", value, zero_sign=sign)
        else:
            bits = q.encode(target, op.rounding or "rn", value, zero_sign=sign)
    if "satfinite" in op.modifiers and q.decode(target, bits)[0] == q.INFINITE:
        bits -= 1
    return _finish(op, target, bits)


def _tf32(op: Operation, a: int) -> int | None:
    if q.decode("f32", a)[0] != "num":
        return None
    rounded = (a + 0x1000) & 0xFFFFE000
    if op.saturate and q.decode("f32", rounded)[0] != "num":
        rounded -= 0x2000
    return rounded


ORACLES = {
    **{("integer", n): _arithmetic for n in ("add", "sub")},
    ("integer", "mul"): _product,
    ("integer", "mad"): _mad,
    ("integer", "mul24"): _mul24,
    ("integer", "mad24"): _mad24,
    ("integer", "sad"): _sad,
    ("integer", "div"): _div,
    ("integer", "rem"): _rem,
    ("integer", "abs"): _abs,
    ("integer", "neg"): _neg,
    **{("integer", n): _extreme for n in ("min", "max")},
    ("integer", "popc"): _popc,
    ("integer", "clz"): _clz,
    ("integer", "bfind"): _bfind,
    ("integer", "brev"): _brev,
    ("integer", "fns"): _fns,
    ("integer", "bfe"): _bfe,
    ("integer", "bfi"): _bfi,
    ("integer", "szext"): _szext,
    ("integer", "bmsk"): _bmsk,
    **{("integer", n): _dot for n in ("dp4a", "dp2a")},
    ("integer", "clmad"): _clmad,
    ("logic", "and"): _two(operator.and_),
    ("logic", "or"): _two(operator.or_),
    ("logic", "xor"): _two(operator.xor),
    ("logic", "not"): _not,
    ("logic", "cnot"): _cnot,
    ("logic", "shl"): _shl,
    ("logic", "shr"): _shr,
    ("logic", "shf"): _shf,
    ("logic", "prmt"): _prmt,
    ("logic", "lop3"): _lop3,
    ("compare", "setp"): _setp,
    ("compare", "set"): _set,
    ("compare", "selp"): _selp,
    ("compare", "slct"): _slct,
    **{(f, "add"): _each(_f_add) for f in ("floating", "half")},
    **{(f, "sub"): _each(_f_sub) for f in ("floating", "half")},
    **{(f, "mul"): _each(_f_mul) for f in ("floating", "half")},
    **{
        (f, n): _each(_f_fma)
        for f, n in (("floating", "fma"), ("floating", "mad"), ("half", "fma"))
    },
    **{(f, n): _each(_f_extreme) for f in ("floating", "half") for n in ("min", "max")},
    **{(f, "abs"): _each(_f_abs) for f in ("floating", "half")},
    **{(f, "neg"): _each(_f_neg) for f in ("floating", "half")},
    ("floating", "div"): _each(_f_div),
    ("floating", "rcp"): _each(_f_rcp),
    ("floating", "sqrt"): _each(_f_sqrt),
    ("floating", "copysign"): _copysign,
    ("floating", "testp"): _testp,
    ("convert", "cvt"): _cvt,
}
"""Family and opcode to the oracle of one lane."""
