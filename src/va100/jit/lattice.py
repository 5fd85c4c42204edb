"""What is known about a register's 32 lanes: uniform, affine, or varying.

A uniform value is one scalar.  An affine value is a uniform base plus a compile-time vector, so
it too is kept as one scalar.  Everything else varies.  Interval and alignment of the base let
compilers' index idioms (``shr.s32 x, 31``; ``and x, -16``) fold.  Facts only; code is emitted in
:mod:`va100.jit.lower`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from va100.work import WARP_SIZE

MAX_ALIGN: Final = 63


@dataclass(frozen=True, slots=True)
class Shape:
    """One register's lanes.

    ``offsets`` is ``None`` for a varying value, ``()`` for a uniform one, else 32 integers.
    ``low`` and ``high`` bound the base read as a signed integer of ``bits`` bits;
    the base is a multiple of ``2**align``.
    """

    bits: int
    offsets: tuple[int, ...] | None
    low: int
    high: int
    align: int = 0

    @property
    def varying(self) -> bool:
        """No structure is known."""
        return self.offsets is None

    @property
    def uniform(self) -> bool:
        """All lanes are equal."""
        return self.offsets == ()

    @property
    def affine(self) -> bool:
        """A uniform base plus a vector that is not constant."""
        return bool(self.offsets)

    @property
    def constant(self) -> int | None:
        """The value, signed, when it is known and uniform."""
        return self.low if self.uniform and self.low == self.high else None

    @property
    def value_low(self) -> int:
        """Smallest value of any lane."""
        return self.low + (min(self.offsets) if self.offsets else 0)

    @property
    def value_high(self) -> int:
        """Largest value of any lane."""
        return self.high + (max(self.offsets) if self.offsets else 0)

    @property
    def offsets_disjoint(self) -> bool:
        """Whether offsets only use bits below the base's alignment."""
        if not self.offsets:
            return self.offsets is not None
        return min(self.offsets) >= 0 and max(self.offsets) < (1 << self.align)


