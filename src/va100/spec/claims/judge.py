"""Compares a claim with the facts and, where it is wrong, looks for the mistake behind it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from va100.spec.claims.claim import Claim, Finding, Problem, Verdict
from va100.spec.claims.labels import BARE_BANDWIDTH, says_sparse
from va100.spec.claims.quantity import Quantity
from va100.spec.figures import (
    BY_KEY,
    FIGURES,
    Dimension,
    Value,
    dense_twin,
    figures,
    sparse_twin,
    value_text,
)
from va100.spec.names import MODELS, Model

_CLOSE: Final = 0.006
_ROUNDED: Final = 0.03
"""A printed figure may be rounded, but never by more than this part of it."""

_CUSTOM_W: Final = 500
_CUSTOM_OF_W: Final = 400
"""Systems with custom cooling run the 400 W cards at 500 W."""
_TABLES: Final = {model.name: figures(model) for model in MODELS}
_GPUS_OF_BOARD: Final = 8
_BOTH_WAYS: Final = ("nvlink_bytes_per_s", "board_bytes_per_s")


def judge(claim: Claim) -> Finding:
    """Compare one claim; the explanation is a sentence for people."""
    if claim.figure is None and claim.quantities:
        return _finding(claim, Verdict.UNCHECKED, f"no figure is named beside {claim.label}")
    if claim.figure is None:
        what = f"model {claim.label!r}" if not claim.subject else f"figure {claim.label!r}"
        return _finding(claim, Verdict.UNCHECKED, f"{what} is not one known here")
    if not claim.models:
        return _finding(claim, Verdict.UNCHECKED, f"model {claim.subject!r} is not known here")
    if claim.multiple is not None:
        return _judge_multiple(claim, claim.multiple, claim.figure)
    if claim.word:
        return _judge_word(claim, claim.figure)
    return _judge_figure(claim, claim.figure)


def close(given: Quantity, ours: float) -> bool:
    """Whether a printed figure is ours, allowing for the digits it was printed with."""
    slack = max(_CLOSE * ours, min(given.half_step, _ROUNDED * ours))
    return abs(given.value - ours) <= slack


def _finding(
    claim: Claim,
    verdict: Verdict,
    explanation: str,
    problem: Problem = Problem.NONE,
    matches: str = "",
) -> Finding:
    return Finding(
        claim=claim, verdict=verdict, explanation=explanation, problem=problem, matches=matches
    )


def _wrong(claim: Claim, problem: Problem, explanation: str, matches: str = "") -> Finding:
    return _finding(claim, Verdict.WRONG, explanation, problem, matches)


def _numbers(models: Sequence[Model], key: str) -> list[float]:
    """Values of a figure over models that have one on record, without repeats."""
    found = [_TABLES[model.name].get(key) for model in models]
    return list(dict.fromkeys(v for v in found if isinstance(v, int | float)))


def _spelled(key: str, values: Sequence[Value]) -> str:
    return " or ".join(dict.fromkeys(value_text(BY_KEY[key], value) for value in values))


def _judge_figure(claim: Claim, key: str) -> Finding:
    figure = BY_KEY[key]
    ours = _numbers(claim.models, key)
    given = [q for q in claim.quantities if q.dimension in (figure.dimension, None)]
    if not claim.quantities:
        if claim.text.strip() in (
            "",
            "-",
            "\u2013",
            "\u2014",
            "N/A",
            "n/a",
            "no",
            "No",
        ) and ours == [0]:
            return _finding(claim, Verdict.RIGHT, f"{claim.subject} has none")
        return _finding(claim, Verdict.UNCHECKED, "no number to compare")
    if not ours:
        return _finding(claim, Verdict.UNCHECKED, f"no {figure.title} on record for these models")
    if not given:
        return _judge_unit(claim, key, ours)
    if not any(ours):
        return _wrong(claim, Problem.ABSENT, _absent_text(claim, figure.title, key))
    return _judge_pair(claim, key, given) or _judge_alternatives(claim, key, given, ours)


def _absent_text(claim: Claim, title: str, key: str) -> str:
    dense = dense_twin(key)
    if dense and any(_numbers(claim.models, dense)):
        return f"{claim.subject} has no sparse rate of {BY_KEY[dense].title}"
    return f"{claim.subject} has no {title.removesuffix(', dense')}"


def _judge_unit(claim: Claim, key: str, ours: Sequence[float]) -> Finding:
    spot = claim.quantities[0]
    pair = {spot.dimension, BY_KEY[key].dimension}
    if pair == {Dimension.SIZE, Dimension.BANDWIDTH}:
        kind = "a size" if spot.dimension is Dimension.SIZE else "a rate"
        text = f"{spot.text} is {kind}; {BY_KEY[key].title} is {_spelled(key, ours)}"
        return _wrong(claim, Problem.UNIT, text)
    return _finding(claim, Verdict.UNCHECKED, f"{spot.text} does not measure {BY_KEY[key].title}")


def _judge_pair(claim: Claim, key: str, given: Sequence[Quantity]) -> Finding | None:
    """Judge a dense and a sparse rate in one cell; ``None`` when they are no such pair."""
    sparse = sparse_twin(key)
    if sparse is None or len(given) != len((key, sparse)):
        return None
    low, high = sorted(given, key=_value)
    dense_ours, sparse_ours = _numbers(claim.models, key), _numbers(claim.models, sparse)
    if not any(close(low, v) for v in dense_ours) or not any(close(high, v) for v in sparse_ours):
        return None
    text = f"dense {_spelled(key, dense_ours)}, 2:4 sparse {_spelled(sparse, sparse_ours)}"
    return _finding(claim, Verdict.RIGHT, text)


def _value(quantity: Quantity) -> float:
    return quantity.value


def _judge_alternatives(
    claim: Claim, key: str, given: Sequence[Quantity], ours: Sequence[float]
) -> Finding:
    sparse = sparse_twin(key)
    if sparse and len(given) == 1 and given[0].marked:
        if any(close(given[0], v) for v in _numbers(claim.models, sparse)):
            return _finding(claim, Verdict.RIGHT, f"with 2:4 sparsity; dense {_spelled(key, ours)}")
        if any(close(given[0], v) for v in ours):
            return _finding(claim, Verdict.RIGHT, f"dense {_spelled(key, ours)}")
    for spot in given:
        if any(close(spot, v) for v in _accepted(claim, key, ours)):
            return _finding(claim, Verdict.RIGHT, _right_text(claim, key, spot, ours))
    if sparse is None and dense_twin(key) is None and says_sparse(claim.label):
        text = f"{claim.subject} has no sparse rate of {BY_KEY[key].title}"
        return _wrong(claim, Problem.ABSENT, text)
    return _explain(claim, key, given[-1], ours)


def _accepted(claim: Claim, key: str, ours: Sequence[float]) -> list[float]:
    """Values that are right for a figure as the text speaks of it."""
    if key == "mig_instance_bytes":
        return [*ours, *(value / 8 for value in _numbers(claim.models, "memory_bytes"))]
    if key == "pcie_bytes_per_s":
        return [v * k for v in ours for k in (1, 2, 130 / 128, 260 / 128)]
    if key == "link_count":
        return [*ours, *(value * _GPUS_OF_BOARD for value in ours)]
    if key in _BOTH_WAYS and claim.divisor == "direction":
        return [value / 2 for value in ours]
    if key == "nvlink_bytes_per_s" and claim.divisor == "link":
        links = _numbers(claim.models, "link_count")
        return [v / n / k for v in ours for n in links if n for k in (1, 2)]
    return list(ours)


def _right_text(claim: Claim, key: str, spot: Quantity, ours: Sequence[float]) -> str:
    way = " in one direction" if key == "pcie_bytes_per_s" else ""
    text = f"ours is {_spelled(key, ours)}{way}"
    if key == "mig_instance_bytes" and not any(close(spot, v) for v in ours):
        return f"nominal; {_spelled(key, ours)} are usable"
    fits = [m.name for m in claim.models if any(close(spot, v) for v in _numbers([m], key))]
    if len(ours) > 1 and fits and len(fits) < len(claim.models):
        return f"true of {', '.join(fits)}"
    if key == "nvlink_bytes_per_s" and all(m.form_factor == "PCIe" for m in claim.models):
        return f"{text}, only with a bridge between two cards"
    return text


def _explain(claim: Claim, key: str, spot: Quantity, ours: Sequence[float]) -> Finding:
    """Find the likeliest mistake behind a wrong figure."""
    title, right = BY_KEY[key].title, _spelled(key, ours)
    twins = (
        (sparse_twin(key), Problem.SPARSE_AS_DENSE),
        (dense_twin(key), Problem.DENSE_AS_SPARSE),
    )
    for twin, problem in twins:
        if twin and any(close(spot, v) for v in _numbers(claim.models, twin)):
            kind = "2:4 sparse" if problem is Problem.SPARSE_AS_DENSE else "dense"
            text = f"{spot.text} is the {kind} rate; {title} is {right}"
            return _wrong(claim, problem, text, twin)
    for model in MODELS:
        if _same_family(model, claim.models) and any(
            close(spot, v) for v in _numbers([model], key)
        ):
            text = f"{spot.text} is {model.name}'s; {claim.subject} has {right}"
            return _wrong(claim, Problem.OTHER_MODEL, text, key)
    others = _rows_with(claim.models, key, spot)
    if others:
        names = " and of ".join(BY_KEY[other].title for other in others)
        if not claim.table and claim.label.lower() in BARE_BANDWIDTH:
            text = f"bandwidth of what is not said; {spot.text} is that of {names}"
            return _finding(claim, Verdict.UNCHECKED, text)
        text = f"{spot.text} is the figure of {names}; {title} is {right}"
        return _wrong(claim, Problem.OTHER_ROW, text, others[0])
    return _explain_scale(claim, key, spot, ours)


def _same(spot: Quantity, ours: float) -> bool:
    return abs(spot.value - ours) <= max(_CLOSE * ours, min(spot.half_step, 0.01 * ours))


def _same_family(model: Model, models: Sequence[Model]) -> bool:
    stems = {other.name.split("-")[0] for other in models}
    return model not in models and model.name.split("-")[0] in stems


def _rows_with(models: Sequence[Model], key: str, spot: Quantity) -> list[str]:
    """Other rows of the same kind whose figure this is, nearest row first."""
    order = [row.key for row in FIGURES]
    rows = [
        row.key
        for row in FIGURES
        if row.key != key
        and row.dimension is BY_KEY[key].dimension
        and row.dimension is not Dimension.COUNT
        and any(v and _same(spot, v) for v in _numbers(models, row.key))
    ]
    here = order.index(key)
    rows.sort(key=lambda other: abs(order.index(other) - here))
    return rows[:2]


_SCALES: Final = (
    (0.5, Problem.DIRECTION, "half of ours"),
    (2.0, Problem.DIRECTION, "twice ours"),
    (8.0, Problem.SCALE, "eight times ours, as if bits were bytes"),
    (0.125, Problem.SCALE, "an eighth of ours, as if bytes were bits"),
    (10.0, Problem.SCALE, "ten times ours"),
    (0.1, Problem.SCALE, "a tenth of ours"),
    (1000.0, Problem.SCALE, "a thousand times ours"),
    (0.001, Problem.SCALE, "a thousandth of ours"),
    (1024.0, Problem.SCALE, "1,024 times ours"),
    (1 / 1024, Problem.SCALE, "1/1,024 of ours"),
)


def _explain_scale(claim: Claim, key: str, spot: Quantity, ours: Sequence[float]) -> Finding:
    right = _spelled(key, ours)
    for factor, problem, words in _SCALES:
        if not any(close(spot, value * factor) for value in ours):
            continue
        if problem is Problem.DIRECTION and key in _BOTH_WAYS:
            way = "one direction" if factor < 1 else "twice both directions together"
            return _wrong(claim, problem, f"{spot.text} is {way}; both together are {right}")
        kind = Problem.VALUE if problem is Problem.DIRECTION else problem
        return _wrong(claim, kind, f"{spot.text} is {words}, {right}")
    if key == "power_default_w" and spot.value == _CUSTOM_W and max(ours) == _CUSTOM_OF_W:
        text = "500 W is a custom thermal variant; the standard limit is " + right
        return _wrong(claim, Problem.VALUE, text)
    text = f"{BY_KEY[key].title}: {right}, not {spot.text}"
    if key == "link_count":
        text += f"; {max(ours) * _GPUS_OF_BOARD:g} on a board of {_GPUS_OF_BOARD}"
    return _wrong(claim, Problem.VALUE, text)


def _judge_multiple(claim: Claim, multiple: Quantity, key: str) -> Finding:
    title = BY_KEY[key].title
    pairs = [
        (model, ours / theirs)
        for model in claim.models
        for ours in _numbers([model], key)
        for theirs in _numbers(claim.reference, key)
        if ours and theirs
    ]
    if not pairs:
        return _finding(claim, Verdict.UNCHECKED, f"no two figures of {title} to divide")
    ratios = list(dict.fromkeys(round(ratio, 2) for _, ratio in pairs))
    said = ", ".join(f"{ratio:g}x" for ratio in ratios)
    if any(close(multiple, ratio) for _, ratio in pairs):
        return _finding(claim, Verdict.RIGHT, f"the ratio of {title} is {said}")
    names = claim.reference[0].name.split("-")[0]
    text = f"the ratio of {title} to {names} is {said}, not {multiple.value:g}x"
    links = _numbers(claim.reference, "link_count")
    if key == "nvlink_bytes_per_s" and multiple.value in links:
        own = _spelled("link_count", [v for v in _numbers(claim.models, "link_count") if v])
        text += f"; {multiple.value:g} is {names}'s count of links ({claim.subject} has {own})"
    return _wrong(claim, Problem.MULTIPLE, text)


def _judge_word(claim: Claim, key: str) -> Finding:
    values = [_TABLES[model.name][key] for model in claim.models]
    ours = list(dict.fromkeys(value for value in values if isinstance(value, str)))
    if not ours:
        return _finding(claim, Verdict.UNCHECKED, f"no {BY_KEY[key].title} on record")
    word = claim.word.lower()
    if any(_word_fits(key, word, value.lower()) for value in ours):
        return _finding(claim, Verdict.RIGHT, f"ours is {' or '.join(ours)}")
    if key in ("form_factor", "announced") and not re.search(r"sxm|pci|20\d\d", word):
        return _finding(claim, Verdict.UNCHECKED, f"ours is {' or '.join(ours)}")
    text = f"{BY_KEY[key].title} is {' or '.join(ours)}, not {claim.word}"
    return _wrong(claim, Problem.VALUE, text)


def _word_fits(key: str, word: str, ours: str) -> bool:
    if key == "announced":
        return ours[:4] in word
    if key == "memory_kind":
        return word in ("hbm", ours)
    return ours in word.replace("-", "") or (word in ("sxm",) and ours.startswith(word))
