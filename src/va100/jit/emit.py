"""Writing LLVM text: values with shapes, and code that is the same for one lane or all 32.

:class:`Emitter` collects lines and turns values from scalar to vector form and back.
:class:`Poly` lets an instruction's lowering be written once: the same text works on ``i32`` and
``<32 x i32>``.  What instructions mean is in :mod:`va100.jit.lower`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from va100.jit.lattice import Shape, uniform, varying
from va100.work import WARP_SIZE

MODULE_TAIL: Final = """
attributes #0 = { nounwind "frame-pointer"="none" "no-trapping-math"="true" }
!0 = !{}
!1 = !{!"branch_weights", i32 1, i32 4000}
!2 = !{!"branch_weights", i32 4000, i32 1}
"""
"""What a module's text ends with."""
FLOAT_NAMES: Final = {16: "half", 32: "float", 64: "double"}
_FLOAT_SUFFIX: Final = {16: "f16", 32: "f32", 64: "f64"}


@dataclass(frozen=True, slots=True)
class Indexed:
    """64 bits a lane as ``base + (extend(index) << shift)``."""

    base: str
    """An ``i64``."""
    index: str
    """A ``<32 x i32>``."""
    shift: int
    signed: bool


@dataclass(slots=True)
class Value:
    """A register's content during emission.

    ``base`` is the scalar of a uniform or affine value; the other forms are made when first
    asked for.  ``dirty`` marks an f32 result whose NaN may not be the canonical one yet.
    """

    shape: Shape
    base: str = ""
    vector: str = ""
    float_base: str = ""
    float_vector: str = ""
    dirty: bool = False
    indexed: Indexed | None = None
    """How the lanes follow from 32-bit ones; never instead of ``vector``."""


@dataclass(slots=True)
class Predicate:
    """A predicate: one ``i1`` when uniform, else a mask of 32 bits."""

    scalar: str = ""
    mask: str = ""
    vector: str = ""
    all_true: str = ""
    """An ``i1`` that holds when every lane's does; known without the vector."""
    all_false: str = ""
    make: Callable[[], str] | None = None
    """Writes the comparison of all lanes, when somebody needs it."""

    @property
    def uniform(self) -> bool:
        """True when all lanes agree by construction."""
        return bool(self.scalar)


