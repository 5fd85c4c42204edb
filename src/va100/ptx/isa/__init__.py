"""The instruction table: every PTX form va100 knows, one module a family, and its lookup.

``decode`` is how everything else reads an opcode string.
"""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType
from typing import Final

from va100.errors import PtxVerifyError
from va100.ptx.isa import (
    asynchronous,
    atomic,
    barrier,
    compare,
    control,
    convert,
    floating,
    half,
    integer,
    logic,
    matrix,
    memory,
    move,
    stack,
    texture,
    video,
    warp,
)
from va100.ptx.isa.decode import build_operation, match_form, split_operation, unknown
from va100.ptx.isa.form import Family, Form, Operation, Support

ARCHITECTURE: Final = 80
"""The A100's compute capability as PTX spells it: sm_80."""

ISA: Final[tuple[Form, ...]] = (
    *integer.FORMS,
    *floating.FORMS,
    *half.FORMS,
    *compare.FORMS,
    *logic.FORMS,
    *move.FORMS,
    *convert.FORMS,
    *memory.FORMS,
    *atomic.FORMS,
    *asynchronous.FORMS,
    *control.FORMS,
    *barrier.FORMS,
    *warp.FORMS,
    *video.FORMS,
    *matrix.FORMS,
    *texture.FORMS,
    *stack.FORMS,
)


def _by_opcode() -> dict[str, tuple[Form, ...]]:
    """Group the rows, those of the A100 before those of later chips."""
    found: dict[str, list[Form]] = {}
    for form in sorted(ISA, key=lambda form: form.min_sm > ARCHITECTURE):
        found.setdefault(form.opcode, []).append(form)
    return {opcode: tuple(forms) for opcode, forms in found.items()}


FORMS_BY_OPCODE: Final = MappingProxyType(_by_opcode())


def _identifiers() -> dict[Form, str]:
    """Name each row: opcode and its number among that opcode's rows."""
    counts: dict[str, int] = {}
    names: dict[Form, str] = {}
    for form in ISA:
        counts[form.opcode] = counts.get(form.opcode, 0) + 1
        names[form] = f"{form.opcode}-{counts[form.opcode]}"
    return names


FORM_IDS: Final = MappingProxyType(_identifiers())
"""Row to its name, ``"add-3"``: what conformance cases and the coverage page call it."""


@lru_cache(maxsize=4096)
def look_up(op_text: str) -> Operation:
    """Find an operation of any architecture.

    Raises
    ------
    PtxVerifyError
        Without a place, when the table has no such form.
    """
    opcode, modifiers = split_operation(op_text)
    form = match_form(opcode, modifiers, FORMS_BY_OPCODE.get(opcode, ()))
    if form is None:
        if later := matrix.BEYOND.get(opcode):
            raise PtxVerifyError(f"{op_text!r} needs {later[0]}; the A100 is sm_80", hint=later[1])
        raise unknown(op_text, opcode, modifiers, FORMS_BY_OPCODE)
    return build_operation(op_text, opcode, modifiers, form)


@lru_cache(maxsize=4096)
def decode(op_text: str) -> Operation:
    """Find an operation that the A100 has.

    Raises
    ------
    PtxVerifyError
        Without a place, when the table has no such form or only a later chip has it.
    """
    operation = look_up(op_text)
    needed = operation.form.min_sm
    if needed > ARCHITECTURE:
        raise PtxVerifyError(f"{op_text!r} needs sm_{needed}; the A100 is sm_{ARCHITECTURE}")
    return operation


__all__ = [
    "ARCHITECTURE",
    "FORMS_BY_OPCODE",
    "FORM_IDS",
    "ISA",
    "Family",
    "Form",
    "Operation",
    "Support",
    "decode",
    "look_up",
]
