"""Sentences to claims: which number belongs to which figure of which model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from va100.spec import a100
from va100.spec.claims.claim import Claim
from va100.spec.claims.labels import Label, divisor_of, labels_in, says_sparse
from va100.spec.claims.quantity import Quantity, quantities
from va100.spec.figures import BY_KEY, Dimension, sparse_twin
from va100.spec.names import Mention, Model, mentions

_END: Final = re.compile(
    r"(?<!\bvs)(?<!approx)(?<!\bca)(?<!e\.g)(?<!i\.e)\.(?=\s|$)|[\u3002\uff01\uff1f\uff1b]|[!?;](?=\s|$)"
    r"|\n\s*\n|\n(?=\s*(?:[-*•#>]|\d+[.)])\s)"
)
_MULTIPLE: Final = re.compile(
    r"(?<![\w.,])(?P<number>\d+(?:\.\d+)?)\s*(?:x(?![a-z0-9])|\u00d7|times\b|倍)", re.IGNORECASE
)
_TWICE: Final = re.compile(
    r"\b(?:doubled|doubles|double|doubling|twice)\b|翻倍|翻番", re.IGNORECASE
)
_FILLER: Final = re.compile(
    r"[\s(,]*(?:(?:the|that|of|over|faster|more|higher|larger|than|as|much|compared|relative|to"
    r"|with|vs\.?|versus|speed|bandwidth|what|an?|nvidia|tesla|in)\b\.?[\s(,]*)*$",
    re.IGNORECASE,
)
_SHORT_LINE: Final = re.compile(r"^[^\n]{1,60}$", re.MULTILINE)
"""A line that was ended on purpose rather than wrapped."""
_VERSUS: Final = re.compile(r"\b(?:vs\.?|versus|against)\s*$", re.IGNORECASE)
_LONGEST_SENTENCE: Final = 2000
_AFTER: Final = re.compile(r"^\s*(?:of|for|in|on|的)?\s*(?:the\s+)?\(?$", re.IGNORECASE)
_COUNTS: Final = (
    ("nvswitch", "nvswitch_count"),
    ("tensor", "tensor_core_count"),
    ("cuda", "fp32_lane_count"),
    ("fp32", "fp32_lane_count"),
    ("sm", "sm_count"),
    ("streaming", "sm_count"),
    ("nvlink", "link_count"),
)


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    line: int
    labels: tuple[Label, ...]
    mentions: tuple[Mention, ...]
    default: tuple[Model, ...]
    subject: str


def prose_claims(text: str, *, first_line: int = 1) -> list[Claim]:
    """Claims of running text; the A100s are meant where no model is named."""
    claims: list[Claim] = []
    for start, end in _sentences(text):
        lead = len(text[start:end]) - len(text[start:end].lstrip())
        line = first_line + text.count("\n", 0, start + lead)
        claims += sentence_claims(text[start:end], line, a100.MODELS, "A100")
    return claims


def sentence_claims(text: str, line: int, models: tuple[Model, ...], subject: str) -> list[Claim]:
    """Claims of one sentence, or of a cell that names its own figures."""
    flat = text.replace("\n", " ")
    multiples = list(_multiples(flat))
    references = {mention for _, mention in multiples if mention}
    named = tuple(mention for mention in mentions(flat) if mention not in references)
    sentence = _Sentence(flat, line, tuple(labels_in(flat)), named, models, subject)
    found = [claim for spot, mention in multiples for claim in _ratios(sentence, spot, mention)]
    return found + _figures(sentence)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    ends = [(match.start(), match.end()) for match in _END.finditer(text)]
    ends += [(match.end(), match.end()) for match in _SHORT_LINE.finditer(text)]
    start = 0
    for end, following in sorted(ends):
        if end >= start:
            yield from _pieces(start, end)
            start = max(start, following)
    yield from _pieces(start, len(text))


def _pieces(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut what is too long to be a sentence, so that reading time stays linear."""
    while end - start > _LONGEST_SENTENCE:
        yield start, start + _LONGEST_SENTENCE
        start += _LONGEST_SENTENCE
    yield start, end


def _multiples(text: str) -> Iterator[tuple[Quantity, Mention | None]]:
    """Ratios in a sentence, each with the model it is to."""
    named = mentions(text)
    for match in _MULTIPLE.finditer(text):
        following = [m for m in named if m.start >= match.end()]
        before = [m for m in named if m.end <= match.start()]
        if following and _FILLER.match(text[match.end() : following[0].start]):
            yield _ratio(match["number"], match), following[0]
        elif before and re.match(r"^\s*的?\s*$", text[before[-1].end : match.start()]):
            yield _ratio(match["number"], match), before[-1]
    for match in _TWICE.finditer(text):
        following = [m for m in named if m.start >= match.end()]
        if following:
            yield _ratio("2", match), following[0]


def _ratio(number: str, match: re.Match[str]) -> Quantity:
    decimals = len(number.partition(".")[2])
    return Quantity(
        value=float(number),
        half_step=0.5 * 10.0**-decimals,
        dimension=Dimension.COUNT,
        unit="x",
        marked=False,
        text=match.group(),
        start=match.start(),
        end=match.end(),
    )


