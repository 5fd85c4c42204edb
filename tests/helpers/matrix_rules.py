"""What a matrix instruction must give, lane by lane: slow, obvious, nothing of the library in it.

Places are formulas over lanes.  Sums of floating point are in :mod:`tests.helpers.tensor_oracle`.
"""

from __future__ import annotations

from tests.helpers import rationals

NAN = {"f32": 0x7FFFFFFF, "f16": 0x7FFF}


# ---------------------------------------------------------------- one element of D


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


def widened(bits: int) -> int:
    """f16 as f32."""
    return _converted("f16", "f32", bits)


def narrowed(bits: int) -> int:
    """f32 rounded to the nearest f16."""
    return _converted("f32", "f16", bits)


def _converted(source: str, target: str, bits: int) -> int:
    how, sign, size = rationals.decode(source, bits)
    if how == rationals.NAN:
        return NAN[target]
    if how == rationals.INFINITE:
        width, precision, emax = rationals.SHAPES[target]
        return (2 * emax + 1) << (precision - 1) | sign << (width - 1)
    return rationals.encode(target, "rn", -size if sign else size, zero_sign=sign)


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