def signed_limits(bits: int) -> tuple[int, int]:
    """Smallest and largest signed integer of a width."""
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def wrap(value: int, bits: int) -> int:
    """Reduce to a signed integer of a width."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def varying(bits: int) -> Shape:
    """Nothing known."""
    low, high = signed_limits(bits)
    return Shape(bits, None, low, high)


def uniform(bits: int, low: int | None = None, high: int | None = None, align: int = 0) -> Shape:
    """A uniform value, bounded when bounds are given and fit."""
    least, most = signed_limits(bits)
    if low is None or high is None or low < least or high > most:
        return Shape(bits, (), least, most, align)
    return Shape(bits, (), low, high, align)


def constant(bits: int, value: int) -> Shape:
    """A compile-time constant."""
    value = wrap(value, bits)
    align = (value & -value).bit_length() - 1 if value else MAX_ALIGN
    return Shape(bits, (), value, value, align)


def affine(
    bits: int,
    offsets: tuple[int, ...],
    low: int | None = None,
    high: int | None = None,
    align: int = 0,
) -> Shape:
    """A base plus offsets; uniform when all offsets are zero."""
    base = uniform(bits, low, high, align)
    least, most = signed_limits(bits)
    if min(offsets) < least or max(offsets) > most:
        offsets = tuple(wrap(v, bits) for v in offsets)
    if len(offsets) != WARP_SIZE:
        raise ValueError(f"an affine value has {WARP_SIZE} offsets, not {len(offsets)}")
    return base if not any(offsets) else replace(base, offsets=offsets)


def join(a: Shape | None, b: Shape | None) -> Shape | None:
    """What holds of both; ``None`` is the value never assigned."""
    if a is None:
        return b
    if b is None or a == b:
        return a
    if a.offsets is None or a.offsets != b.offsets:
        return varying(a.bits)
    return Shape(a.bits, a.offsets, min(a.low, b.low), max(a.high, b.high), min(a.align, b.align))


def widen(shape: Shape) -> Shape:
    """Give up the interval, so that a fixpoint over a loop ends."""
    low, high = signed_limits(shape.bits)
    return replace(shape, low=low, high=high)


# ------------------------------------------------------------------ transfer functions


def add(a: Shape, b: Shape, sign: int = 1) -> Shape:
    """``a + b`` or, with ``sign`` -1, ``a - b``."""
    if a.offsets is None or b.offsets is None:
        return varying(a.bits)
    align = min(a.align, b.align)
    low = a.low + (b.low if sign > 0 else -b.high)
    high = a.high + (b.high if sign > 0 else -b.low)
    if a.constant is not None and b.constant is not None:
        return constant(a.bits, low)
    if not a.offsets and not b.offsets:
        return uniform(a.bits, low, high, align)
    if not b.offsets:
        return affine(a.bits, a.offsets, low, high, align)
    left = a.offsets or (0,) * WARP_SIZE
    return affine(
        a.bits, tuple(x + sign * y for x, y in zip(left, b.offsets, strict=True)), low, high, align
    )


def mul(a: Shape, b: Shape) -> Shape:
    """Low half of a product; stays affine only when one side is a known constant."""
    if a.offsets is None or b.offsets is None:
        return varying(a.bits)
    if a.constant is not None:
        a, b = b, a
    factor = b.constant
    if factor is None:
        if a.affine or b.affine:
            return varying(a.bits)
        corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return uniform(a.bits, min(corners), max(corners), min(a.align + b.align, MAX_ALIGN))
    if a.constant is not None:
        return constant(a.bits, a.constant * factor)
    low, high = sorted((a.low * factor, a.high * factor))
    align = min(a.align + b.align, MAX_ALIGN)
    if not a.offsets:
        return uniform(a.bits, low, high, align)
    return affine(a.bits, tuple(v * factor for v in a.offsets), low, high, align)


def shift_left(a: Shape, amount: Shape) -> Shape:
    """``shl``; an unknown amount leaves only uniformity."""
    k = amount.constant
    if k is None or not 0 <= k < a.bits:
        return _uniform_or_varying(a.bits, a, amount)
    return mul(a, Shape(a.bits, (), 1 << k, 1 << k, k))


def shift_right(a: Shape, amount: Shape, *, signed: bool) -> Shape:
    """``shr``; affine when the offsets stay below the base's alignment."""
    k = amount.constant
    if k is None or a.offsets is None or k < 0:
        return _uniform_or_varying(a.bits, a, amount)
    if k >= a.bits:
        k = a.bits - 1 if signed else a.bits
    non_negative = a.value_low >= 0
    if k == a.bits:
        return constant(a.bits, 0)
    if not signed and not non_negative:
        if a.affine:
            return varying(a.bits)
        return uniform(a.bits, 0, (1 << (a.bits - k)) - 1) if k else a
    if a.constant is not None:
        return constant(a.bits, a.constant >> k)
    if non_negative and a.value_high < (1 << k):
        return constant(a.bits, 0)
    if not a.offsets:
        return uniform(a.bits, a.low >> k, a.high >> k, max(a.align - k, 0))
    if not a.offsets_disjoint:
        return varying(a.bits)
    return affine(
        a.bits, tuple(v >> k for v in a.offsets), a.low >> k, a.high >> k, max(a.align - k, 0)
    )


def bit_and(a: Shape, b: Shape) -> Shape:
    """``and``; with a constant mask it distributes over base and offsets."""
    if a.offsets is None or b.offsets is None:
        return varying(a.bits)
    if a.constant is not None:
        a, b = b, a
    mask = b.constant
    if mask is None:
        return _uniform_or_varying(a.bits, a, b)
    if a.constant is not None:
        return constant(a.bits, a.constant & mask)
    low, high = _and_range(a, mask)
    align = max(a.align, b.align) if mask else MAX_ALIGN
    if not a.offsets:
        return uniform(a.bits, low, high, min(align, MAX_ALIGN))
    if not a.offsets_disjoint:
        return varying(a.bits)
    if 0 <= mask < (1 << a.align):
        return affine(a.bits, tuple(v & mask for v in a.offsets), 0, 0, MAX_ALIGN)
    offsets = tuple(v & mask for v in a.offsets)
    return affine(a.bits, offsets, low, high, a.align)


