"""What a matrix instruction must give, by exact numbers and lane by lane: slow, obvious, our own.

Written from the rules (docs/tensor-cores.md), sharing nothing with the library: sums are
:class:`fractions.Fraction`, places are formulas over lanes.
"""

from __future__ import annotations

from fractions import Fraction

from tests.helpers import rationals

TF32_KEPT = 0xFFFFE000
ALIGNMENT = 24
LEAST = {"f32": -132, "f16": -20}
BLOCK = {"f16": 8, "bf16": 8, "tf32": 4}
NAN = {"f32": 0x7FFFFFFF, "f16": 0x7FFF, "f64": 0x7FF8000000000000}


# ---------------------------------------------------------------- one element of D


def dot(kind: str, acc: str, a: list[int], b: list[int], c: int) -> int:
    """Sum of products of ``f16``, ``bf16`` or ``tf32`` in the hardware's blocks; raw bits."""
    block = BLOCK[kind]
    for start in range(0, len(a), block):
        c = _block(kind, acc, a[start : start + block], b[start : start + block], c)
    return c


def _block(kind: str, acc: str, a: list[int], b: list[int], c: int) -> int:
    name = "f32" if kind == "tf32" else kind
    if kind == "tf32":
        a, b = ([v & TF32_KEPT for v in side] for side in (a, b))
    infinite: set[int] = set()
    terms: list[tuple[Fraction, int]] = []
    for x, y in zip(a, b, strict=True):
        (how_x, sign_x, size_x), (how_y, sign_y, size_y) = (
            rationals.decode(name, v) for v in (x, y)
        )
        if rationals.NAN in (how_x, how_y):
            return NAN[acc]
        if rationals.INFINITE in (how_x, how_y):
            if (how_x == "num" and not size_x) or (how_y == "num" and not size_y):
                return NAN[acc]
            infinite.add(sign_x ^ sign_y)
            continue
        value = size_x * size_y * (-1 if sign_x ^ sign_y else 1)
        terms.append((value, _exponent(name, x) + _exponent(name, y)))
    how, sign, size = rationals.decode(acc, c)
    if how == rationals.NAN:
        return NAN[acc]
    if how == rationals.INFINITE:
        infinite.add(sign)
    else:
        terms.append((-size if sign else size, _exponent(acc, c)))
    if infinite:
        return NAN[acc] if len(infinite) > 1 else _infinity(acc, infinite.pop())
    return _rounded(acc, _total(acc, terms))


def _exponent(name: str, bits: int) -> int:
    """Exponent of the leading place, 1.0's being 0; a subnormal's is the least normal's."""
    _, precision, emax = rationals.SHAPES[name]
    return max(bits >> (precision - 1) & (2 * emax + 1), 1) - emax


def _total(acc: str, terms: list[tuple[Fraction, int]]) -> Fraction:
    top = max((e if value else LEAST[acc]) for value, e in terms)
    unit = Fraction(2) ** (top - ALIGNMENT)
    total = Fraction(0)
    for value, _ in terms:
        kept = abs(value) // unit * unit
        total += kept if value > 0 else -kept
    return total


def _rounded(acc: str, total: Fraction) -> int:
    if total == 0:
        return 0
    if acc == "f32":
        if abs(total) >= Fraction(2) ** 128:
            return _infinity(acc, int(total < 0))
        bits = rationals.encode("f32", "rz", total)
        return bits if bits & 0x7FFFFFFF else 0
    bits = rationals.encode("f16", "rn", total)
    return bits if bits & 0x7FFF else 0


def _infinity(acc: str, sign: int) -> int:
    return {"f32": 0x7F800000, "f16": 0x7C00}[acc] | sign << ({"f32": 31, "f16": 15}[acc])


def whole(kind: tuple[str, str], a: list[int], b: list[int], c: int, *, clamp: bool) -> int:
    """Integers: exact, then wrapped or clamped once; raw bits of 32."""
    numbers = [[number(name, v) for v in side] for name, side in zip(kind, (a, b), strict=True)]
    total = number("s32", c) + sum(x * y for x, y in zip(*numbers, strict=True))
    if clamp:
        total = max(min(total, 2**31 - 1), -(2**31))
    return total % (1 << 32)


def number(kind: str, bits: int) -> int:
    """Value of raw bits of an integer type."""
    width = int(kind[1:])
    return bits - (1 << width) if kind[0] == "s" and bits >> (width - 1) else bits


def count(logic: str, a: list[int], b: list[int], c: int) -> int:
    """One-bit operands: population count of their conjunction or difference."""
    found = sum((x & y) if logic == "and" else (x ^ y) for x, y in zip(a, b, strict=True))
    return (c + found) % (1 << 32)


def fused(mode: str, a: list[int], b: list[int], c: int) -> int:
    """f64: fused multiply-adds, one after another."""
    for x, y in zip(a, b, strict=True):
        c = _fma("f64", mode, x, y, c)
    return c


def sequence(acc: str, c_kind: str, a: list[int], b: list[int], c: int) -> int:
    """The Volta shape as f32 instructions."""
    wide = [[_widen(v) for v in side] for side in (a, b)]
    x, y = wide
    c = _widen(c) if c_kind == "f16" else c
    if acc == "f16":
        p = _fma("f32", "rn", x[1], y[1], _mul(x[0], y[0]))
        q = _fma("f32", "rn", x[3], y[3], _mul(x[2], y[2]))
        return _narrow(_add(_add(c, p), q))
    t = 0
    for k in range(4):
        t = _fma("f32", "rn", x[k], y[k], t)
    return _add(c, t)


