"""Opcode string to :class:`Operation`: finds the form, sorts modifiers into typed places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from va100.errors import PtxVerifyError
from va100.ptx.isa.form import Form, Operation
from va100.ptx.types import SPACES, TYPES, Space

_ROUNDINGS: Final = frozenset({"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"})
_COMPARISONS: Final = frozenset(
    "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan".split()
)
_COMBINES: Final[Mapping[str, frozenset[str]]] = {
    "setp": frozenset({"and", "or", "xor"}),
    "set": frozenset({"and", "or", "xor"}),
    "lop3": frozenset({"and", "or"}),
    "atom": frozenset("add min max and or xor inc dec cas exch".split()),
    "red": frozenset("add min max and or xor inc dec".split()),
    "redux": frozenset("add min max and or xor".split()),
    "bar": frozenset({"popc", "and", "or"}),
    "barrier": frozenset({"popc", "and", "or"}),
    "shfl": frozenset("up down bfly idx".split()),
    "vote": frozenset("all any uni ballot".split()),
    "prmt": frozenset("f4e b4e rc8 ecl ecr rc16".split()),
    "match": frozenset({"any", "all"}),
    "testp": frozenset("finite infinite number notanumber normal subnormal".split()),
}
_ORDERED: Final = frozenset({"ld", "st", "atom", "red", "fence"})
_SEMANTICS: Final = frozenset("weak volatile relaxed acquire release acq_rel sc mmio".split())
_SCOPES: Final = {"cta": "cta", "cluster": "cluster", "gpu": "gpu", "sys": "sys", "gl": "gpu"}
_SCOPED: Final = _ORDERED | {"membar"}
_MEMORY: Final = frozenset(
    "ld st ldu atom red prefetch cvta isspacep wmma ldmatrix mbarrier discard applypriority".split()
)
_VECTOR: Final = re.compile(r"v([248])")
_MODIFIER: Final = re.compile(r"\.(b8x16\.\w+|[\w:]+)")


def match_form(opcode: str, modifiers: Sequence[str], forms: Sequence[Form]) -> Form | None:
    """Find the form that these modifiers spell, whatever their order."""
    for form in forms:
        if form.opcode == opcode and _fits(list(modifiers), form.slots, 0):
            return form
    return None


def _fits(modifiers: list[str], slots: tuple[tuple[str, ...], ...], at: int) -> bool:
    """Assign modifiers to slots; types keep their order, others need not."""
    if len(modifiers) > len(slots) - at:
        return False
    if at == len(slots):
        return not modifiers
    slot = slots[at]
    type_seen = False
    for index, modifier in enumerate(modifiers):
        if modifier in TYPES:
            if type_seen:
                continue  # an earlier type would be overtaken
            type_seen = True
        if modifier in slot and _fits(modifiers[:index] + modifiers[index + 1 :], slots, at + 1):
            return True
    return "" in slot and _fits(modifiers, slots, at + 1)


def split_operation(text: str) -> tuple[str, tuple[str, ...]]:
    """Split ``ld.global.v2.f32`` into opcode and modifiers."""
    opcode, dot, rest = text.partition(".")
    return opcode, tuple(_MODIFIER.findall(dot + rest))


def build_operation(text: str, opcode: str, modifiers: Sequence[str], form: Form) -> Operation:
    """Sort the modifiers of a matched form into their places."""
    typed = [TYPES[m] for m in modifiers if m in TYPES]
    others = [m for m in modifiers if m not in TYPES]
    present = frozenset(others)

    def one(choices: frozenset[str]) -> str:
        return next((m for m in others if m in choices), "")

    vector = next((int(m[1]) for m in map(_VECTOR.fullmatch, others) if m), 1)
    semantics = one(_SEMANTICS - {"mmio"}) if opcode in _ORDERED else ""
    return Operation(
        text=text,
        opcode=opcode,
        form=form,
        types=tuple(typed),
        modifiers=present,
        sequence=tuple(others),
        space=_space(opcode, others),
        to_space="to" in present,
        vector=vector,
        rounding=one(_ROUNDINGS),
        ftz="ftz" in present,
        saturate=bool(present & {"sat", "satfinite"}),
        approximate=one(frozenset({"approx", "full"})),
        compare=one(_COMPARISONS) if opcode in ("setp", "set") else "",
        combine=one(_COMBINES.get(opcode, frozenset())),
        semantics="mmio" if "mmio" in present else semantics,
        scope=next((_SCOPES[m] for m in others if m in _SCOPES), "") if opcode in _SCOPED else "",
    )


def _space(opcode: str, modifiers: Sequence[str]) -> Space | None:
    for modifier in modifiers:
        if space := SPACES.get(modifier.partition("::")[0]):
            return space
    return Space.GENERIC if opcode in _MEMORY else None


def unknown(
    text: str, opcode: str, modifiers: Sequence[str], by_opcode: Mapping[str, tuple[Form, ...]]
) -> PtxVerifyError:
    """Build the error for an operation that the table does not have, with the nearest one."""
    if opcode not in by_opcode:
        near = get_close_matches(opcode, by_opcode, n=1)
        hint = f"did you mean {near[0]!r}?" if near else ""
        return PtxVerifyError(f"unknown instruction {opcode!r}", hint=hint)
    forms = by_opcode[opcode]
    vocabulary = {m for form in forms for slot in form.slots for m in slot if m}
    strangers = [m for m in modifiers if m not in vocabulary]
    if strangers:
        problem = f"{opcode!r} has no modifier '.{strangers[0]}' (in {text!r})"
        near = get_close_matches(strangers[0], vocabulary, n=1, cutoff=0.5)
        if near:
            return PtxVerifyError(problem, hint=f"did you mean '.{near[0]}'?")
        return PtxVerifyError(problem, hint=_nearest(opcode, modifiers, forms))
    problem = f"{text!r} is no form of {opcode!r}"
    return PtxVerifyError(problem, hint=_nearest(opcode, modifiers, forms))


def _nearest(opcode: str, modifiers: Sequence[str], forms: Sequence[Form]) -> str:
    best = max(forms, key=lambda form: _likeness(modifiers, form))
    return f"the nearest form is {spelling(best)}"


def _likeness(modifiers: Sequence[str], form: Form) -> float:
    shared = sum(any(m in slot for slot in form.slots) for m in modifiers)
    missing = sum("" not in slot and not any(m in slot for m in modifiers) for slot in form.slots)
    return shared - 0.6 * missing - 0.01 * len(form.slots)


def spelling(form: Form) -> str:
    """Spell a form as documents do: ``add{.sat}.s32``."""
    return form.opcode + "".join(_spell_slots(form.slots))


def _spell_slots(slots: tuple[tuple[str, ...], ...]) -> Iterator[str]:
    for slot in slots:
        names = [name for name in slot if name]
        text = "." + names[0] if len(names) == 1 else ".{" + ",".join(names) + "}"
        yield "{" + text + "}" if "" in slot else text
