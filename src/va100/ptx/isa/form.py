"""What a row of the instruction table says, and what an opcode string decodes to.

Facts only: no semantics live here.  The rows are in the sibling modules, one a family.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from va100.ptx.types import PtxType, Space
from va100.work import Pipe


class Family(Enum):
    """Groups of instructions that one function an engine executes."""

    INTEGER = "integer"
    FLOATING = "floating"
    HALF = "half"
    COMPARE = "compare"
    LOGIC = "logic"
    MOVE = "move"
    CONVERT = "convert"
    MEMORY = "memory"
    ATOMIC = "atomic"
    ASYNC = "async"
    CONTROL = "control"
    BARRIER = "barrier"
    WARP = "warp"
    VIDEO = "video"
    MATRIX = "matrix"
    TEXTURE = "texture"
    STACK = "stack"


class Support(Enum):
    """How far a form is taken."""

    EXECUTED = "executed"
    PARSED = "parsed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One legal shape of an instruction.

    ``operands`` spells the list, one letter an operand: ``d`` destination register, ``q``
    optional second destination as in ``d|p``, ``a b c e`` sources (registers or immediates),
    ``p`` predicate source, ``m`` memory address, ``v`` vector or register moved, ``l`` label,
    ``i`` integer immediate, ``s`` symbol or register holding a code address; a letter after
    ``?`` may be left out.  ``slots`` lists the modifier groups in canonical order; each group is
    a tuple of alternatives, ``""`` among them when it may be absent.  Type slots hold type names.
    ``anchor`` is the section's anchor in the PTX ISA document (numbers move, anchors stay).
    """

    opcode: str
    family: Family
    slots: tuple[tuple[str, ...], ...]
    operands: str
    pipe: Pipe
    anchor: str
    since: tuple[int, int] = (1, 0)
    min_sm: int = 0
    until: tuple[int, int] | None = None
    """The PTX version that has it no more; ``None``: every later one has it."""
    until_sm: int = 0
    """Texts for earlier architectures keep it in later versions too."""
    support: Support = Support.PARSED

    def __hash__(self) -> int:
        """Hash by what tells most rows apart; the generated one would walk every group."""
        return hash((self.opcode, self.operands, self.anchor, self.min_sm))


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An opcode string looked up in the table, its modifiers sorted into typed places.

    Modifiers may be written in any order where compilers do so; here they are normalised.
    Absent ones are ``""``, ``False``, 1 or ``None``.
    """

    text: str
    opcode: str
    form: Form
    types: tuple[PtxType, ...]
    """Type specifiers in order of writing: destination first."""
    modifiers: frozenset[str]
    """Every modifier that is no type, without dots (``"lo"``, ``"wide"``, ``"L2::128B"``)."""
    sequence: tuple[str, ...] = ()
    """The same in order of writing, repeats kept (``("sync", "aligned", "row", "col")``)."""
    space: Space | None = None
    """State space of a memory operation; ``Space.GENERIC`` when none is written."""
    to_space: bool = False
    """``cvta.to.…``"""
    vector: int = 1
    rounding: str = ""
    """rn rz rm rp rna, or integer roundings rni rzi rmi rpi."""
    ftz: bool = False
    saturate: bool = False
    approximate: str = ""
    """``approx``, ``full`` or empty."""
    compare: str = ""
    """eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan."""
    combine: str = ""
    """Boolean operator of setp/set (and or xor), operation of atom/red/redux/bar.red
    (add min max and or xor inc dec cas exch popc), mode of shfl (up down bfly idx), of vote
    (all any uni ballot), of prmt (f4e …), of match (any all), of testp (finite …)."""
    semantics: str = ""
    """weak volatile relaxed acquire release acq_rel sc mmio."""
    scope: str = ""
    """cta cluster gpu sys."""

    def __hash__(self) -> int:
        """Hash by the text, which all else follows from."""
        return hash(self.text)

    @property
    def type(self) -> PtxType:
        """The first type: the destination's."""
        return self.types[0]

    @property
    def source_type(self) -> PtxType:
        """The last type: the source's, where it differs from the destination's."""
        return self.types[-1]
