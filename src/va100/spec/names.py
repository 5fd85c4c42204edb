"""GPU models by the names people give them."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Final

from va100.spec import a100, others
from va100.spec.model import ChipSpec, HeadlineSpec
from va100.units import GIB

Model = ChipSpec | HeadlineSpec

MODELS: Final[tuple[Model, ...]] = (*a100.MODELS, *others.MODELS)
_FAMILIES: Final = "a100|a800|a30|v100|h100|h200|b200|l40s|l4|4090|a10|t4"
_FAMILY: Final = rf"(?:a100(?=(?:40|80)g)|(?:{_FAMILIES})(?![0-9a-z]))"
_FORM: Final = r"(?:sxm[2-5](?!\d)|sxm|pci-?e|hgx|dgx)"
_SIZE: Final = r"(?:(?:16|24|32|40|48|80|141|180)\s*g(?:i?b)?(?![0-9a-z/]))"
_BARE_SIZE: Final = r"(?:(?:16|24|32|40|48|80|141|180)(?![0-9a-z/]))"
_NOISE: Final = (
    r"(?:nvidia|tesla|geforce|rtx|gpus?|ga100|tensor|cores?|hbm[23]e?|gddr6x?)(?![0-9a-z])"
)
_GAP: Final = r"[\s_\-/().,:]+"

_QUERY: Final = re.compile(
    f"(?P<family>{_FAMILY})|(?P<form>{_FORM})|(?P<size>{_SIZE}|{_BARE_SIZE})"
    f"|(?P<noise>{_NOISE})|(?P<gap>{_GAP})"
)
_PART: Final = re.compile(
    f"(?<![0-9a-z])(?:(?P<family>{_FAMILY})|(?P<form>{_FORM})|(?P<size>{_SIZE}))"
)
_MENTION: Final = re.compile(
    rf"(?<![0-9a-z])(?:(?:{_SIZE}|{_FORM})[\s-]+)?{_FAMILY}"
    rf"(?:[\s-]+(?:{_FORM}|{_SIZE})|(?<=a100)(?:40|80)gb?)*"
    r"|(?<![0-9a-z])sxm[2-5]?(?![0-9a-z])|(?<![0-9a-z])pci-?e\s+(?:card|version|model|variant)"
)


@dataclass(frozen=True, slots=True)
class Mention:
    """Models named at a place in a text."""

    start: int
    end: int
    models: tuple[Model, ...]


def find_models(query: str) -> tuple[Model, ...]:
    """Models that a name means, several when it leaves choices open; none for a stranger.

    ``a100-80g`` is both 80 GB cards, ``sxm80`` one of them, ``h100`` both H100s.
    """
    lowered = query.strip().lower()
    exact = [m for m in MODELS if lowered in (m.name.lower(), m.product_name.lower())]
    if exact:
        return tuple(exact)
    parts: dict[str, str] = {}
    position = 0
    while position < len(lowered):
        match = _QUERY.match(lowered, position)
        if match is None:
            return ()
        kind = str(match.lastgroup)
        if kind in parts and parts[kind] != match.group():
            return ()
        if kind in ("family", "form", "size"):
            parts[kind] = match.group()
        position = match.end()
    return _select(parts)


def close_names(query: str) -> list[str]:
    """Names that a stranger may have meant, best first."""
    known = {name.lower(): name for name in (*(m.name for m in MODELS), "A100", "H100", "V100")}
    found = difflib.get_close_matches(query.strip().lower(), list(known), n=4, cutoff=0.5)
    return [known[name] for name in found]


def models_in(text: str) -> tuple[Model, ...]:
    """Models that a table's heading names, whatever else it says."""
    parts: dict[str, str] = {}
    for match in _PART.finditer(text.lower()):
        parts.setdefault(str(match.lastgroup), match.group())
    return _select(parts)


def mentions(text: str) -> list[Mention]:
    """Models named in running text, in order."""
    found = []
    for match in _MENTION.finditer(text.lower()):
        models = models_in(match.group())
        if models:
            found.append(Mention(match.start(), match.end(), models))
    return found


def _select(parts: dict[str, str]) -> tuple[Model, ...]:
    if not parts:
        return ()
    fitting = [model for model in MODELS if _fits(model, parts)]
    if "family" not in parts:
        own = [model for model in fitting if isinstance(model, ChipSpec)]
        return tuple(own or fitting)
    return tuple(fitting)


def _fits(model: Model, parts: dict[str, str]) -> bool:
    family, form = parts.get("family", ""), parts.get("form", "")
    size = re.sub(r"\D", "", parts.get("size", ""))
    stem = "rtx-4090" if family == "4090" else family
    return (
        (not family or model.name.lower().split("-")[0] == stem or model.name.lower() == stem)
        and _fits_form(model.form_factor.lower(), form)
        and (not size or model.memory_bytes == int(size) * GIB)
    )


def _fits_form(form_factor: str, form: str) -> bool:
    if form in ("sxm", "hgx", "dgx"):
        return form_factor.startswith("sxm")
    return form.replace("-", "") in ("", form_factor)
