"""The tree a PTX text parses into: frozen, typed, every part knowing its place in the text.

What is written, not what it means: opcode and modifiers stay one string (``ld.global.v2.f32``),
which :func:`va100.ptx.isa.decode` looks up.  Names are kept as spelled; scopes are resolved by
:mod:`va100.ptx.cfg`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from va100.ptx.types import PtxType, Space


class Span(NamedTuple):
    """Character offsets into :attr:`PtxModule.source`, end exclusive."""

    start: int
    end: int


# ---------------------------------------------------------------- operands


class Register(NamedTuple):
    """A register or special register: ``%r1``, ``%tid.x``; ``component`` as in ``%v.x``."""

    name: str


class Immediate(NamedTuple):
    """A literal: an ``int`` (two's complement value as written, may be negative) or raw float bits.

    ``kind`` is ``"int"`` (``value`` is the integer), ``"f32"``/``"f64"`` (``value`` is the bit
    pattern of a ``0f…``/``0d…`` or decimal literal; decimal literals are f64).
    """

    value: int
    kind: str


class Symbol(NamedTuple):
    """A name that is no register: variable, label, function, with a constant byte offset."""

    name: str
    offset: int = 0


class Address(NamedTuple):
    """``[base+offset]``; ``base`` is a Register, a Symbol or ``None`` (absolute)."""

    base: Register | Symbol | None
    offset: int


class Vector(NamedTuple):
    """``{a, b, c, d}``; elements are registers, immediates or ``None`` for the sink ``_``."""

    elements: tuple[Operand | None, ...]


class Pair(NamedTuple):
    """``d|p``: a destination and a predicate destination; either may be ``None`` for ``_``."""

    first: Operand | None
    second: Operand | None


class Not(NamedTuple):
    """``!p`` used as an operand."""

    operand: Register


class Negative(NamedTuple):
    """``-r`` used as an operand; only video instructions take it."""

    operand: Register


class TextureAddress(NamedTuple):
    """``[tex, {x, y}]`` or ``[tex, sampler, {x, y}]``, also tensor forms: parts as written."""

    parts: tuple[Operand, ...]


class CallArguments(NamedTuple):
    """The parenthesised list of a ``call``: ``(a, b)``."""

    elements: tuple[Operand | None, ...]


InitialElement = Immediate | Symbol | tuple[str | int, Symbol | Immediate]

Operand = (
    Register
    | Immediate
    | Symbol
    | Address
    | Vector
    | Pair
    | Not
    | Negative
    | TextureAddress
    | CallArguments
)
"""``None`` stands for the sink ``_`` wherever an operand is optional."""


class Guard(NamedTuple):
    """``@p`` or ``@!p``."""

    register: str
    negated: bool


# ---------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction as written.

    ``op`` is opcode and modifiers in one string, without blanks: ``"ld.global.v2.f32"``.
    ``call`` operands, in order: return list (``CallArguments`` or absent), target (``Symbol`` or
    ``Register``), argument list (``CallArguments``, perhaps empty), prototype or target table
    (``Symbol`` or absent); absent ones are ``None`` so that there are always four.
    """

    op: str
    operands: tuple[Operand | None, ...]
    guard: Guard | None
    span: Span

    @property
    def opcode(self) -> str:
        """The part of ``op`` before the first dot."""
        return self.op.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Label:
    """``name:``."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class RegisterDecl:
    """``.reg .b32 %r<10>, %x;`` — ``count`` is ``None`` for a plain name; ``vector`` 1, 2 or 4."""

    type: PtxType
    names: tuple[tuple[str, int | None], ...]
    span: Span
    vector: int = 1


@dataclass(frozen=True, slots=True)
class Initializer:
    """An initialiser flattened to elements.

    Each element is an ``Immediate``, a ``Symbol`` (its address), ``("generic", Symbol)`` for
    ``generic(x)``, or ``(mask, Symbol)`` for ``0xFF(x)``-style byte extraction.  A sampler's or
    texture's settings are ``("filter_mode", Symbol("linear"))`` or with an ``Immediate``.
    Inner braces that give fewer elements than their dimension are filled with zeros; the end of
    the list may be short, and what is missing is zero.  (``Immediate`` and ``Symbol`` are tuples
    themselves: test for them before the pairs.)
    """

    elements: tuple[InitialElement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable or parameter declaration.

    ``shape`` is ``()`` for a scalar, ``(0,)`` for an unsized array ``x[]``.  ``linkage`` is one of
    ``""``, ``extern``, ``visible``, ``weak``, ``common``.  ``pointer`` holds ``.ptr`` attributes.
    """

    name: str
    space: Space
    type: PtxType
    span: Span
    align: int | None = None
    vector: int = 1
    shape: tuple[int, ...] = ()
    initializer: Initializer | None = None
    linkage: str = ""
    managed: bool = False
    attributes: tuple[str, ...] = ()
    pointer: PointerAttribute | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole variable; 0 when unsized."""
        total = self.type.size_bytes * self.vector
        for extent in self.shape:
            total *= extent
        return total

    @property
    def alignment_bytes(self) -> int:
        """Declared alignment, else the natural one."""
        return self.align or self.type.size_bytes * self.vector


class PointerAttribute(NamedTuple):
    """``.ptr .space .align n`` of a kernel parameter."""

    space: Space
    align: int


@dataclass(frozen=True, slots=True)
class Location:
    """``.loc file line column`` with optional inlining: ``function_name`` and ``inlined_at``.

    ``intermediate`` marks ``.loc_intermediate``, the place in a compiler's own form.
    """

    file: int
    line: int
    column: int
    span: Span
    function_name: str = ""
    inlined_at: tuple[int, int, int] | None = None
    intermediate: bool = False


@dataclass(frozen=True, slots=True)
class Pragma:
    """``.pragma "text";``."""

    texts: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class CallPrototype:
    """``name: .callprototype (ret) _ (params);``."""

    name: str
    returns: tuple[Variable, ...]
    params: tuple[Variable, ...]
    span: Span
    noreturn: bool = False
    directives: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class TargetList:
    """``name: .branchtargets a, b;`` or ``.calltargets``."""

    name: str
    kind: str
    targets: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Scope:
    """``{ … }`` inside a body."""

    body: tuple[Statement, ...]
    span: Span


Statement = (
    Instruction
    | Label
    | RegisterDecl
    | Variable
    | Location
    | Pragma
    | CallPrototype
    | TargetList
    | Scope
)


# ---------------------------------------------------------------- module


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A ``.entry`` kernel or ``.func`` function; ``body`` is ``None`` for a declaration.

    ``directives`` maps performance-tuning directives to their numbers: ``{"maxntid": (256, 1, 1),
    "minnctapersm": (2,), "noreturn": ()}``.
    """

    name: str
    is_kernel: bool
    params: tuple[Variable, ...]
    span: Span
    returns: tuple[Variable, ...] = ()
    linkage: str = ""
    directives: tuple[tuple[str, tuple[int, ...]], ...] = ()
    body: Sequence[Statement] | None = None
    attributes: tuple[str, ...] = ()
    pragmas: tuple[str, ...] = ()

    def directive(self, name: str) -> tuple[int, ...] | None:
        """The numbers of a directive, or ``None`` when it is not given."""
        return next((numbers for key, numbers in self.directives if key == name), None)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """``.file index "path"``."""

    index: int
    path: str
    span: Span
    trailer: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A debug section, kept as its text.

    ``name`` is ``@@DWARF`` for a line of the old kind, ``.nv_intermediate_source_section`` for
    sources embedded for debuggers, and ``.language`` for that directive's line.
    """

    name: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Alias:
    """``.alias name, aliasee;``."""

    name: str
    aliasee: str
    span: Span


TopLevel = Variable | Function | SourceFile | Section | Alias | Pragma


@dataclass(frozen=True, slots=True, kw_only=True)
class PtxModule:
    """A whole PTX text.

    ``items`` holds everything at module scope in order; the other attributes are views of it.
    """

    version: tuple[int, int]
    target: tuple[str, ...]
    address_size: int
    items: tuple[TopLevel, ...]
    source: str = field(repr=False)
    name: str = "<ptx>"

    @property
    def functions(self) -> tuple[Function, ...]:
        """Kernels and functions, declarations included, in order."""
        return tuple(i for i in self.items if isinstance(i, Function))

    @property
    def kernels(self) -> tuple[Function, ...]:
        """Entry points that have a body."""
        return tuple(f for f in self.functions if f.is_kernel and f.body is not None)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Module-scope variables in order."""
        return tuple(i for i in self.items if isinstance(i, Variable))

    @property
    def files(self) -> dict[int, str]:
        """File index to path, of ``.file``."""
        return {i.index: i.path for i in self.items if isinstance(i, SourceFile)}

    def line_of(self, offset: int) -> int:
        """1-based line number of a character offset."""
        return self.source.count("\n", 0, offset) + 1
