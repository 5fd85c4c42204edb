"""One instruction issued by a group of lanes: what an evaluator sees of the machine.

Reads operands, resolves addresses, writes results under the mask.  What an instruction means is
in the family modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from va100.errors import DeviceFault, IllegalAddress, IllegalInstruction, MisalignedAddress
from va100.ptx.program import Address, Immediate, Not, Operand, Register, Symbol
from va100.ptx.types import PtxType, Space
from va100.reference import special
from va100.reference.code import Home, Step, missing_symbol, register_type
from va100.reference.lanes import (
    PRED,
    RAW,
    U32,
    U64,
    LaneMask,
    Lanes,
    full,
    lane_mask,
    resize,
)
from va100.work import WARP_SIZE

if TYPE_CHECKING:
    from va100.reference.frame import Frame, Group
    from va100.reference.warp import Warp

CARRY: Final = "%cc"
"""The carry flag, kept beside the registers."""

_OFFSET_SPACES: Final = (Space.SHARED, Space.LOCAL)


class Issue:
    """A step, the lanes that execute it, and where their state is."""

    __slots__ = ("bits", "frame", "group", "mask", "step", "warp")

    def __init__(self, warp: Warp, group: Group, step: Step, bits: int) -> None:
        self.warp = warp
        self.group = group
        self.frame: Frame = group.frame
        self.step = step
        self.bits = bits
        self.mask: LaneMask = lane_mask(bits)

    # ------------------------------------------------------------ operands

    def read(self, operand: Operand | None, ptx_type: PtxType) -> Lanes:
        """Raw bits of a source operand, as wide as its type."""
        return self.read_raw(operand, RAW[ptx_type])

    def read_raw(self, operand: Operand | None, dtype: np.dtype[Any]) -> Lanes:
        """Raw bits of a source operand; a wider register is cut."""
        if isinstance(operand, Register):
            return resize(self._register(operand.name), dtype)
        if isinstance(operand, Immediate):
            return self.frame.code.immediate(operand, dtype)
        if isinstance(operand, Symbol):
            return resize(self._named_value(operand), dtype)
        if isinstance(operand, Not):
            return ~resize(self._register(operand.operand.name), dtype)
        raise self.broken(f"operand {operand!r} is no value")

    def predicate(self, operand: Operand | None) -> Lanes:
        """A predicate operand, perhaps negated."""
        return self.read_raw(operand, PRED)

    def write(self, operand: Operand | None, value: Lanes, *, extend_sign: bool = False) -> None:
        """Write a result into the executing lanes of a register; ``_`` swallows it."""
        if operand is None:
            return
        if not isinstance(operand, Register):
            raise self.broken(f"operand {operand!r} is no destination")
        dtype = RAW[register_type(self.frame.code, operand.name)]
        self.put(operand.name, resize(value, dtype, extend_sign=extend_sign))

    def put(self, name: str, value: Lanes) -> None:
        """Replace the executing lanes of a register."""
        registers = self.frame.registers
        old = registers.get(name)
        if self.bits != self.warp.all_bits:
            old = np.zeros_like(value) if old is None else old
            value = np.where(self.mask, value, old)
        registers[name] = value

    def carry(self) -> Lanes:
        """The carry flag."""
        found = self.frame.registers.get(CARRY)
        return full(0, PRED) if found is None else found

    def _register(self, name: str) -> Lanes:
        found = self.frame.registers.get(name)
        if found is not None:
            return found
        declared = self.frame.code.flow.registers.get(name)
        if declared is not None:
            return np.zeros(WARP_SIZE, RAW[declared])
        return special.read(self, name)

    # ------------------------------------------------------------ addresses

    def _named_value(self, symbol: Symbol) -> Lanes:
        """What ``mov`` makes of a name; a function's own parameter then lies in local memory."""
        value = self.symbol_value(symbol)
        place = self.frame.code.places[symbol.name]
        if place.home is Home.FRAME and self._is_param(symbol.name):
            return value - self.warp.local_bases
        return value

    def symbol_value(self, symbol: Symbol) -> Lanes:
        """Where a name lies: its address in its own space, or a code address."""
        place = self.frame.code.places.get(symbol.name)
        if place is None:
            raise missing_symbol(symbol.name)
        value = place.value + symbol.offset
        if place.home is Home.FRAME:
            offsets = self.frame.base + np.uint64(value)
            is_param = self._is_param(symbol.name)
            return offsets + self.warp.local_bases if is_param else offsets
        if place.home is Home.PARAM:
            value += self.warp.cta.launch.params_address
        return full(value, U64)

    def _is_param(self, name: str) -> bool:
        """Whether a frame variable is a parameter; those are addressed as generic memory."""
        variable = self.frame.code.flow.variables.get(name)
        return variable is None or variable.space is Space.PARAM

    def address(self, operand: Operand | None, space: Space) -> Lanes:
        """Generic addresses of a memory operand in a state space."""
        if not isinstance(operand, Address):
            raise self.broken(f"operand {operand!r} is no address")
        if operand.base is None:
            offset = full(operand.offset, U64)
        elif isinstance(operand.base, Register):
            # A 32-bit base counts as unsigned; the sum wraps like the address it makes.
            base = resize(self._register(operand.base.name), U64)
            offset = base + np.uint64(operand.offset & 0xFFFFFFFFFFFFFFFF)
            if space is Space.PARAM and not self.frame.code.flow.function.is_kernel:
                space = self._space_of_parameter(offset)
            if self._register(operand.base.name).dtype == U32 and space in _OFFSET_SPACES:
                offset = offset & np.uint64(0xFFFFFFFF)
        else:
            offset = self.symbol_value(
                Symbol(operand.base.name, operand.base.offset + operand.offset)
            )
        return self.to_generic(offset, space)

    def _space_of_parameter(self, offset: Lanes) -> Space:
        """A function reaches its own parameters at local addresses, the kernel at generic ones."""
        local = offset < np.uint64(self.warp.cta.launch.local_bytes)
        return Space.LOCAL if local[self.mask].all() else Space.PARAM

    def to_generic(self, value: Lanes, space: Space) -> Lanes:
        """Addresses in a space as generic addresses."""
        if space is Space.SHARED:
            return value + np.uint64(self.warp.cta.shared_address)
        if space is Space.LOCAL:
            return value + self.warp.local_bases
        return value

    def from_generic(self, value: Lanes, space: Space) -> Lanes:
        """Generic addresses as addresses in a space."""
        if space is Space.SHARED:
            return value - np.uint64(self.warp.cta.shared_address)
        if space is Space.LOCAL:
            return value - self.warp.local_bases
        return value

    def check(self, addresses: Lanes, space: Space, size_bytes: int, align: int = 0) -> None:
        """Fault when an executing lane's access is misaligned or illegal.

        Parameters
        ----------
        addresses : (32,) uint64, generic
        align : int
            Needed alignment; 0 for the size itself.
        """
        active = addresses[self.mask]
        wrong = active % np.uint64(align or size_bytes) != 0
        if wrong.any():
            lane = self.lane_at(int(np.flatnonzero(wrong)[0]))
            raise MisalignedAddress(
                space=space.value,
                address=int(addresses[lane]),
                size=align or size_bytes,
                **self.place(lane),
            )
        bad = self._first_illegal(active, space, size_bytes)
        if bad >= 0:
            self.illegal(self.lane_at(bad), int(active[bad]), space, size_bytes)

    def _first_illegal(self, active: Lanes, space: Space, size_bytes: int) -> int:
        """Index among the active addresses of the first illegal one, or -1."""
        cta = self.warp.cta
        if space is Space.SHARED:
            offsets = active - np.uint64(cta.shared_address)
            extent = cta.shared_bytes
        elif space is Space.LOCAL:
            offsets = active - self.warp.local_bases[self.mask]
            extent = cta.launch.local_bytes
        else:
            return cta.launch.storage.first_illegal(active, size_bytes)
        # An address below the window wraps to a huge offset.
        last = extent - size_bytes
        found = np.flatnonzero(offsets > np.uint64(last)) if last >= 0 else np.zeros(1, np.int64)
        return int(found[0]) if found.size else -1

    # ------------------------------------------------------------ faults

    def lane_at(self, position: int) -> int:
        """Lane of the n-th executing one."""
        return int(np.flatnonzero(self.mask)[position])

    def place(self, lane: int | None = None) -> dict[str, Any]:
        """The facts of a fault: kernel, CTA, thread, line, instruction."""
        lane = self.lane_at(0) if lane is None else lane
        return self.warp.place(self.frame, self.step, lane)

    def illegal(self, lane: int, address: int, space: Space, size_bytes: int) -> NoReturn:
        """Fault on an illegal address."""
        cta = self.warp.cta
        if space is Space.SHARED:
            at = address - cta.shared_address
            nearest = f"offset {at} of {cta.shared_bytes} bytes of shared memory"
            address = at
        elif space is Space.LOCAL:
            address -= int(self.warp.local_bases[lane])
            nearest = f"offset {address} of {cta.launch.local_bytes} bytes of local memory"
        else:
            nearest = cta.launch.storage.arena.describe(address)
        raise IllegalAddress(
            space=space.value,
            address=address & 0xFFFFFFFFFFFFFFFF,
            size=size_bytes,
            nearest=nearest,
            **self.place(lane),
        )

    def broken(self, reason: str, lane: int | None = None) -> DeviceFault:
        """The fault of an instruction that cannot be executed as it stands."""
        return IllegalInstruction(reason, **self.place(lane))