def widened(bits: int) -> int:
    """f16 as f32."""
    return _widen(bits)


def narrowed(bits: int) -> int:
    """f32 rounded to the nearest f16."""
    return _narrow(bits)


_ONE = 0x3F800000


def _mul(x: int, y: int) -> int:
    return _fma("f32", "rn", x, y, 1 << 31 if (x ^ y) >> 31 else 0)


def _add(x: int, y: int) -> int:
    return _fma("f32", "rn", x, _ONE, y)


def _fma(name: str, mode: str, x: int, y: int, z: int) -> int:
    (hx, sx, vx), (hy, sy, vy), (hz, sz, vz) = (rationals.decode(name, v) for v in (x, y, z))
    width, _, _ = rationals.SHAPES[name]
    if rationals.NAN in (hx, hy, hz):
        return NAN[name]
    sign = sx ^ sy
    if rationals.INFINITE in (hx, hy):
        zero = (hx == "num" and not vx) or (hy == "num" and not vy)
        if zero or (hz == rationals.INFINITE and sz != sign):
            return NAN[name]
        return _huge(name, sign)
    if hz == rationals.INFINITE:
        return z
    total = vx * vy * (-1 if sign else 1) + vz * (-1 if sz else 1)
    if total == 0:
        both = sign if sign == sz else int(mode == "rm")
        exact_zeros = not (vx * vy) and not vz
        return (both if exact_zeros else int(mode == "rm")) << (width - 1)
    return rationals.encode(name, mode, total)


def _huge(name: str, sign: int) -> int:
    width, precision, emax = rationals.SHAPES[name]
    return (2 * emax + 1) << (precision - 1) | sign << (width - 1)


def _widen(bits: int) -> int:
    how, sign, size = rationals.decode("f16", bits)
    if how == rationals.NAN:
        return NAN["f32"]
    if how == rationals.INFINITE:
        return _huge("f32", sign)
    return rationals.encode("f32", "rn", -size if sign else size, zero_sign=sign)


def _narrow(bits: int) -> int:
    how, sign, size = rationals.decode("f32", bits)
    if how == rationals.NAN:
        return NAN["f16"]
    if how == rationals.INFINITE:
        return _huge("f16", sign)
    return rationals.encode("f16", "rn", -size if sign else size, zero_sign=sign)


# ---------------------------------------------------------------- places

Place = tuple[int, int]


def holds(role: str, m: int, k: int, bits: int) -> dict[tuple[int, int, int], Place]:
    """(register, lane, element) to (row, column) of an m16n8 or m8n8 operand."""
    per = max(32 // bits, 1)
    found = {}
    for lane in range(32):
        g, t = lane >> 2, lane & 3
        if role in ("c", "d"):
            for r in range(m // 8 * (1 if bits == 16 else 2)):
                for j in range(2 if bits == 16 else 1):
                    row = g + 8 * (r if bits == 16 else r >> 1)
                    found[r, lane, j] = (row, 2 * t + (j if bits == 16 else r & 1))
            continue
        tall = 2 if role == "a" and m == 16 else 1
        for r in range(max(k // (4 * per), 1) * tall):
            for j in range(per):
                side = g + 8 * (r & 1) if tall == 2 else g
                along = per * (t + 4 * (r // tall)) + j
                found[r, lane, j] = (side, along) if role == "a" else (along, side)
    return found


def tile_holds(
    role: str, shape: tuple[int, int, int], bits: int
) -> dict[tuple[int, int, int], Place]:
    """The same of ``wmma``'s tiles, copies left out."""
    m, n, k = shape
    if (m, n) == (8, 32):
        turned = tile_holds({"a": "b", "b": "a"}.get(role, role), (32, 8, k), bits)
        return {key: (column, row) for key, (row, column) in turned.items()}
    if m == 8:
        return holds(role, m, k, bits)
    part = holds(role, 16, k, bits)
    count_of = max(r for r, _, _ in part) + 1
    steps = {"a": range(m // 16), "b": range(n // 8)}.get(role, range(m // 16 * (n // 8)))
    found = {}
    for step in steps:
        down = step if role == "a" else step // (n // 8) if role in ("c", "d") else 0
        right = step if role == "b" else step % (n // 8) if role in ("c", "d") else 0
        for (r, lane, j), (row, column) in part.items():
            found[step * count_of + r, lane, j] = (row + 16 * down, column + 8 * right)
    return found


def volta_holds(role: str, layout: str, bits: int) -> dict[tuple[int, int, int], Place]:
    """The same of the Volta shape; the four products' matrices stand below one another.

    Row 8q + i of A, C and D is row i of product q; B's row 4q + i likewise.
    """
    found = {}
    for lane in range(32):
        quad, high, q = lane >> 2 & 3, 4 * (lane >= 16), lane & 3
        for i in range(8 if role in ("c", "d") else 4):
            if role in ("c", "d") and bits == 32:
                row, column = (lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)
                key = (i, lane, 0)
            elif role in ("c", "d"):
                row, column, key = q + high, i, (i // 2, lane, i % 2)
            else:
                side, along = (q + high, i) if (role, layout) in _STRAIGHT else (i + high, q)
                row, column = (side, along) if role == "a" else (along, side)
                key = (i // 2, lane, i % 2)
            found[key] = (row + (4 if role == "b" else 8) * quad, column)
    return found


_STRAIGHT = {("a", "row"), ("b", "col")}
