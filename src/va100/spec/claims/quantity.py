"""Numbers with units in free text."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from va100.spec.figures import Dimension

_NUMBER: Final = r"(?<![\w.,])(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
_UNIT: Final = (
    r"(?P<unit>(?i:[pgt](?:era|iga|eta)?(?:fl)?ops?(?:/s)?|[tg]f(?![a-z]))"
    r"|(?i:[tgm]i?b(?:/s(?:ec)?|ps))|[TGMK]i?b(?:it)?(?:/s|ps)"
    r"|(?i:[tgmk]i?b)(?![a-z/])|k?[Ww](?:atts?)?(?![a-z])|(?i:[mg]hz)|(?i:-?bits?)(?![a-z])"
    r"|(?i:SMs|streaming multiprocessors|cuda cores|fp32 cores|tensor cores|nvswitch(?:es)?"
    r"|nvlinks?(?: links)?|links)(?!\s*/|\s+per)\b)"
)
_QUANTITY: Final = re.compile(rf"{_NUMBER}(?:[ \u00a0]*(?:-(?=[Bb]it))?{_UNIT})?(?![\w])")
_MARK: Final = re.compile(
    r"^\s*(?:\*|†|‡|\((?:with |w/ ?)?(?:2:4 )?(?:structured )?spars|(?:with |w/ ?)"
    r"?(?:2:4 )?(?:structured )?spars|\(?稀疏)",
    re.IGNORECASE,
)
_JOIN: Final = re.compile(r"^\s*(?:/|\||or|and|to|或|和|、|\(|-|\u2013)\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as written, in base units once it has a unit."""

    value: float
    half_step: float
    """Half a unit of its last digit: how far rounding may have moved it."""
    dimension: Dimension | None
    """``None`` for a bare number."""
    unit: str
    marked: bool
    """It carries an asterisk or says that it is with sparsity."""
    text: str
    start: int
    end: int


def quantities(text: str) -> list[Quantity]:
    """List the numbers of a text; in ``156 / 312 TF`` the bare one takes the other's unit."""
    found = [_quantity(match, text) for match in _QUANTITY.finditer(text)]
    for index in range(len(found) - 2, -1, -1):
        here, following = found[index], found[index + 1]
        joined = _JOIN.match(text[here.end : following.start].strip("*†‡"))
        if here.dimension is None and following.dimension is not None and joined:
            found[index] = with_unit(here, following.unit)
    return found


def with_unit(quantity: Quantity, unit: str) -> Quantity:
    """Read a bare number as if the unit stood behind it."""
    dimension, factor = _unit(unit)
    if quantity.dimension is not None or dimension is None:
        return quantity
    return replace(
        quantity,
        value=quantity.value * factor,
        half_step=quantity.half_step * factor,
        dimension=dimension,
        unit=unit,
    )


def unit_in(text: str) -> str:
    """Find the unit of a heading such as ``FP64 (TFLOPS)``, not of a size in a model's name."""
    match = re.search(rf"(?<![A-Za-z0-9])(?<!\d ){_UNIT}", text)
    return match["unit"] if match else ""


def _quantity(match: re.Match[str], text: str) -> Quantity:
    digits = match["number"].replace(",", "")
    decimals = len(digits.partition(".")[2])
    unit = match["unit"] or ""
    dimension, factor = _unit(unit)
    after = text[match.end() : match.end() + 40]
    return Quantity(
        value=float(digits) * factor,
        half_step=0.5 * 10.0**-decimals * factor,
        dimension=dimension,
        unit=unit,
        marked=bool(_MARK.match(after)),
        text=match.group().strip(),
        start=match.start(),
        end=match.end(),
    )


_PREFIX: Final = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_BINARY: Final = {"k": 2.0**10, "m": 2.0**20, "g": 2.0**30, "t": 2.0**40}
_KINDS: Final = (
    (re.compile(r"sms|streaming|cuda|fp32|tensor|nv|links"), Dimension.COUNT),
    (re.compile(r"bits?$"), Dimension.WIDTH),
    (re.compile(r"k?w"), Dimension.POWER),
    (re.compile(r".hz$"), Dimension.CLOCK),
    (re.compile(r".*op|[tg]f$"), Dimension.RATE),
    (re.compile(r".*(?:/s|ps$)"), Dimension.BANDWIDTH),
    (re.compile(r"."), Dimension.SIZE),
)
_BITS: Final = re.compile(r"[TGMK]i?b(?:it)?(?:/s|ps)$")


def _unit(unit: str) -> tuple[Dimension | None, float]:
    """Dimension and factor to base units; sizes are binary, as memory is sold."""
    lowered = unit.lower().strip("-")
    kind = next((kind for pattern, kind in _KINDS if pattern.match(lowered)), None)
    if kind in (None, Dimension.COUNT, Dimension.WIDTH):
        return kind, 1.0
    if kind is Dimension.POWER:
        return kind, 1e3 if lowered.startswith("k") else 1.0
    if kind is Dimension.SIZE:
        return kind, _BINARY[lowered[0]]
    return kind, _PREFIX[lowered[0]] / (8 if _BITS.match(unit) else 1)
