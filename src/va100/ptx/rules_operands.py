"""Rules about the operands of one instruction: count, kind, type, range.

Reports to a function it is given; knows the names' types from a resolved body, and nothing of
modules or control flow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from va100.ptx.isa import Operation
from va100.ptx.isa.form import Family
from va100.ptx.isa.signature import Place, arity, places
from va100.ptx.isa.special import PARSED_REGISTERS, SPECIAL_REGISTERS
from va100.ptx.isa.tiles import Tile, product_of, tiles_of
from va100.ptx.printer import print_operand
from va100.ptx.program import (
    Address,
    Immediate,
    Instruction,
    Negative,
    Not,
    Operand,
    Pair,
    Register,
    Symbol,
    TextureAddress,
    Variable,
    Vector,
)
from va100.ptx.types import PtxType, Space
from va100.ptx.video import selector_problem

Report = Callable[[str], None]

_SPECIAL: Final = {**SPECIAL_REGISTERS, **PARSED_REGISTERS}
_BITS: Final = {8: "b8", 16: "b16", 32: "b32", 64: "b64", 128: "b128"}
_SINKS: Final = frozenset({"atom", "mbarrier", "mov"})
_RELAXED: Final = frozenset({"ld", "ldu", "st", "cvt"})
_PACKED: Final = frozenset(
    {
        PtxType.F16X2, PtxType.BF16, PtxType.BF16X2, PtxType.TF32, PtxType.U16X2, PtxType.S16X2,
        PtxType.E4M3X2, PtxType.E5M2X2, PtxType.F32X2,
    }
)  # fmt: skip
_NEVER_WIDER: Final = frozenset({PtxType.BF16, PtxType.BF16X2, PtxType.TF32})
_COUNTS: Final = {1: "one operand", 2: "two operands", 3: "three operands", 4: "four operands"}
_MAX_VECTOR_BITS: Final = 128
_ADDRESS_OFFSET: Final = 1 << 31
_RANGES: Final = {
    "lop3": (0, 255, "the truth table"),
    "pmevent": (0, 0xFFFF, "the event"),
    "cp": (0, (1 << 31) - 1, "the number of groups"),
}
_BARRIERS: Final = 16


class OperandRules:
    """Checks instructions of one function.

    Parameters
    ----------
    registers, variables
        Of the resolved function.
    module_variables
        By name.
    functions
        Names of the module's functions, whose addresses are values too.
    """

    def __init__(
        self,
        registers: Mapping[str, PtxType],
        variables: Mapping[str, Variable],
        module_variables: Mapping[str, Variable],
        functions: frozenset[str],
    ) -> None:
        self._registers = registers
        self._variables = variables
        self._module_variables = module_variables
        self._functions = functions

    def check(self, instruction: Instruction, operation: Operation, report: Report) -> None:
        """Check one instruction; ``call`` is checked elsewhere but for its guard."""
        guard = instruction.guard
        if guard is not None and self._type_of(guard.register) is not PtxType.PRED:
            report(f"the guard {guard.register!r} is no predicate")
        if operation.opcode == "call":
            return
        count = len(instruction.operands)
        least, most = arity(operation)
        if not least <= count <= most:
            wanted = _COUNTS.get(least, f"{least} operands") if least else "no operand"
            upto = f" to {most}" if most > least else ""
            report(f"{operation.text} takes {wanted}{upto}, {count} given")
            return
        for place, operand in zip(places(operation, count), instruction.operands, strict=True):
            self._place(operation, place, operand, report)
        if operation.opcode == "mov":
            self._move(operation, instruction, report)
        if operation.form.family is Family.VIDEO and (
            problem := selector_problem(operation, instruction.operands)
        ):
            report(problem)
        if operation.form.family is Family.MATRIX:
            self._tiles(operation, instruction, report)
        self._ranges(operation, instruction, report)

    # -- one operand

    def _place(
        self, operation: Operation, place: Place, operand: Operand | None, report: Report
    ) -> None:
        checks = _CHECKS.get(place.letter, OperandRules._source)
        checks(self, operation, place, operand, report)

    def _destination(
        self, operation: Operation, place: Place, operand: Operand | None, report: Report
    ) -> None:
        if isinstance(operand, Pair) and place.pair:
            if operand.first is not None:
                self._destination(operation, place, operand.first, report)
            second = operand.second
            if second is not None and self._register_type(second) is not PtxType.PRED:
                report(f"{_text(second)} after '|' is no predicate")
            return
        if isinstance(operand, Vector) and operation.form.family in (Family.TEXTURE, Family.MATRIX):
            return
        if operand is None:
            if operation.opcode not in _SINKS and not place.pair:
                report(f"{operation.text} cannot discard its result into '_'")
            return
        if not isinstance(operand, Register) or operand.name in _SPECIAL:
            report(f"the destination of {operation.text} is a register, not {_text(operand)}")
            return
        self._agree(operation, place.type, operand, report)

    def _source(
        self, operation: Operation, place: Place, operand: Operand | None, report: Report
    ) -> None:
        if isinstance(operand, Register | Immediate | Symbol):
            self._agree(operation, place.type, operand, report)
        elif isinstance(operand, Negative) and operation.form.family is Family.VIDEO:
            return
        elif isinstance(operand, Not) and place.type is PtxType.PRED:
            report(f"{operation.text} takes no negated predicate here")
        elif isinstance(operand, Vector) and operation.form.family in (
            Family.TEXTURE,
            Family.MATRIX,
            Family.ASYNC,
        ):
            return
        else:
            report(f"{operation.text} takes a register or a constant, not {_text(operand)}")

    def _predicate(
        self, operation: Operation, place: Place, operand: Operand | None, report: Report
    ) -> None:
        inner = operand.operand if isinstance(operand, Not) else operand
        if self._register_type(inner) is not PtxType.PRED:
            report(f"{operation.text} takes a predicate, not {_text(operand)}")

    def _number(
        self, operation: Operation, place: Place, operand: Operand | None, report: Report
    ) -> None:
        if not isinstance(operand, Immediate) or operand.kind != "int":
            report(f"{operation.text} takes an integer constant, not {_text(operand)}")
        elif operation.opcode in _RANGES:
            low, high, what = _RANGES[operation.opcode]
            if not low <= operand.value <= high:
                report(f"{what} is {low} to {high}, not {operand.value}")

    def _tiles(self, operation: Operation, instruction: Instruction, report: Report) -> None:
        """Registers of matrix operands: how many, how wide; and the selector of sparse ones."""
        stores = "store" in operation.modifiers
        given = instruction.operands[1 if stores else 0 :]
        for index, (tile, operand) in enumerate(zip(tiles_of(operation), given, strict=False)):
            self._tile(operation, tile, operand, report, is_source=stores or index > 0)
        if operation.opcode == "mma" and len(instruction.operands) > 5:
            selector, most = instruction.operands[5], product_of(operation).selectors - 1
            if isinstance(selector, Immediate) and not 0 <= selector.value <= most:
                report(f"the sparsity selector is 0 to {most} here, not {selector.value}")

    def _tile(
        self,
        operation: Operation,
        tile: Tile,
        operand: Operand | None,
        report: Report,
        *,
        is_source: bool,
    ) -> None:
        if not isinstance(operand, Vector) or len(operand.elements) != tile.registers:
            wanted = f"{operation.text} takes a vector of {tile.registers} for {tile.name}"
            report(f"{wanted}, not {_text(operand)}")
            return
        kind = PtxType(f"b{tile.register_bits}")
        for element in operand.elements:
            if isinstance(element, Register):
                self._agree(operation, kind, element, report)
            elif not is_source or not isinstance(element, Immediate):
                report(f"{tile.name} of {operation.text} is in registers, not {_text(element)}")

    def _label(
        self, operation: Operation, place: Place, operand: Operand | None, report: Report
    ) -> None:
        if not isinstance(operand, Symbol):
            report(f"{operation.text} takes a label, not {_text(operand)}")

    def _moved(
        self, operation: Operation, place: Place, operand: Operand | None, report: Report
    ) -> None:
        if operation.form.family in (Family.TEXTURE, Family.MATRIX) or operation.opcode == "mov":
            return
        if operation.vector == 1:
            if isinstance(operand, Vector):
                report(f"{operation.text} takes one register, not a vector")
            elif operation.opcode in ("ld", "ldu"):
                self._destination(operation, place, operand, report)
            else:
                self._source(operation, place, operand, report)
            return
        if not isinstance(operand, Vector) or len(operand.elements) != operation.vector:
            report(f"{operation.text} takes a vector of {operation.vector}, not {_text(operand)}")
            return
        if place.type is not None and place.type.bits * operation.vector > _MAX_VECTOR_BITS:
            wide = f"{operation.text} moves more than 16 bytes"
            report(f"{wide}, which needs sm_100; the A100 is sm_80")
        for element in operand.elements:
            if operation.opcode in ("ld", "ldu"):
                if element is not None:
                    self._destination(operation, place, element, report)
            else:
                self._source(operation, place, element, report)

    def _memory(
        self, operation: Operation, place: Place, operand: Operand | None, report: Report
    ) -> None:
        if isinstance(operand, TextureAddress):
            if operation.form.family not in (Family.TEXTURE, Family.ASYNC):
                report(f"{operation.text} takes a plain address, not {_text(operand)}")
            return
        if not isinstance(operand, Address):
            report(f"{operation.text} takes an address in [ ], not {_text(operand)}")
            return
        if not -_ADDRESS_OFFSET <= operand.offset < _ADDRESS_OFFSET and operand.base is not None:
            report(f"the offset {operand.offset} does not fit in 32 bits")
        base = operand.base
        if isinstance(base, Register):
            kind = self._type_of(base.name)
            if kind is not None and (kind.is_float or kind.bits not in (32, 64)):
                report(f"{base.name!r} (.{kind.value}) cannot hold an address")
        elif isinstance(base, Symbol) and operation.form.family is not Family.TEXTURE:
            self._symbol_space(operation, base, report)

    def _symbol_space(self, operation: Operation, base: Symbol, report: Report) -> None:
        variable = self._variable(base.name)
        if variable is None:
            if base.name not in self._functions:
                report(f"{base.name!r} is no variable")
            return
        space = operation.space
        if operation.form.family in (Family.ASYNC, Family.MATRIX):
            return  # several spaces in one operation
        if space in (None, Space.GENERIC):
            if variable.space in (Space.PARAM, Space.REG):
                where = f"{base.name!r} is in .{variable.space.value}"
                report(f"{where}, which {operation.text} cannot reach")
        elif variable.space is not space:
            report(f"{base.name!r} is in .{variable.space.value}, not in .{space.value}")

    # -- types

    def _agree(
        self, operation: Operation, kind: PtxType | None, operand: Operand, report: Report
    ) -> None:
        if kind is None:
            return
        if isinstance(operand, Immediate):
            _constant_agrees(operation, kind, operand, report)
        elif isinstance(operand, Symbol):
            self._symbol_value(operation, kind, operand, report)
        elif isinstance(operand, Register):
            own = self._type_of(operand.name)
            if own is None:
                return
            if operand.name in _SPECIAL:
                fits = not kind.is_float and kind.bits <= own.bits
            else:
                fits = agrees(kind, own, relaxed=operation.opcode in _RELAXED)
            if not fits:
                wanted = f"{operation.text} takes .{kind.value} here"
                report(f"{operand.name!r} is .{own.value}, {wanted}")

    def _symbol_value(
        self, operation: Operation, kind: PtxType, symbol: Symbol, report: Report
    ) -> None:
        known = symbol.name in self._functions or self._variable(symbol.name) is not None
        if not known:
            report(f"{symbol.name!r} is a label or list, not a value")
        elif kind.is_float or kind.bits not in (32, 64):
            report(f"{operation.text} cannot take the address of {symbol.name!r}")

    def _move(self, operation: Operation, instruction: Instruction, report: Report) -> None:
        kind = operation.type
        destination, source = instruction.operands
        if operation.vector > 1:
            for operand in instruction.operands:
                self._whole_vector(operation, operand, report)
            return
        for operand, is_source in ((destination, False), (source, True)):
            if isinstance(operand, Vector):
                self._packing(operation, operand, report, is_source=is_source)
            elif is_source:
                if isinstance(operand, Not):
                    report("mov takes no negated predicate; use not.pred")
                else:
                    self._source(operation, Place("a", kind), operand, report)
            else:
                self._destination(operation, Place("d", kind), operand, report)
        if isinstance(destination, Vector) and isinstance(source, Vector):
            report("mov packs or unpacks; it does not take two vectors")

    def _whole_vector(self, operation: Operation, operand: Operand | None, report: Report) -> None:
        """A side of a move of vectors, element by element."""
        elements = operand.elements if isinstance(operand, Vector) else ()
        if len(elements) != operation.vector:
            report(f"{operation.text} moves {operation.vector} elements on both sides")
        elif operation.vector * operation.type.bits > _MAX_VECTOR_BITS:
            report(f"{operation.text} is wider than {_MAX_VECTOR_BITS} bits")
        for element in elements:
            if element is not None:
                self._agree(operation, operation.type, element, report)

    def _packing(
        self, operation: Operation, vector: Vector, report: Report, *, is_source: bool
    ) -> None:
        kind = operation.type
        count = len(vector.elements)
        if not kind.is_bits or count not in (2, 4) or kind.bits // count < 8:
            report(f"{operation.text} cannot move {count} elements; use .b16 to .b128 and 2 or 4")
            return
        part = PtxType(_BITS[kind.bits // count])
        for element in vector.elements:
            if is_source and element is None:
                report("'_' cannot be packed")
            elif element is not None and not isinstance(element, Register | Immediate):
                report(f"{_text(element)} cannot stand in a packed move")
            elif element is not None:
                self._agree(operation, part, element, report)

    def _ranges(self, operation: Operation, instruction: Instruction, report: Report) -> None:
        if operation.opcode not in ("bar", "barrier") or "warp" in operation.modifiers:
            return
        operands = instruction.operands
        at = 1 if "red" in operation.modifiers else 0
        number = operands[at]
        if isinstance(number, Immediate) and not 0 <= number.value < _BARRIERS:
            report(f"barrier {number.value} does not exist; there are 16, from 0")
        threads = operands[at + 1] if len(operands) > at + 1 else None
        if isinstance(threads, Immediate) and (threads.value <= 0 or threads.value % 32):
            report(f"a barrier's thread count is a multiple of 32, not {threads.value}")

    # -- names

    def _register_type(self, operand: Operand | None) -> PtxType | None:
        return self._type_of(operand.name) if isinstance(operand, Register) else None

    def _type_of(self, name: str) -> PtxType | None:
        found = self._registers.get(name) or _SPECIAL.get(name)
        return found or self._registers.get(name.partition(".")[0])

    def _variable(self, name: str) -> Variable | None:
        return self._variables.get(name) or self._module_variables.get(name)


_CHECKS: Final = {
    "m": OperandRules._memory,
    "l": OperandRules._label,
    "d": OperandRules._destination,
    "v": OperandRules._moved,
    "p": OperandRules._predicate,
    "i": OperandRules._number,
}
"""Letter of the place to its check; other letters are sources."""


@cache
def agrees(kind: PtxType, own: PtxType, *, relaxed: bool = False) -> bool:
    """Tell whether a register of type ``own`` may stand where ``kind`` is wanted.

    ``relaxed`` is for ``ld``, ``st`` and ``cvt``, whose registers may be wider than the type.
    """
    if PtxType.PRED in (kind, own):
        return kind is own
    if kind is own:
        return True
    if own.bits > kind.bits and relaxed and kind not in _NEVER_WIDER:
        return not own.is_float and (not kind.is_float or own.is_bits)
    if own.bits != kind.bits:
        return False
    if own.is_bits or kind.is_bits:
        return True
    if kind in _PACKED:
        return own.is_integer or own in _PACKED
    return kind.is_integer and own.is_integer


def _constant_agrees(
    operation: Operation, kind: PtxType, constant: Immediate, report: Report
) -> None:
    if kind is PtxType.PRED:
        if constant.kind != "int":
            report(f"{operation.text} takes a predicate, not {_text(constant)}")
    elif constant.kind == "int":
        if kind.is_float and kind not in _PACKED and kind is not PtxType.F16:
            report(
                f"{operation.text} takes a floating-point constant such as 0f3F800000, "
                f"not {constant.value}"
            )
    elif kind.is_integer:
        report(f"{operation.text} takes an integer constant, not {_text(constant)}")
    elif constant.kind == "f32" and kind.bits == 64:
        report(f"{operation.text} takes a 64-bit constant such as 0d3FF0000000000000")
    elif kind.bits < 32:
        report(f"{operation.text} takes its bits as an integer, not {_text(constant)}")


def _text(operand: Operand | None) -> str:
    match operand:
        case Address() | TextureAddress():
            return "an address"
        case Vector(elements):
            return f"a vector of {len(elements)}"
        case Pair():
            return "a pair 'd|p'"
        case Immediate():
            return print_operand(operand)
        case _:
            return repr(print_operand(operand))
