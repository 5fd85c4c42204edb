"""Native elementwise arithmetic against :mod:`va100.numerics`, bit for bit.

The half-precision and conversion cases are the instruction table's own rows, spelled out; all
other functions are listed here.  f64 NaNs count as equal.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from va100.gpu.native import library
from va100.jit.lower import convert as lower_convert
from va100.jit.lower import half as lower_half
from va100.numerics import approx, convert, formats, rounding
from va100.numerics.formats import BF16, DOUBLE, F16, F32, FloatFormat
from va100.ptx.isa import ISA, Family, Operation, Support, decode
from va100.ptx.types import PtxType

LANES = 32
RANDOM_COUNT = 20_000
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": DOUBLE, "f16x2": F16, "bf16x2": BF16}
INTEGRAL = ("rni", "rzi", "rmi", "rpi")

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A native function: its name, the types of its operands and result, and what it must give."""

    name: str
    sources: tuple[str, ...]
    target: str
    expected: Callable[..., Array]


# ---------------------------------------------------------------- running


def dtype_of(kind: str) -> np.dtype[Any]:
    """Raw bits for floats, the integer itself for integers."""
    if kind[0] in "us":
        return np.dtype(f"{'u' if kind[0] == 'u' else 'i'}{int(kind[1:]) // 8}")
    return np.dtype(f"u{PtxType(kind).bits // 8}")