@dataclass
class Emitter:
    """Lines of one LLVM function and the counter its names come from."""

    lines: list[str] = field(default_factory=list)
    declared: dict[str, str] = field(default_factory=dict)
    next_name: int = 0

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("  " + text)

    def label(self, name: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{name}:")

    def name(self, prefix: str = "t") -> str:
        """A name not used before."""
        self.next_name += 1
        return f"{prefix}{self.next_name}"

    def op(self, text: str) -> str:
        """Add ``%n = text`` and return ``%n``."""
        name = "%" + self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def declare(self, name: str, signature: str) -> None:
        """Declare an external function once: ``signature`` has ``{}`` where the name goes."""
        self.declared[name] = signature.format("@" + name)

    # ---------------------------------------------------------- values

    def constant(self, shape: Shape) -> Value:
        """The value of a constant shape."""
        return Value(shape, base=str(shape.constant))

    def splat(self, scalar: str, element: str) -> str:
        """Broadcast a scalar."""
        if not scalar.startswith("%"):
            return f"splat ({element} {scalar})"
        one = self.op(f"insertelement <{WARP_SIZE} x {element}> poison, {element} {scalar}, i32 0")
        return self.op(
            f"shufflevector <{WARP_SIZE} x {element}> {one}, <{WARP_SIZE} x {element}> poison, "
            f"<{WARP_SIZE} x i32> zeroinitializer"
        )

    def vector(self, value: Value) -> str:
        """All 32 lanes as integers."""
        if not value.vector:
            element = f"i{value.shape.bits}"
            if value.float_vector:
                value.vector = self._cast(value.float_vector, value.shape.bits, to_float=False)
                return value.vector
            value.vector = self.splat(self.base(value), element)
            if value.shape.offsets:
                offsets = ", ".join(f"{element} {v}" for v in value.shape.offsets)
                value.vector = self.op(f"add <{WARP_SIZE} x {element}> {value.vector}, <{offsets}>")
        return value.vector

    def float_vector(self, value: Value) -> str:
        """All 32 lanes as floating point."""
        if not value.float_vector:
            value.float_vector = self._cast(self.vector(value), value.shape.bits, to_float=True)
        return value.float_vector

    def float_base(self, value: Value) -> str:
        """A uniform value as floating point."""
        if not value.float_base:
            bits = value.shape.bits
            value.float_base = self.op(f"bitcast i{bits} {value.base} to {FLOAT_NAMES[bits]}")
        return value.float_base

    def base(self, value: Value) -> str:
        """The scalar of a uniform or affine value."""
        if not value.base and value.float_base:
            bits = value.shape.bits
            value.base = self.op(f"bitcast {FLOAT_NAMES[bits]} {value.float_base} to i{bits}")
        return value.base

    def _cast(self, vector: str, bits: int, *, to_float: bool) -> str:
        integer, floating = f"<32 x i{bits}>", f"<32 x {FLOAT_NAMES[bits]}>"
        source, target = (integer, floating) if to_float else (floating, integer)
        return self.op(f"bitcast {source} {vector} to {target}")

    def from_vector(self, vector: str, bits: int) -> Value:
        """A varying value."""
        return Value(varying(bits), vector=vector)

    def from_scalar(self, scalar: str, shape: Shape) -> Value:
        """A uniform or affine value."""
        return Value(shape, base=scalar)

    def lane(self, value: Value, index: int) -> str:
        """One lane as a scalar."""
        if value.shape.uniform:
            return self.base(value)
        bits = value.shape.bits
        if value.shape.affine and value.shape.offsets:
            return self.op(f"add i{bits} {value.base}, {value.shape.offsets[index]}")
        return self.op(f"extractelement <32 x i{bits}> {self.vector(value)}, i32 {index}")

    # ---------------------------------------------------------- predicates

    def mask_of(self, predicate: Predicate) -> str:
        """A predicate as 32 bits."""
        if not predicate.mask:
            if predicate.scalar:
                predicate.mask = self.op(f"sext i1 {predicate.scalar} to i32")
            else:
                predicate.mask = self.op(f"bitcast <32 x i1> {self.bools_of(predicate)} to i32")
        return predicate.mask

    def bools_of(self, predicate: Predicate) -> str:
        """A predicate as ``<32 x i1>``."""
        if not predicate.vector and predicate.make is not None and not predicate.mask:
            predicate.vector = predicate.make()
        if not predicate.vector:
            predicate.vector = self.mask_vector(self.mask_of(predicate))
        return predicate.vector

    def mask_vector(self, mask: str) -> str:
        """32 bits as ``<32 x i1>``."""
        if mask == "-1":
            return "splat (i1 true)"
        return self.op(f"bitcast i32 {mask} to <32 x i1>")


@dataclass(slots=True)
class Poly:
    """LLVM text for one lane (``wide`` false) or for 32."""

    emitter: Emitter
    wide: bool

    def integer(self, bits: int) -> str:
        """Integer type."""
        return f"<32 x i{bits}>" if self.wide else f"i{bits}"

    def floating(self, bits: int) -> str:
        """Floating-point type."""
        return f"<32 x {FLOAT_NAMES[bits]}>" if self.wide else FLOAT_NAMES[bits]

    @property
    def boolean(self) -> str:
        """Comparison result type."""
        return "<32 x i1>" if self.wide else "i1"

    def suffix(self, bits: int, *, floating: bool = False) -> str:
        """Intrinsic name suffix: ``i32``, ``v32f32``."""
        name = _FLOAT_SUFFIX[bits] if floating else f"i{bits}"
        return f"v32{name}" if self.wide else name

    def const(self, bits: int, number: int) -> str:
        """An integer constant."""
        number &= (1 << bits) - 1
        if number >> (bits - 1):
            number -= 1 << bits
        return f"splat (i{bits} {number})" if self.wide else str(number)

    def float_const(self, bits: int, pattern: int) -> str:
        """A floating-point constant by its bits (f32 and f64)."""
        return self.op(
            f"bitcast {self.integer(bits)} {self.const(bits, pattern)} to {self.floating(bits)}"
        )

    def op(self, text: str) -> str:
        """Add an instruction."""
        return self.emitter.op(text)

    def call(self, name: str, result: str, arguments: Sequence[tuple[str, str]]) -> str:
        """Call an intrinsic or helper by value; arguments are (type, value)."""
        types = ", ".join(kind for kind, _ in arguments)
        self.emitter.declare(name, f"declare {result} {{}}({types})")
        listed = ", ".join(f"{kind} {value}" for kind, value in arguments)
        return self.op(f"call {result} @{name}({listed})")

    def get(self, value: Value) -> str:
        """A value's integer form."""
        return self.emitter.vector(value) if self.wide else self.emitter.base(value)

    def get_float(self, value: Value) -> str:
        """A value's floating-point form."""
        return self.emitter.float_vector(value) if self.wide else self.emitter.float_base(value)

    def result(self, name: str, shape: Shape) -> Value:
        """Wrap an integer result."""
        return Value(varying(shape.bits), vector=name) if self.wide else Value(shape, base=name)

    def float_result(self, name: str, bits: int, *, dirty: bool = False) -> Value:
        """Wrap a floating-point result."""
        if self.wide:
            return Value(varying(bits), float_vector=name, dirty=dirty)
        return Value(uniform(bits), float_base=name, dirty=dirty)

    def predicate(self, name: str) -> Predicate:
        """Wrap a comparison result."""
        return Predicate(vector=name) if self.wide else Predicate(scalar=name)
