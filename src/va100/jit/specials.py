"""Special registers: what machine code computes or reads from its warp's view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from va100.jit import abi, clock
from va100.jit.context import Context
from va100.jit.emit import Value
from va100.jit.lattice import constant, uniform
from va100.jit.transfer import special_shape
from va100.work import SHARED_UNIT_BYTES

LANES: Final = 32
_AXES: Final = {"x": 0, "y": 1, "z": 2}


def special_value(c: Context, name: str, bits: int) -> Value:
    """A special register's value.

    Raises
    ------
    UnsupportedInstruction
        No such register on the A100, or not executed.
    """
    shape = special_shape(name, c.analysis.block)
    if shape is None:
        raise c.refuse(f"special register {name} is not executed")
    if shape.constant is not None or (shape.affine and shape.low == shape.high == 0):
        return Value(shape, base="0") if shape.affine else c.constant(shape)
    family = name.partition(".")[0]
    if family == "%tid":
        return _thread_index(c, name[-1])
    if family in ("%ctaid", "%nctaid"):
        offset = abi.CTAID if family == "%ctaid" else abi.NCTAID
        return Value(shape, base=_field32(c, offset + 4 * _AXES[name[-1]]))
    return _READERS[family](c, shape.bits)


def _field32(c: Context, offset: int) -> str:
    return c.field(offset, "i32")


def _thread_index(c: Context, axis: str) -> Value:
    """From the linear index of the warp's first lane; see ``special_shape``."""
    block = c.analysis.block
    shape = special_shape(f"%tid.{axis}", block)
    extent = getattr(block, axis)
    plane = {"x": 1, "y": block.x, "z": block.x * block.y}[axis]
    warp = _field32(c, abi.WARP_ID)
    first = c.op(f"shl i32 {warp}, 5")
    if shape is not None and not shape.varying:
        base = first
        if plane > 1:
            base = c.op(f"udiv i32 {base}, {plane}")
        if not (axis == "x" and block.y == block.z == 1):
            base = c.op(f"urem i32 {base}, {extent}")
        return Value(shape, base=base)
    lanes = ", ".join(f"i32 {i}" for i in range(LANES))
    linear = c.op(f"add <32 x i32> {c.splat(first, 'i32')}, <{lanes}>")
    if plane > 1:
        linear = c.op(f"udiv <32 x i32> {linear}, splat (i32 {plane})")
    return c.from_vector(c.op(f"urem <32 x i32> {linear}, splat (i32 {extent})"), 32)


# ------------------------------------------------------------------ the others


def _warp_id(c: Context, bits: int) -> Value:
    return Value(uniform(bits, 0, 31), base=_field32(c, abi.WARP_ID))


def _warp_count(c: Context, bits: int) -> Value:
    return c.constant(constant(bits, 64))


def _sm_id(c: Context, bits: int) -> Value:
    return Value(uniform(bits), base=_field32(c, abi.SMID))


def _sm_count(c: Context, bits: int) -> Value:
    return c.constant(constant(bits, 108))


def _grid_id(c: Context, bits: int) -> Value:
    return Value(uniform(bits), base=c.field(abi.GRIDID, "i64"))


def _clock64(c: Context, bits: int) -> Value:
    return Value(uniform(bits), base=clock.cycles(c))


def _clock_low(c: Context, bits: int) -> Value:
    return Value(uniform(bits), base=c.op(f"trunc i64 {clock.cycles(c)} to i32"))


def _clock_high(c: Context, bits: int) -> Value:
    moved = c.op(f"lshr i64 {clock.cycles(c)}, 32")
    return Value(uniform(bits), base=c.op(f"trunc i64 {moved} to i32"))


def _timer(c: Context, bits: int) -> Value:
    return Value(uniform(bits), base=clock.nanoseconds(c))


def _timer_low(c: Context, bits: int) -> Value:
    return Value(uniform(bits), base=c.op(f"trunc i64 {clock.nanoseconds(c)} to i32"))


def _timer_high(c: Context, bits: int) -> Value:
    moved = c.op(f"lshr i64 {clock.nanoseconds(c)}, 32")
    return Value(uniform(bits), base=c.op(f"trunc i64 {moved} to i32"))


def _dynamic_bytes(c: Context, bits: int) -> Value:
    return Value(uniform(bits), base=_field32(c, abi.DYNAMIC_BYTES))


def _shared_bytes(c: Context, bits: int) -> Value:
    """What the kernel has in whole units, which is where the reserved region begins."""
    whole = _reserved_bound(c)
    if c.symbols.reserved_bytes:
        whole = c.op(f"sub i32 {whole}, {c.symbols.reserved_bytes}")
    return Value(uniform(bits), base=whole)


def _reserved_end(c: Context, bits: int) -> Value:
    return Value(uniform(bits), base=_reserved_bound(c))


def _reserved_bound(c: Context) -> str:
    """The window's end; the checker's window ends with what was asked for."""
    whole = _field32(c, abi.SHARED_BYTES)
    if not c.checked:
        return whole
    more = c.op(f"add i32 {whole}, {SHARED_UNIT_BYTES - 1}")
    return c.op(f"and i32 {more}, {-SHARED_UNIT_BYTES}")


def _envreg1(c: Context, bits: int) -> Value:
    moved = c.op(f"lshr i64 {c.field(abi.ENVREG12, 'i64')}, 32")
    return Value(uniform(bits), base=c.op(f"trunc i64 {moved} to i32"))


def _envreg2(c: Context, bits: int) -> Value:
    low = c.op(f"trunc i64 {c.field(abi.ENVREG12, 'i64')} to i32")
    return Value(uniform(bits), base=low)


_READERS: Final[Mapping[str, Callable[[Context, int], Value]]] = {
    "%warpid": _warp_id,
    "%nwarpid": _warp_count,
    "%smid": _sm_id,
    "%nsmid": _sm_count,
    "%gridid": _grid_id,
    "%clock": _clock_low,
    "%clock_hi": _clock_high,
    "%clock64": _clock64,
    "%globaltimer": _timer,
    "%globaltimer_lo": _timer_low,
    "%globaltimer_hi": _timer_high,
    "%dynamic_smem_size": _dynamic_bytes,
    "%total_smem_size": _shared_bytes,
    "%reserved_smem_offset_begin": _shared_bytes,
    "%reserved_smem_offset_0": _shared_bytes,
    "%reserved_smem_offset_1": _shared_bytes,
    "%reserved_smem_offset_end": _reserved_end,
    "%reserved_smem_offset_cap": _reserved_end,
    "%envreg1": _envreg1,
    "%envreg2": _envreg2,
}
