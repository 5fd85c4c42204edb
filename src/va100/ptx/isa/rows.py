"""How the families write their rows: modifier groups in one string.

``"rn|rz ?ftz f32"`` is three groups: a required rounding, an optional ``ftz``, a type.  ``|``
separates alternatives, ``?`` in front makes a group optional.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from va100.ptx.isa.form import Family, Form, Support
from va100.work import Pipe

INTEGERS: Final = "u16|u32|u64|s16|s32|s64"
SIGNED: Final = "s16|s32|s64"
BITS: Final = "b16|b32|b64"
ROUNDINGS: Final = "rn|rz|rm|rp"
INTEGER_ROUNDINGS: Final = "rni|rzi|rmi|rpi"
MEMORY_TYPES: Final = "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64"


def form(  # noqa: PLR0913  one row, all facts
    opcode: str,
    slots: str,
    operands: str,
    *,
    family: Family,
    pipe: Pipe,
    anchor: str,
    since: tuple[int, int] = (1, 0),
    min_sm: int = 0,
    until: tuple[int, int] | None = None,
    until_sm: int = 0,
    support: Support = Support.EXECUTED,
) -> Form:
    """Build one row."""
    return Form(
        opcode=opcode,
        family=family,
        slots=tuple(_slot(text) for text in slots.split()),
        operands=operands,
        pipe=pipe,
        anchor=anchor,
        since=since,
        min_sm=min_sm,
        until=until,
        until_sm=until_sm,
        support=support,
    )


@cache
def _slot(text: str) -> tuple[str, ...]:
    names = tuple(text.removeprefix("?").split("|"))
    return ("", *names) if text[0] == "?" else names
