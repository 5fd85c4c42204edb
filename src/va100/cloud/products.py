"""What can be rented: cards and slices of the models that a fleet has, by the names people give.

``a100-80g:1g.10gb`` is a slice, ``a100-80g:4`` four cards of one node, ``sxm80`` one card.  A share
such as ``a100:0.5`` names no product: it is refused with the slices that come near.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from va100.cloud.geometry import CHIPS, PROFILES
from va100.cloud.models import MOST_CARDS, Shape
from va100.cloud.prices import DENOMINATOR, HOUR_S, PriceBook, card_item
from va100.cloud.traces import slice_for
from va100.errors import BadRequest
from va100.spec.model import ChipSpec
from va100.spec.names import find_models
from va100.units import GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One thing to rent."""

    shape: Shape
    title: str
    memory_bytes: int
    sm_count: int
    per_h_micro: int
    spot_per_h_micro: int


def products(
    models: Iterable[str], book: PriceBook, at_s: int, spot_discount_per_mille: int
) -> list[Product]:
    """Everything that cards of these models are rented as: 1, 2, 4 and 8 cards, every slice."""
    found = []
    for model in sorted(models):
        chip = CHIPS[model]
        shapes = [Shape(model, cards=count) for count in range(1, MOST_CARDS + 1)]
        shapes += [Shape(model, spec.name) for spec in reversed(PROFILES[model])]
        found += [product(chip, shape, book, at_s, spot_discount_per_mille) for shape in shapes]
    return found


def product(
    chip: ChipSpec, shape: Shape, book: PriceBook, at_s: int, spot_discount_per_mille: int
) -> Product:
    """One shape as a product."""
    spec = next((s for s in PROFILES[shape.model] if s.name == shape.profile), None)
    memory = chip.memory_bytes * shape.cards if spec is None else spec.memory_bytes
    sms = chip.sm_count * shape.cards if spec is None else spec.sm_count
    per_h = per_h_micro(shape, book, at_s)
    return Product(
        shape=shape,
        title=_title(chip, shape),
        memory_bytes=memory,
        sm_count=sms,
        per_h_micro=per_h,
        spot_per_h_micro=per_h - per_h * spot_discount_per_mille // 1000,
    )


def per_h_micro(shape: Shape, book: PriceBook, at_s: int) -> int:
    """What an hour of a shape costs."""
    return book.at(card_item(shape.model), at_s) * shape.eighths * HOUR_S // DENOMINATOR


def _title(chip: ChipSpec, shape: Shape) -> str:
    name = chip.product_name.removeprefix("NVIDIA ")
    if shape.is_slice:
        return f"{name} slice {shape.profile}"
    return name if shape.cards == 1 else f"{shape.cards} x {name}"


_COUNT: Final = re.compile(r"[0-9]+")
_SHARE: Final = re.compile(r"[0-9]*\.[0-9]+")


def parse_shape(text: str, models: Iterable[str]) -> Shape:
    """Read ``MODEL``, ``MODEL:COUNT`` or ``MODEL:PROFILE``.

    Parameters
    ----------
    models : iterable of str
        Models that can be rented; a name that fits several of the specs' means one of these.

    Raises
    ------
    BadRequest
        It names no product; the message says what would.
    """
    name, colon, rest = text.strip().partition(":")
    model = _model(name, sorted(models))
    rest = rest.strip().lower()
    if not colon or rest in ("", "1"):
        return Shape(model)
    if _COUNT.fullmatch(rest):
        if not 1 <= int(rest) <= MOST_CARDS:
            raise BadRequest(f"1 to {MOST_CARDS} cards in one instance, not {rest}", field="gpu")
        return Shape(model, cards=int(rest))
    if _SHARE.fullmatch(rest):
        near = slice_for(model, float(rest))
        raise BadRequest(
            f"there is no {rest} of a card: take the slice {name}:{near}"
            if near
            else f"there is no {rest} of a card: name a count or a MIG profile",
            field="gpu",
        )
    names = {spec.name for spec in PROFILES[model]}
    if rest not in names:
        raise BadRequest(
            f"{model} has no MIG profile {rest!r}; it has {', '.join(sorted(names))}", field="gpu"
        )
    return Shape(model, rest)


def _model(name: str, models: list[str]) -> str:
    if not models:
        raise BadRequest("this site has no GPUs yet: an operator adds nodes first", field="gpu")
    known = [chip.name for chip in find_models(name) if isinstance(chip, ChipSpec)]
    offered = [model for model in models if model in known]
    if offered:
        # A name such as a100-80g leaves a choice of form: the SXM one has NVLink and more power.
        return next((model for model in offered if "SXM" in model), offered[0])
    raise BadRequest(f"{name!r} is not offered here; there are {', '.join(models)}", field="gpu")


def memory_text(product: Product) -> str:
    """Spell a product's memory."""
    return f"{product.memory_bytes / GIB:.1f} GiB"