def run(name: str, operands: Sequence[Array], target: str) -> Array:
    """Apply a native function, 32 lanes at a time."""
    lib = library()
    lib.va_exec_helper.restype = ctypes.c_uint64
    lib.va_exec_helper.argtypes = (ctypes.c_char_p,)
    address = lib.va_exec_helper(name.encode())
    assert address, f"there is no {name}"
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(address)
    count = len(operands[0])
    padded = [np.resize(operand, -(-count // LANES) * LANES) for operand in operands]
    result = np.zeros(len(padded[0]), dtype_of(target))
    arrays = [*padded, *[padded[0]] * (3 - len(padded)), result]
    for start in range(0, len(result), LANES):
        function(*(array.ctypes.data + start * array.itemsize for array in arrays))
    return result[:count]


def compare(case: Case, operands: Sequence[Array]) -> None:
    """Report the first difference with its operands."""
    actual = run(case.name, operands, case.target)
    with np.errstate(all="ignore"):
        expected = np.asarray(case.expected(*operands)).astype(actual.dtype)
    different = actual != expected
    if case.target == "f64":
        nan = formats.is_nan(DOUBLE, actual) & formats.is_nan(DOUBLE, expected)
        different &= ~nan
    where = np.flatnonzero(different)
    if len(where):
        at = where[0]
        values = ", ".join(hex(int(operand[at])) for operand in operands)
        pytest.fail(
            f"{case.name}({values}) gave {int(actual[at]):#x}, not {int(expected[at]):#x}; "
            f"{len(where)} of {len(actual)} differ"
        )


# ---------------------------------------------------------------- operands


def float_edges(fmt: FloatFormat) -> Array:
    """Boundaries of the format, small numbers, and where other formats end."""
    one, ulp = fmt.one, 1
    sizes = {0, ulp, 2, fmt.smallest_normal - 1, fmt.smallest_normal, fmt.smallest_normal + 1}
    sizes |= {one - 1, one, one + 1, one + (fmt.smallest_normal >> 1), one + fmt.smallest_normal}
    sizes |= {fmt.largest - 1, fmt.largest, fmt.infinity, fmt.infinity + 1, fmt.canonical_nan}
    sizes.add(fmt.infinity + (fmt.smallest_normal >> 1))
    numbers = [0.5, 0.3, 1.75, 2.5, 3.0, 24.0, 126.0, 127.5, 128.0, 149.0, 150.0, 255.5, 256.0]
    numbers += [2.0**-14, 2.0**-24, 2.0**-25, 2.0**-25 * 1.001, 2.0**-26, 2048.0, 65504.0]
    if fmt in (F32, DOUBLE):
        numbers += [65519.0, 65520.0, 65536.0, 2.0**24 + 2, 2.0**31, 2.0**32, 2.0**63, 2.0**64]
        numbers += [2.0**-126, 2.0**-127, 2.0**-149, 2.0**126, 2.0**127, 3.3895313892515355e38]
        numbers += [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-12]
    if fmt is DOUBLE:
        numbers += [2.0**-150, 2.0**-151, 3.4028235677973366e38, 2.0**128, 1e300, 1e-300]
        numbers += [1 + 2.0**-24, 1 + 3 * 2.0**-24, 1 + 2.0**-24 + 2.0**-50]
    with np.errstate(all="ignore"):
        more = rounding.round_f64(fmt, "rz", np.array(numbers))
    bits = np.union1d(np.array(sorted(sizes), np.uint64), more.astype(np.uint64))
    return np.concatenate([bits, bits | np.uint64(fmt.sign_bit)]).astype(fmt.dtype)


def integer_edges(dtype: np.dtype[Any]) -> Array:
    """Limits, zero and its neighbours, what formats cannot hold."""
    limits = np.iinfo(dtype)
    numbers = {0, 1, 2, limits.max, limits.max - 1, 2047, 2049, 2051, 65519, 65520, 65535, 65536}
    numbers |= {2**24 + 1, 2**24 + 3, 2**53 + 1, 2**53 + 3, 2**63 + 1, 2**63 - 513}
    numbers |= {-number for number in numbers} | {limits.min, limits.min + 1}
    return np.array(sorted(n for n in numbers if limits.min <= n <= limits.max), dtype)


def edges(kind: str) -> Array:
    """Edge values of a type."""
    if kind not in FORMATS:
        return integer_edges(dtype_of(kind))
    bits = float_edges(FORMATS[kind])
    if not kind.endswith("x2"):
        return bits
    return bits.astype(np.uint32) << np.uint32(16) | np.roll(bits, 5).astype(np.uint32)


def scattered(kind: str, count: int, rng: np.random.Generator) -> Array:
    """Random bit patterns: half of them any, half (of floats) of moderate size."""
    dtype = dtype_of(kind)
    raw = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy()
    if kind not in FORMATS:
        return raw
    fmt = FORMATS[kind]
    bits = raw.view(fmt.dtype)
    half = len(bits) // 2
    field = rng.integers(fmt.emax - 13, fmt.emax + 14, half).astype(fmt.dtype)
    fraction = bits[:half] & fmt.dtype.type(fmt.sign_bit | (fmt.smallest_normal - 1))
    bits[:half] = fraction | field << fmt.dtype.type(fmt.precision - 1)
    return bits.view(dtype)


def operands_of(case: Case) -> tuple[Array, ...]:
    """Edge values in all combinations, then random ones; all of 16 bits where there is but one."""
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    random = [scattered(kind, RANDOM_COUNT, rng) for kind in case.sources]
    lists = [edges(kind) for kind in case.sources]
    if len(lists) == 1 and lists[0].itemsize <= 2:
        bits = 8 * lists[0].itemsize
        return (np.arange(1 << bits, dtype=np.uint32).astype(f"u{bits // 8}").view(lists[0].dtype),)
    if len(lists) == 3:
        lists = [rng.permutation(values)[:32] for values in lists]
    grid = np.meshgrid(*lists, indexing="ij")
    return tuple(
        np.concatenate([axis.reshape(-1), more]) for axis, more in zip(grid, random, strict=True)
    )


# ---------------------------------------------------------------- rows of the instruction table


def spelled(family: Family) -> Iterator[Operation]:
    """All operations of a family that the A100 executes."""
    for form in ISA:
        if form.family is family and form.support is Support.EXECUTED and form.min_sm <= 80:
            for parts in product(*form.slots):
                yield decode(".".join((form.opcode, *(part for part in parts if part))))


def half_cases() -> Iterator[Case]:
    """``add.f16`` to ``ex2.approx.f16x2``."""
    for operation in spelled(Family.HALF):
        kind = operation.type.value
        count = {"fma": 3, "neg": 1, "abs": 1, "tanh": 1, "ex2": 1}.get(operation.opcode, 2)
        name = lower_half.helper_name(operation)
        yield Case(name, (kind,) * count, kind, half_reference(operation))


def half_reference(operation: Operation) -> Callable[..., Array]:
    """The operation on raw 16-bit patterns, its modifiers applied."""
    fmt = FORMATS[operation.type.value]
    propagate = "NaN" in operation.modifiers
    plain: dict[str, Callable[..., Array]] = {
        "add": lambda a, b: rounding.add(fmt, "rn", a, b),
        "sub": lambda a, b: rounding.sub(fmt, "rn", a, b),
        "mul": lambda a, b: rounding.mul(fmt, "rn", a, b),
        "fma": lambda a, b, c: rounding.fma(fmt, "rn", a, b, c),
        "neg": lambda a: formats.canonical(fmt, a ^ np.uint16(fmt.sign_bit)),
        "abs": lambda a: formats.canonical(fmt, formats.magnitude(fmt, a)),
        "min": lambda a, b: formats.minimum(fmt, a, b, propagate_nan=propagate),
        "max": lambda a, b: formats.maximum(fmt, a, b, propagate_nan=propagate),
        "tanh": approx.tanh_f16,
        "ex2": approx.ex2_f16,
    }

    def reference(*operands: Array) -> Array:
        halves = [operand.view(np.uint16) for operand in operands]
        if operation.ftz:
            halves = [formats.flush(fmt, half) for half in halves]
        result = plain[operation.opcode](*halves)
        result = formats.flush(fmt, result) if operation.ftz else result
        return finished(operation, fmt, result).view(operands[0].dtype)

    return reference


def finished(operation: Operation, fmt: FloatFormat, result: Array) -> Array:
    """Apply ``.sat``, ``.satfinite`` and ``.relu``."""
    if "satfinite" in operation.modifiers:
        over = formats.is_infinite(fmt, result)
        result = np.where(over, result - fmt.dtype.type(1), result)
    if "sat" in operation.modifiers:
        result = formats.saturate(fmt, result)
    return formats.relu(fmt, result) if "relu" in operation.modifiers else result


SMALL = {"f16", "bf16", "tf32", "f16x2", "bf16x2"}


def convert_cases() -> Iterator[Case]:
    """``cvt`` with a side of 16 bits, or tf32."""
    for operation in spelled(Family.CONVERT):
        target, source = (operation.types[i].value for i in (0, -1))
        if {target, source} & SMALL:
            count = 2 if target.endswith("x2") else 1
            name = lower_convert.helper_name(operation)
            yield Case(name, (source,) * count, target, convert_reference(operation))


def convert_reference(operation: Operation) -> Callable[..., Array]:
    """Choose by the kinds of source and destination."""
    target, source = (operation.types[i].value for i in (0, -1))
    if target == "tf32":
        finite = "satfinite" in operation.modifiers
        return lambda a: formats.tf32_nearest_away(a, finite=finite)
    if target not in FORMATS:
        dtype = dtype_of(target)
        return lambda a: convert.float_to_integer(FORMATS[source], operation.rounding, a, dtype)
    fmt = FORMATS[target]

    def one(a: Array) -> Array:
        if source not in FORMATS:
            result = convert.integer_to_float(fmt, operation.rounding, a)
            return finished(operation, fmt, result)
        if operation.ftz and source == "f32":
            a = formats.flush(F32, a)
        if operation.rounding in INTEGRAL:
            result = convert.round_to_integral(fmt, operation.rounding, a)
        else:
            result = convert.float_to_float(FORMATS[source], fmt, operation.rounding, a)
        return finished(operation, fmt, result)

    def two(a: Array, b: Array) -> Array:
        return one(a).astype(np.uint32) << np.uint32(16) | one(b)

    return two if target.endswith("x2") else one


# ---------------------------------------------------------------- f32 and f64


def approximate_cases() -> Iterator[Case]:
    """The functions of the special function unit."""
    for opcode, function in approx.UNARY.items():
        for ftz in (False, True):
            if not (ftz and opcode == "tanh"):
                name = f"va_m_{opcode}{'_ftz' if ftz else ''}_f32"
                yield Case(name, ("f32",), "f32", lambda a, f=function, z=ftz: f(a, ftz=z))
    for how, divide in (("approx", approx.div), ("full", approx.div_full)):
        for ftz in (False, True):
            name = f"va_m_div_{how}{'_ftz' if ftz else ''}_f32"
            yield Case(name, ("f32",) * 2, "f32", lambda a, b, f=divide, z=ftz: f(a, b, ftz=z))
    yield Case("va_m_rcp_ftz_f64", ("f64",), "f64", approx.rcp_f64)
    yield Case("va_m_rsqrt_ftz_f64", ("f64",), "f64", approx.rsqrt_f64)
    yield Case("va_m_rsqrt_f64", ("f64",), "f64", full_reciprocal_root)


def full_reciprocal_root(a: Array) -> Array:
    """``rsqrt.approx.f64``."""
    return np.asarray(1.0 / np.sqrt(a.view(np.float64))).view(np.uint64)


DIRECTED = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "div": 2, "rcp": 1, "sqrt": 1}


def directed_cases() -> Iterator[Case]:
    """Toward zero, down and up."""
    modes, kinds = ("rz", "rm", "rp"), ("f32", "f64")
    for (opcode, count), mode, kind in product(DIRECTED.items(), modes, kinds):
        function = getattr(rounding, opcode)
        fmt = FORMATS[kind]
        yield Case(
            f"va_m_{opcode}_{mode}_{kind}",
            (kind,) * count,
            kind,
            lambda *a, f=function, m=mode, t=fmt: f(t, m, *a),
        )
    for mode in modes:
        yield Case(
            f"va_m_cvt_{mode}_f32_f64",
            ("f64",),
            "f32",
            lambda a, m=mode: convert.float_to_float(DOUBLE, F32, m, a),
        )
    for mode, kind, source in product(("rn", *modes), kinds, ("u64", "s64")):
        yield Case(
            f"va_m_cvt_{mode}_{kind}_{source}",
            (source,),
            kind,
            lambda a, m=mode, t=FORMATS[kind]: convert.integer_to_float(t, m, a),
        )


# ---------------------------------------------------------------- fns


def nth_set(mask: Array, base: Array, offset: Array) -> Array:
    """Walk from the base in the direction of the offset (PTX ISA, ``fns``)."""
    found = np.full(len(mask), 0xFFFFFFFF, np.uint32)
    for index, (bits, start, distance) in enumerate(
        zip(mask.tolist(), base.tolist(), offset.tolist(), strict=True)
    ):
        position, left, step = start, max(abs(distance), 1), -1 if distance < 0 else 1
        while 0 <= position < 32:
            left -= bits >> position & 1
            if left == 0:
                found[index] = position
            if left == 0 or distance == 0:
                break
            position += step
    return found


def unique(cases: Iterator[Case]) -> list[Case]:
    """One case a name: a modifier that changes nothing leads to the same function."""
    return list({case.name: case for case in cases}.values())


CASES = [
    *unique(half_cases()),
    *unique(convert_cases()),
    *approximate_cases(),
    *directed_cases(),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_agrees_with_numerics(case: Case) -> None:
    compare(case, operands_of(case))


def test_names_are_distinct() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))


def test_modifiers_left_out_of_a_name_change_nothing() -> None:
    by_name: dict[str, Case] = {}
    for case in convert_cases():
        first = by_name.setdefault(case.name, case)
        operands = [edges(kind) for kind in case.sources]
        with np.errstate(all="ignore"):
            assert np.array_equal(first.expected(*operands), case.expected(*operands)), case.name


def test_fns() -> None:
    rng = np.random.default_rng(7)
    mask = np.concatenate([scattered("u32", RANDOM_COUNT, rng), edges("u32")])
    base = rng.integers(0, 34, len(mask)).astype(np.uint32)
    offset = rng.integers(-18, 19, len(mask)).astype(np.int32)
    offset[:4] = (-(2**31), 2**31 - 1, 32, -33)
    base[4] = 0xFFFFFFFF
    assert np.array_equal(run("va_m_fns", [mask, base, offset], "u32"), nth_set(mask, base, offset))
