"""What a lowering sees of the function it is writing: registers, mask, symbols, refusals.

One instance a function.  The converged and the masked world are two passes over the same blocks;
`mask` is ``None`` while all 32 lanes are together.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from va100.errors import UnsupportedInstruction
from va100.jit import abi
from va100.jit.analysis import Analysis
from va100.jit.emit import Emitter, Poly, Predicate, Value
from va100.jit.indexed import extended
from va100.jit.lattice import Shape, constant, extension_is_exact, resize, uniform, varying
from va100.jit.symbols import Symbols
from va100.ptx.effects import CARRY
from va100.ptx.isa.form import Operation
from va100.ptx.program import Immediate, Instruction, Not, Operand, Register, Symbol
from va100.ptx.types import PtxType, Space

FULL: Final = "-1"
MOST_BLOCKS_IN_REGISTERS: Final = 32
"""Above, the masked world's registers live in memory, or compile time explodes."""
MOST_PARAMETERS_IN_REGISTERS: Final = 12
"""Above, kernel parameters are read where they are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a function stands in its variant, and what it may call."""

    file: str
    site_base: int
    region_base: int
    frame: Mapping[str, int]
    local_stride: int
    helpers: frozenset[str]
    specials: Callable[[Context, str, int], Value]


class Context(Emitter):
    """State of the emission of one PTX function."""

    index = 0
    ordered = False
    needs_fibers = False
    mask_may_be_empty = False
    file_bytes = 0
    region_count = 0
    parameters = 0
    allocates = False
    """Whether the function takes memory from its stack."""
    timed = False
    """Whether the kernel looks at the time, so that its warps count what they issue."""
    checked = False
    """Whether the checker is told of accesses and synchronisation."""
    observed = False
    """Whether accesses of some CTAs are told of, for counters."""

    def __init__(self, analysis: Analysis, symbols: Symbols, place: Placement) -> None:
        super().__init__()
        self.analysis = analysis
        self.flow = analysis.flow
        self.symbols = symbols
        self.file = place.file
        self.site_base = place.site_base
        self.region_base = place.region_base
        self.frame = place.frame
        """``.local`` variables of this function: offset in the thread's local memory."""
        self.local_stride = place.local_stride
        self.helpers = place.helpers
        self.specials = place.specials
        self.is_kernel = analysis.flow.function.is_kernel
        self.hoists = self.is_kernel
        """Whether fields are read once, from the first warp's view."""
        self.masked = False
        self.mask: str | None = None
        self.env: dict[str, Value | Predicate] = {}
        self.storage: dict[str, str] = {}
        self.indirect: set[int] = set()
        self.storage_lines: list[str] = []
        self.storage_start: list[str] = []
        self.field_lines: list[str] = []
        self.cta_lines: list[str] = []
        """As field_lines, of what changes from CTA to CTA."""
        self.fields: set[str] = set()
        self.file_in_memory = len(analysis.blocks) > MOST_BLOCKS_IN_REGISTERS
        self.file_lines: list[str] = []
        self.call_words: dict[str, str] = {}
        self.call_entry_lines: list[str] = []
        self.param_offsets: Mapping[str, int] = {}
        self.param_bytes = 0
        self.frame_bytes = 0
        self.returned = FULL
        self.block_mask: str | None = None
        self._arrays: dict[str, int] = {}
        self.scratch: list[str] = []
        self.scratch_names: set[str] = set()

    # ---------------------------------------------------------- the instruction at hand

    @property
    def instruction(self) -> Instruction:
        """Being lowered."""
        return self.flow.instructions[self.index]

    @property
    def site(self) -> int:
        """Number of the instruction in the variant."""
        return self.site_base + self.index

    def new_region(self) -> int:
        """A slot for what an access of this function went to last."""
        self.region_count += 1
        return self.region_base + self.region_count - 1

    def refuse(self, problem: str, hint: str = "") -> UnsupportedInstruction:
        """An error that names the instruction and its line."""
        text = self.instruction.op
        return UnsupportedInstruction(
            f"{problem}: `{text}` in {self.flow.function.name}",
            file=self.file,
            line=self.flow.lines[self.index],
            column=1,
            hint=hint,
        )

    def begin_instruction(self, index: int) -> None:
        """Move to an instruction; scratch arrays of the one before are free again."""
        self.index = index
        self._arrays = {}

    def array(self, element: str, count: int = 32) -> str:
        """Scratch memory for a native function's argument, one per use within an instruction."""
        kind = f"{element}x{count}"
        number = self._arrays.get(kind, 0)
        self._arrays[kind] = number + 1
        name = f"%scratch.{kind}.{number}"
        if name not in self.scratch_names:
            self.scratch_names.add(name)
            self.scratch.append(f"  {name} = alloca [{count} x {element}], align 64")
        return name

    def text(self, content: str) -> str:
        """A zero-terminated string that native functions may print; ASCII without quotes."""
        name = "text." + "".join(ch if ch.isalnum() else "_" for ch in content)
        kind = f"[{len(content) + 1} x i8]"
        self.declare(name, f'{{}} = private unnamed_addr constant {kind} c"{content}\\00"')
        return f"@{name}"

    def report_missing(self, lanes: str, instruction: str) -> None:
        """Fault because only some lanes of the warp execute an instruction of all 32."""
        self.declare("va_h_missing", "declare void {}(ptr, i32, i32, ptr) cold noreturn")
        name = self.text(instruction)
        self.line(f"call void @va_h_missing(ptr %w, i32 {self.site}, i32 {lanes}, ptr {name})")

    def function_symbol(self, name: str) -> str:
        """LLVM name of a device function."""
        return f"func.{self.symbols.addresses[name]}"

    def indirect_symbol(self, count: int) -> str:
        """LLVM name of the dispatcher for calls with a number of parameters."""
        self.indirect.add(count)
        return f"indirect.{count}"

    def is_arrive(self, operation: Operation) -> bool:
        """``barrier.arrive`` does not wait, so lanes need not meet before it."""
        return "arrive" in operation.modifiers

    # ---------------------------------------------------------- masks

    @property
    def lanes(self) -> str:
        """Mask of lanes that act, as an i32."""
        return self.mask if self.mask is not None else FULL

    def poly(self, *operands: Value | Predicate) -> Poly:
        """Scalar text when every operand is uniform, else vector text."""
        wide = any(
            not (o.uniform if isinstance(o, Predicate) else o.shape.uniform) for o in operands
        )
        return Poly(self, wide)

    # ---------------------------------------------------------- reading

    def read(self, operand: Operand | None, bits: int, *, floating: bool = False) -> Value:
        """An operand as data of at least its register's width.

        ``floating`` says how a decimal literal is meant.
        """
        if isinstance(operand, Register):
            return self._read_register(operand.name, bits)
        if isinstance(operand, Immediate):
            return self.constant(constant(bits, immediate_bits(operand, bits, floating=floating)))
        if isinstance(operand, Symbol):
            return self.address_of(operand)
        raise self.refuse(f"operand {operand!r} is not taken here")

    def read_sized(self, operand: Operand | None, kind: PtxType) -> Value:
        """An operand cut or zero-extended to exactly the width of its type."""
        value = self.read(operand, kind.bits, floating=kind.is_float)
        return self.resized(value, kind.bits)

    def resized(self, value: Value, bits: int, *, signed: bool = False) -> Value:
        """Truncate or extend, lane by lane."""
        from_bits = value.shape.bits
        if from_bits == bits:
            return value
        if value.shape.affine and (
            bits < from_bits or extension_is_exact(value.shape, signed=signed)
        ):
            how = "trunc" if bits < from_bits else "sext" if signed else "zext"
            base = self.op(f"{how} i{from_bits} {self.base(value)} to i{bits}")
            return Value(resize(value.shape, bits, signed=signed), base=base)
        p = Poly(self, not value.shape.uniform)
        how = "trunc" if bits < from_bits else "sext" if signed else "zext"
        name = p.op(f"{how} {p.integer(from_bits)} {p.get(value)} to {p.integer(bits)}")
        if p.wide:
            wide = bits == 64 and from_bits == 32
            indexed = extended(self, value, signed=signed) if wide else None
            return Value(varying(bits), vector=name, indexed=indexed)
        known = value.shape.constant
        if known is not None:
            if not signed and known < 0:
                known &= (1 << from_bits) - 1
            return self.constant(constant(bits, known))
        return Value(uniform(bits), base=name)

    def predicate(self, operand: Operand | None) -> Predicate:
        """A predicate operand, ``!p`` included."""
        if isinstance(operand, Not):
            return self.negated(self.predicate(operand.operand))
        if isinstance(operand, Immediate):
            return Predicate(scalar="true" if operand.value else "false")
        if not isinstance(operand, Register):
            raise self.refuse(f"{operand!r} is no predicate")
        return self._read_predicate(operand.name)

    def negated(self, predicate: Predicate) -> Predicate:
        """The opposite in every lane."""
        if predicate.uniform:
            return Predicate(scalar=self.op(f"xor i1 {predicate.scalar}, true"))
        if predicate.make is not None and not predicate.mask and not predicate.vector:
            return self._negated_comparison(predicate)
        if predicate.vector:
            return Predicate(vector=self.op(f"xor <32 x i1> {predicate.vector}, splat (i1 true)"))
        return Predicate(mask=self.op(f"xor i32 {predicate.mask}, -1"))

    def _negated_comparison(self, predicate: Predicate) -> Predicate:
        def make() -> str:
            same = self.bools_of(replace(predicate))
            return self.op(f"xor <32 x i1> {same}, splat (i1 true)")

        return Predicate(all_true=predicate.all_false, all_false=predicate.all_true, make=make)

    def combined(self, how: str, a: Predicate, b: Predicate) -> Predicate:
        """``and``, ``or`` or ``xor`` of two predicates."""
        if a.uniform and b.uniform:
            return Predicate(scalar=self.op(f"{how} i1 {a.scalar}, {b.scalar}"))
        return Predicate(mask=self.op(f"{how} i32 {self.mask_of(a)}, {self.mask_of(b)}"))

    def predicate_register(self, name: str) -> Predicate:
        """A predicate register by name; the carry flag is one."""
        return self._read_predicate(name)

    def write_carry(self, predicate: Predicate) -> None:
        """Assign the carry flag."""
        self.write_predicate(Register(CARRY), predicate)

    def elementwise(self, helper: str, values: Sequence[Value], bits: int) -> Value:
        """Apply a native function to 32 lanes; uniform operands give a uniform result.

        The function takes up to three arrays and one for the result.
        """
        arguments = []
        for value in values:
            kind = f"<32 x i{value.shape.bits}>"
            where = self.array(f"i{value.shape.bits}")
            self.line(f"store {kind} {self.vector(value)}, ptr {where}, align 64")
            arguments.append(where)
        result = self.array(f"i{bits}")
        arguments += [arguments[-1]] * (3 - len(arguments)) + [result]
        self.declare(helper, "declare void {}(ptr, ptr, ptr, ptr)")
        self.line(f"call void @{helper}({', '.join('ptr ' + a for a in arguments)})")
        if all(v.shape.uniform for v in values):
            return Value(uniform(bits), base=self.op(f"load i{bits}, ptr {result}, align 64"))
        loaded = self.op(f"load <32 x i{bits}>, ptr {result}, align 64")
        return Value(varying(bits), vector=loaded)

    def _read_register(self, name: str, bits: int) -> Value:
        held = self.env.get(name)
        if isinstance(held, Value):
            return held
        if name not in self.flow.registers:
            value = self.special(name, bits)
            if name.startswith(("%clock", "%globaltimer")):
                return value  # the next reading is another one
        elif self._is_kept(name):
            value = self._load_register(name)
        else:
            value = self.constant(constant(self.flow.registers[name].bits, 0))
        self.env[name] = value
        return value

    def _is_kept(self, name: str) -> bool:
        """Whether a register that nobody holds is in its place."""
        return name in self.analysis.invariant or name in self.analysis.stored

    def _load_register(self, name: str) -> Value:
        shape = self.shape_of(name)
        where = self.place(name)
        dirty = name in self.analysis.lazy_nan and name not in self.analysis.invariant
        if shape.varying:
            loaded = self.op(f"load <32 x i{shape.bits}>, ptr {where}")
            return Value(shape, vector=loaded, dirty=dirty)
        loaded = self.op(f"load i{shape.bits}, ptr {where}")
        return Value(shape, base=loaded, dirty=dirty)

    def _read_predicate(self, name: str) -> Predicate:
        held = self.env.get(name)
        if isinstance(held, Predicate):
            return held
        if self._is_kept(name):
            if self.predicate_is_scalar(name):
                found = Predicate(scalar=self.op(f"load i1, ptr {self.place(name)}"))
            else:
                found = Predicate(mask=self.op(f"load i32, ptr {self.place(name)}"))
        else:
            found = Predicate(scalar="false")
        self.env[name] = found
        return found

    # ---------------------------------------------------------- writing

    def write(self, operand: Operand | None, value: Value) -> None:
        """Assign a data register under the current mask; ``None`` is the sink."""
        if operand is None:
            return
        if not isinstance(operand, Register):
            raise self.refuse(f"{operand!r} is no destination")
        name = operand.name
        bits = self.flow.registers[name].bits
        value = self.resized(value, bits)
        if value.dirty and (
            name not in self.analysis.lazy_nan or name in self.analysis.invariant
        ):  # once for all who read what never changes
            value = self.clean(value)
        guarded = self.instruction.guard is not None
        if name in self.analysis.invariant:
            shape = self.analysis.shapes[name]
            self.line(f"store i{bits} {self._base_as(value, shape)}, ptr {self.place(name)}")
        elif guarded and self.mask is not None:
            value = self._blend(name, value, bits)
        elif name in self.analysis.stored:
            self._store(name, value, bits)
        self.env[name] = value

    def _blend(self, name: str, value: Value, bits: int) -> Value:
        """Assign in the lanes of the mask only and store."""
        old = self._read_register(name, bits)
        bools = self.mask_vector(self.lanes)
        mixed = self.op(
            f"select <32 x i1> {bools}, <32 x i{bits}> {self.vector(value)}, "
            f"<32 x i{bits}> {self.vector(old)}"
        )
        result = Value(varying(bits), vector=mixed, dirty=value.dirty or old.dirty)
        self._store(name, result, bits)
        return result

    def _base_as(self, value: Value, shape: Shape) -> str:
        """The scalar of a value known to have a shape, however it was computed."""
        if value.shape.offsets == shape.offsets:
            return self.base(value)
        first = self.lane(value, 0)
        offset = (shape.offsets or (0,))[0]
        return self.op(f"sub i{shape.bits} {first}, {offset}") if offset else first

    def _store(self, name: str, value: Value, bits: int) -> None:
        shape = self.shape_of(name)
        where = self.place(name)
        if not shape.varying:
            self.line(f"store i{bits} {self._base_as(value, shape)}, ptr {where}")
            return
        vector = self.vector(value)
        if self.masked and self.block_mask is not None:
            old = self.op(f"load <32 x i{bits}>, ptr {where}")
            bools = self.mask_vector(self.block_mask)
            vector = self.op(
                f"select <32 x i1> {bools}, <32 x i{bits}> {vector}, <32 x i{bits}> {old}"
            )
        self.line(f"store <32 x i{bits}> {vector}, ptr {where}")

    def write_predicate(self, operand: Operand | None, predicate: Predicate) -> None:
        """Assign a predicate register under the current mask."""
        if operand is None:
            return
        if not isinstance(operand, Register):
            raise self.refuse(f"{operand!r} is no predicate destination")
        name = operand.name
        if name in self.analysis.invariant:
            self.line(f"store i1 {predicate.scalar}, ptr {self.place(name)}")
        elif self.instruction.guard is not None and self.mask is not None:
            old = self.mask_of(self._read_predicate(name))
            predicate = Predicate(mask=self._mix(self.lanes, self.mask_of(predicate), old))
            self._store_predicate(name, predicate)
        elif name in self.analysis.stored:
            self._store_predicate(name, predicate)
        self.env[name] = predicate

    def _store_predicate(self, name: str, predicate: Predicate) -> None:
        where = self.place(name)
        if self.predicate_is_scalar(name):
            self.line(f"store i1 {predicate.scalar}, ptr {where}")
            return
        mask = self.mask_of(predicate)
        if self.masked and self.block_mask is not None:
            old = self.op(f"load i32, ptr {where}")
            mask = self._mix(self.block_mask, mask, old)
        self.line(f"store i32 {mask}, ptr {where}")

    def _mix(self, mask: str, new: str, old: str) -> str:
        kept = self.op(f"and i32 {old}, {self.op(f'xor i32 {mask}, -1')}")
        return self.op(f"or i32 {kept}, {self.op(f'and i32 {new}, {mask}')}")

    def clean(self, value: Value) -> Value:
        """Make an f32's NaN the canonical one, 0x7fffffff, before its bits are seen."""
        if not value.dirty:
            return value
        p = Poly(self, not value.shape.uniform)
        x = p.get_float(value)
        odd = p.op(f"fcmp uno {p.floating(32)} {x}, {x}")
        bits = p.op(
            f"select {p.boolean} {odd}, {p.integer(32)} {p.const(32, 0x7FFFFFFF)}, "
            f"{p.integer(32)} {p.get(value)}"
        )
        return p.result(bits, uniform(32))

    # ---------------------------------------------------------- storage

    def shape_of(self, name: str) -> Shape:
        """Shape in which a register is stored in the current world."""
        shape = self.analysis.shapes[name]
        if name in self.analysis.invariant or not self.masked:
            return shape
        return varying(shape.bits)

    def predicate_is_scalar(self, name: str) -> bool:
        """Whether a predicate is stored as one bit in the current world."""
        if name in self.analysis.invariant:
            return True
        return not self.masked and name in self.analysis.uniform_predicates

    def place(self, name: str) -> str:
        """Where a register is stored in the current world."""
        scalar = (
            self.predicate_is_scalar(name)
            if self.is_predicate(name)
            else not self.shape_of(name).varying
        )
        return self.place_as(name, scalar=scalar)

    def place_as(self, name: str, *, scalar: bool, masked: bool | None = None) -> str:
        """Where a register is stored in scalar or in vector form.

        With few blocks both worlds share the vector form and LLVM keeps it in machine registers.
        With many, that would join every register at every block: then the masked world has a
        register file in memory that LLVM cannot see through.
        """
        apart = self.file_in_memory and not scalar and name not in self.analysis.invariant
        in_file = apart and (self.masked if masked is None else masked)
        key = f"{'s' if scalar else 'm' if in_file else 'v'}{name}"
        if key not in self.storage:
            self.storage[key] = f"%r{len(self.storage)}"
            self._declare_place(self.storage[key], name, scalar=scalar, in_file=in_file)
        return self.storage[key]

    def _declare_place(self, place: str, name: str, *, scalar: bool, in_file: bool) -> None:
        if self.is_predicate(name):
            kind, size = ("i1" if scalar else "i32"), 4
        else:
            bits = self.flow.registers[name].bits
            kind, size = (f"i{bits}" if scalar else f"<32 x i{bits}>"), bits * 4
        if in_file:
            self.file_lines.append(f"{place} = getelementptr i8, ptr %file, i64 {self.file_bytes}")
            self.file_bytes += -(-size // 64) * 64
            return
        self.storage_lines.append(f"  {place} = alloca {kind}")
        zero = "zeroinitializer" if kind.startswith("<") else "0"
        self.storage_start.append(f"  store {kind} {zero}, ptr {place}")

    def is_predicate(self, name: str) -> bool:
        """Whether a register is a predicate (the carry flag counts)."""
        return self.flow.registers.get(name, PtxType.PRED) is PtxType.PRED

    # ---------------------------------------------------------- the warp's view of the machine

    def field(self, offset: int, kind: str) -> str:
        """A field of the warp structure, which does not change while a CTA runs.

        Most are the same for all warps of a CTA and are read once.
        """
        per_cta = offset in abi.PER_CTA  # one call may run several
        fixed = "" if per_cta else ", !invariant.load !0"
        if offset in abi.PER_WARP or not self.hoists:
            where = self.op(f"getelementptr i8, ptr {self._view_of(offset)}, i64 {offset}")
            return self.op(f"load {kind}, ptr {where}{fixed}")
        name = f"%field.{offset}"
        if name not in self.fields:
            self.fields.add(name)
            lines = self.cta_lines if per_cta else self.field_lines
            lines += [
                f"  {name}.at = getelementptr i8, ptr %w0, i64 {offset}",
                f"  {name} = load {kind}, ptr {name}.at{fixed}",
            ]
        return name

    def _view_of(self, offset: int) -> str:
        """Where a function finds a field: warps of a CTA lie side by side."""
        if offset not in abi.PER_CTA:
            return "%w"
        index = self.op(f"zext i32 {self.field(abi.WARP_ID, 'i32')} to i64")
        back = self.op(f"mul i64 {index}, {-abi.WARP_STRIDE}")
        return self.op(f"getelementptr i8, ptr %w, i64 {back}")

    def parameter(self, block: str, offset: int, bits: int) -> str:
        """A kernel parameter: read once for all warps of a CTA while there are few."""
        name = f"%param.{offset}.{bits}"
        if name in self.fields:
            return name
        where = f"getelementptr i8, ptr {block}, i64 {offset}"
        load = f"load i{bits}, ptr {{}}, align {bits // 8}, !invariant.load !0"
        if self.parameters == MOST_PARAMETERS_IN_REGISTERS:
            return self.op(load.format(self.op(where)))
        self.parameters += 1
        self.fields.add(name)
        self.field_lines += [f"  {name}.at = {where}", f"  {name} = {load.format(name + '.at')}"]
        return name

    def special(self, name: str, bits: int) -> Value:
        """A special register; filled in by the control lowering at set-up."""
        return self.specials(self, name, bits)

    def address_of(self, symbol: Symbol) -> Value:
        """The address a name stands for, in its own state space (64 bits)."""
        name, offset = symbol.name, symbol.offset
        local = self.flow.variables.get(name)
        if local is not None and local.space is Space.LOCAL:
            return self._frame_address(self.frame[name] + offset)
        if name in self.symbols.shared:
            return self.constant(constant(64, self.symbols.shared[name] + offset))
        if name in self.symbols.ordinals:
            table = self.field(abi.GLOBALS, "ptr")
            slot = self.op(f"getelementptr i64, ptr {table}, i64 {self.symbols.ordinals[name]}")
            address = self.op(f"load i64, ptr {slot}, !invariant.load !0")
            if offset:
                address = self.op(f"add i64 {address}, {offset}")
            return Value(uniform(64), base=address)
        if name in self.symbols.addresses:
            return self.constant(constant(64, self.symbols.addresses[name]))
        if self.is_kernel:
            place = next((o for n, o in self.param_offsets.items() if n == name), None)
            if place is not None:
                params = self.op(f"ptrtoint ptr {self.field(abi.PARAMS, 'ptr')} to i64")
                return Value(uniform(64), base=self.op(f"add i64 {params}, {place + offset}"))
        raise self.refuse(f"the address of `{name}` is not taken here")

    def _frame_address(self, offset: int) -> Value:
        if self.is_kernel:
            return self.constant(constant(64, offset))
        return Value(uniform(64), base=self.op(f"add i64 %frame, {offset}"))


def immediate_bits(operand: Immediate, bits: int, *, floating: bool) -> int:
    """Bit pattern of a literal where ``bits`` bits of data are wanted."""
    if operand.kind == "int":
        if floating:
            return float_pattern(float(operand.value), bits)
        return operand.value
    if operand.kind == "f64" and bits == 32:
        return float_pattern(struct.unpack("<d", struct.pack("<Q", operand.value))[0], 32)
    if operand.kind == "f32" and bits == 64:
        return float_pattern(struct.unpack("<f", struct.pack("<I", operand.value))[0], 64)
    return operand.value


def float_pattern(number: float, bits: int) -> int:
    """Bits of a number as f16, f32 or f64."""
    code, integer = {16: ("<e", "<H"), 32: ("<f", "<I"), 64: ("<d", "<Q")}[bits]
    return int(struct.unpack(integer, struct.pack(code, number))[0])