def _and_range(a: Shape, mask: int) -> tuple[int | None, int | None]:
    if a.low >= 0:
        return 0, a.high if mask < 0 else min(a.high, mask)
    if mask >= 0:
        return 0, mask
    return None, None


def bit_or(a: Shape, b: Shape, *, exclusive: bool = False) -> Shape:
    """``or``/``xor``; affine when the constant's bits stay apart from the base's."""
    if a.offsets is None or b.offsets is None:
        return varying(a.bits)
    if a.constant is not None:
        a, b = b, a
    bits = b.constant
    if bits is None:
        return _disjoint_or(a, b)
    if a.constant is not None:
        return constant(a.bits, a.constant ^ bits if exclusive else a.constant | bits)
    if not a.offsets:
        if 0 <= bits < (1 << a.align):
            return uniform(a.bits, a.low + bits, a.high + bits, min(a.align, b.align))
        return uniform(a.bits)
    if not a.offsets_disjoint or not 0 <= bits < (1 << a.align):
        return varying(a.bits)
    offsets = tuple(v ^ bits if exclusive else v | bits for v in a.offsets)
    return affine(a.bits, offsets, a.low, a.high, a.align)


def _disjoint_or(a: Shape, b: Shape) -> Shape:
    """Both unknown: when one's bits all lie below the other's alignment, ``or`` is ``add``."""
    for x, y in ((a, b), (b, a)):
        if y.value_low >= 0 and x.offsets == () and y.value_high < (1 << x.align):
            return add(x, y)
    return _uniform_or_varying(a.bits, a, b)


def resize(a: Shape, bits: int, *, signed: bool) -> Shape:
    """Extend or truncate; extension of an affine value is exact only inside its interval.

    The caller asks :func:`extension_is_exact` first; what is returned otherwise is what holds
    when the extension does not wrap.
    """
    if a.offsets is None:
        return varying(bits)
    if bits <= a.bits:
        low, high = (a.low, a.high) if bits == a.bits else (None, None)
        least, most = signed_limits(bits)
        if bits < a.bits and a.low >= least and a.high <= most:
            low, high = a.low, a.high
        if a.constant is not None:
            return constant(bits, a.constant)
        if not a.offsets:
            return uniform(bits, low, high, min(a.align, bits - 1))
        return affine(bits, a.offsets, low, high, min(a.align, bits - 1))
    if a.constant is not None:
        value = a.constant if signed or a.constant >= 0 else a.constant + (1 << a.bits)
        return constant(bits, value)
    low, high = a.low, a.high
    if not signed and low < 0:
        low, high = 0, (1 << a.bits) - 1
    if not a.offsets:
        return uniform(bits, low, high, a.align)
    return affine(bits, a.offsets, low, high, a.align)


def extension_is_exact(a: Shape, *, signed: bool) -> bool:
    """Whether extending base and offsets apart gives the extended value in every lane."""
    if not a.offsets:
        return True
    least, most = signed_limits(a.bits)
    if signed:
        return a.value_low >= least and a.value_high <= most
    return a.low >= 0 and a.value_low >= 0 and a.value_high <= most


def divide(a: Shape, b: Shape, *, remainder: bool) -> Shape:
    """``div``/``rem`` of a non-negative value by a power of two act as shift and mask."""
    k = b.constant
    if k is not None and k > 0 and k & (k - 1) == 0 and not a.varying and a.value_low >= 0:
        if remainder:
            return bit_and(a, constant(a.bits, k - 1))
        return shift_right(a, constant(a.bits, k.bit_length() - 1), signed=False)
    if k is not None and k > 0 and a.uniform and a.low >= 0:
        return uniform(a.bits, 0, min(a.high, k - 1)) if remainder else uniform(a.bits, 0, a.high)
    return _uniform_or_varying(a.bits, a, b)


def _uniform_or_varying(bits: int, *inputs: Shape) -> Shape:
    return uniform(bits) if all(s.uniform for s in inputs) else varying(bits)
