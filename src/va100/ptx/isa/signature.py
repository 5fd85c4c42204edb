"""What kind and type of operand stands in each place of an operation.

Derived from the row's ``operands`` string and the operation's types; the exceptions (a shift's
amount is 32 bits wide, a wide product's destination twice as wide) are spelled out here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from va100.ptx.isa.form import Family, Operation
from va100.ptx.types import PtxType

U32: Final = PtxType.U32
B32: Final = PtxType.B32
B64: Final = PtxType.B64
PRED: Final = PtxType.PRED

Types = Mapping[str, PtxType | None]

_DOUBLED: Final = {
    PtxType.U16: PtxType.U32,
    PtxType.S16: PtxType.S32,
    PtxType.U32: PtxType.U64,
    PtxType.S32: PtxType.S64,
}
_UNTYPED: Final = frozenset(
    {Family.MATRIX, Family.TEXTURE, Family.VIDEO, Family.ASYNC, Family.STACK}
)


class Place(NamedTuple):
    """One operand's place: its letter in the row, and the type it must agree with, if any."""

    letter: str
    type: PtxType | None
    pair: bool = False
    """Whether ``d|p`` may stand here."""


class Arity(NamedTuple):
    """How few and how many operands an operation takes."""

    least: int
    most: int


@lru_cache(maxsize=4096)
def arity(operation: Operation) -> Arity:
    """Count the operands that may be given."""
    letters = _letters(operation.form.operands)
    return Arity(sum(not optional for _, optional, _ in letters), len(letters))


@lru_cache(maxsize=4096)
def places(operation: Operation, count: int) -> tuple[Place, ...]:
    """Assign ``count`` operands to places; optional ones are filled from the left."""
    letters = _letters(operation.form.operands)
    spare = count - arity(operation).least
    types = _types(operation)
    found = []
    for letter, optional, pair in letters:
        if optional:
            if spare <= 0:
                continue
            spare -= 1
        found.append(Place(letter, types.get(letter), pair))
    return tuple(found)


@lru_cache(maxsize=256)
def _letters(operands: str) -> tuple[tuple[str, bool, bool], ...]:
    """Split ``"dqab?c"`` into letters with their options: optional, and followed by ``q``."""
    found: list[tuple[str, bool, bool]] = []
    optional = False
    for char in operands:
        if char == "?":
            optional = True
        elif char == "q":
            letter, was_optional, _ = found[-1]
            found[-1] = (letter, was_optional, True)
        else:
            found.append((char, optional, False))
            optional = False
    return tuple(found)


@lru_cache(maxsize=4096)
def _types(operation: Operation) -> Types:
    if operation.form.family in _UNTYPED or operation.opcode == "createpolicy":
        return _UNTYPED_EXCEPTIONS.get(operation.opcode, {})
    rule = _RULES.get(operation.opcode)
    if rule is not None:
        return rule(operation)
    if not operation.types:
        return {}
    return _uniform(operation)


_UNTYPED_EXCEPTIONS: Final[Mapping[str, Types]] = {"istypep": {"d": PRED}}


def _uniform(operation: Operation) -> dict[str, PtxType | None]:
    kind = operation.types[0]
    return {**dict.fromkeys("dabcv", kind), "e": kind, "p": PRED}


def _with(changes: Types) -> Callable[[Operation], Types]:
    def rule(operation: Operation) -> Types:
        return {**(_uniform(operation) if operation.types else {}), **changes}

    return rule


def _product(operation: Operation) -> Types:
    types = _uniform(operation)
    if "wide" in operation.modifiers:
        types["d"] = types["c"] = _DOUBLED[operation.type]
    return types


def _by_source(operation: Operation) -> Types:
    """``set``, ``cvt``: destination by the first type, sources by the last."""
    return {**dict.fromkeys("abc", operation.source_type), "d": operation.type, "p": PRED}


def _convert(operation: Operation) -> Types:
    return {} if "pack" in operation.modifiers else _by_source(operation)


def _select_by_sign(operation: Operation) -> Types:
    return {**_uniform(operation), "c": operation.source_type}


def _dot_product(operation: Operation) -> Types:
    return dict.fromkeys("dabc", B32)


def _memory(operation: Operation) -> Types:
    return {"v": operation.types[0] if operation.types else None, "e": B64}


def _atomic(operation: Operation) -> Types:
    return {**dict.fromkeys("dbcv", operation.type), "e": B64}


def _barrier(operation: Operation) -> Types:
    return {"d": operation.types[0] if operation.types else None, "a": U32, "b": U32, "p": PRED}


_RULES: Final[Mapping[str, Callable[[Operation], Types]]] = {
    "mul": _product,
    "mad": _product,
    "shl": _with({"b": U32}),
    "shr": _with({"b": U32}),
    "shf": _with({"c": U32}),
    "bfe": _with({"b": U32, "c": U32}),
    "bfi": _with({"c": U32, "e": U32}),
    "popc": _with({"d": U32}),
    "clz": _with({"d": U32}),
    "bfind": _with({"d": U32}),
    "szext": _with({"b": U32}),
    "bmsk": _with({"a": U32, "b": U32}),
    "fns": _with({"a": B32, "b": B32, "c": B32}),
    "dp4a": _dot_product,
    "dp2a": _dot_product,
    "testp": _with({"d": PRED}),
    "setp": _with({"d": PRED}),
    "set": _by_source,
    "slct": _select_by_sign,
    "isspacep": _with({"d": PRED, "a": None}),
    "cvt": _convert,
    "ld": _memory,
    "ldu": _memory,
    "st": _memory,
    "applypriority": _memory,
    "discard": _memory,
    "atom": _atomic,
    "red": _atomic,
    "brx": _with({"a": U32}),
    "nanosleep": _with({"a": U32}),
    "bar": _barrier,
    "barrier": _barrier,
    "shfl": _with({"b": U32, "c": U32, "e": U32}),
    "vote": _with({"b": U32, "p": PRED}),
    "match": _with({"d": B32, "b": U32}),
    "redux": _with({"b": U32}),
}