def _ratios(sentence: _Sentence, spot: Quantity, mention: Mention | None) -> Iterator[Claim]:
    before = [label for label in sentence.labels if label.end <= spot.start]
    after = [label for label in sentence.labels if label.start >= spot.end]
    several = _TWICE.match(spot.text) is not None
    chosen = (before if several else before[-1:]) or after[:1]
    models, subject = _subject(sentence, spot)
    for label in chosen:
        yield Claim(
            line=sentence.line,
            label=label.text,
            text=_around(sentence.text, label.start, spot.end),
            models=models,
            subject=subject,
            figure=label.key,
            multiple=spot,
            reference=mention.models if mention else (),
        )


def _figures(sentence: _Sentence) -> list[Claim]:
    """Claims of absolute figures; neighbours with the same label are a dense-and-sparse pair."""
    groups: list[tuple[Label | None, str, tuple[Model, ...], str, list[Quantity]]] = []
    spots = [spot for spot in quantities(sentence.text) if spot.dimension is not None]
    named = mentions(sentence.text)
    for index, spot in enumerate(spots):
        if any(m.start <= spot.start < m.end for m in named):
            continue
        label, key = _label_for(sentence, spots, index)
        models, subject = _subject(sentence, spot)
        last = groups[-1] if groups else None
        if last and label and last[0] == label and last[1] == key and last[2] == models:
            last[4].append(spot)
        else:
            groups.append((label, key, models, subject, [spot]))
    return [_figure_claim(sentence, *group) for group in groups]


def _figure_claim(
    sentence: _Sentence,
    label: Label | None,
    key: str,
    models: tuple[Model, ...],
    subject: str,
    spots: list[Quantity],
) -> Claim:
    first = min(label.start, spots[0].start) if label else spots[0].start
    last = max(label.end, spots[-1].end) if label else spots[-1].end
    phrase = sentence.text[max(first - 12, 0) : last + 24]
    if label and len(spots) == 1 and says_sparse(sentence.text[first : last + 2]):
        key = sparse_twin(key) or key
    return Claim(
        line=sentence.line,
        label=label.text if label else spots[0].text,
        text=_around(sentence.text, first, last),
        models=models,
        subject=subject,
        figure=key or None,
        quantities=tuple(spots),
        divisor=divisor_of(phrase) if key else "",
    )


def _label_for(sentence: _Sentence, spots: list[Quantity], index: int) -> tuple[Label | None, str]:
    """Label a number belongs to, and the figure the two mean together."""
    spot = spots[index]
    for stem, key in _COUNTS:
        if spot.dimension is Dimension.COUNT and spot.unit.lower().startswith(stem):
            return Label(key, spot.start, spot.end, spot.text), key
    fitting = [(label, key) for label in sentence.labels if (key := _meant(label, spot))]
    before = [pair for pair in fitting if pair[0].end <= spot.start]
    after = [pair for pair in fitting if pair[0].start >= spot.end]
    previous_end = spots[index - 1].end if index else 0
    if before and before[-1][0].start >= previous_end:
        return before[-1]
    if after and _AFTER.match(sentence.text[spot.end : after[0][0].start]):
        return after[0]
    if before:
        return before[-1]
    if after:
        return after[0]
    return _mistaken(sentence, spot)


def _mistaken(sentence: _Sentence, spot: Quantity) -> tuple[Label | None, str]:
    """Find an interconnect right before a size: a rate that lost its "per second"."""
    for label in sentence.labels:
        between = sentence.text[label.end : spot.start]
        wanted = label.key in ("nvlink_bytes_per_s", "pcie_bytes_per_s")
        if wanted and spot.dimension is Dimension.SIZE and re.fullmatch(r"[\s:=]{1,3}", between):
            return label, label.key
    return None, ""


def _meant(label: Label, spot: Quantity) -> str:
    """Figure that a label means with a number of this kind; empty when they don't go together."""
    if label.key in ("memory_bytes", "memory_bytes_per_s", "memory_kind"):
        by_kind = {Dimension.SIZE: "memory_bytes", Dimension.BANDWIDTH: "memory_bytes_per_s"}
        return by_kind.get(spot.dimension, "") if spot.dimension else ""
    if label.key == "nvswitch_count" and spot.dimension is Dimension.BANDWIDTH:
        return "board_bytes_per_s"
    if label.key == "mig_instance_count" and spot.dimension is Dimension.SIZE:
        return "mig_instance_bytes"
    fits = BY_KEY[label.key].dimension is spot.dimension
    return label.key if fits else ""


def _subject(sentence: _Sentence, spot: Quantity) -> tuple[tuple[Model, ...], str]:
    before = [m for m in sentence.mentions if m.end <= spot.start]
    if _VERSUS.search(sentence.text[: spot.start]) and len(before) > 1:
        others = [m for m in before if m.models != before[-1].models]
        before = others or before
    chosen = before[-1] if before else (sentence.mentions[0] if sentence.mentions else None)
    if chosen is None:
        return sentence.default, sentence.subject
    return chosen.models, sentence.text[chosen.start : chosen.end]


def _around(text: str, start: int, end: int) -> str:
    """Words about a place, for a person to find it."""
    return " ".join(text[start:end].split())[:120]
