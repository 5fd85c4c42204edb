"""A whole text: find its tables and sentences, judge every claim, name what they show together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from va100.spec.claims.claim import Claim, Finding, Problem, Review, Verdict
from va100.spec.claims.judge import judge
from va100.spec.claims.labels import label_of
from va100.spec.claims.prose import prose_claims
from va100.spec.claims.tables import (
    Grid,
    delimited_grid,
    grid_claims,
    json_grid,
    markdown_grids,
)
from va100.spec.figures import BY_KEY, FIGURES, Dimension
from va100.spec.names import models_in

_SEVERAL: Final = 2
"""So many mistakes of a kind make a pattern."""
_DELIMITERS: Final = {".csv": ",", ".tsv": "\t", ".tab": "\t"}


def review(text: str, *, suffix: str = "") -> Review:
    """Judge all that a text says about GPUs we know.

    Parameters
    ----------
    suffix : str
        The file's ending, which settles the format when it is one of a table's.

    Raises
    ------
    ValueError
        The ending promises a table and the text holds none.
    """
    findings = tuple(judge(claim) for claim in claims(text, suffix=suffix.lower()))
    return Review(findings=findings, patterns=(*_sparse_columns(findings), *_shifts(findings)))


def claims(text: str, *, suffix: str = "") -> list[Claim]:
    """Everything a text claims, in order."""
    if suffix == ".json" or text.lstrip()[:1] in ("{", "["):
        try:
            return grid_claims(json_grid(text), 1)
        except ValueError:
            if suffix == ".json":
                raise
    if suffix in _DELIMITERS:
        return grid_claims(delimited_grid(text, _DELIMITERS[suffix]), 1)
    grids, rest = markdown_grids(text)
    if not grids:
        grid = _sniffed(text)
        if grid is not None:
            return grid_claims(grid, 1)
    found = [claim for n, grid in enumerate(grids) for claim in grid_claims(grid, n + 1)]
    return sorted(found + prose_claims(rest), key=_line)


def _line(claim: Claim) -> int:
    return claim.line


def _sniffed(text: str) -> Grid | None:
    """Read a table of delimited values that its ending does not announce."""
    first, _, rest = text.lstrip("\n").partition("\n")
    for delimiter in ("\t", ";", ","):
        if delimiter not in first or delimiter not in rest.split("\n")[0]:
            continue
        try:
            grid = delimited_grid(text, delimiter)
        except ValueError:
            continue
        cells = grid.rows[0][1:] if grid.rows else ()
        if len(grid.rows) > 1 and any(models_in(cell) or label_of(cell) for cell in cells):
            even = sum(len(row) == len(grid.rows[0]) for row in grid.rows)
            if even * 2 > len(grid.rows):
                return grid
    return None


def _sparse_columns(findings: tuple[Finding, ...]) -> Iterator[str]:
    """Columns that list sparse rates as dense, seen against the columns beside them."""
    columns: dict[tuple[int, str], list[Finding]] = defaultdict(list)
    dense: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for finding in findings:
        claim = finding.claim
        if finding.problem is Problem.SPARSE_AS_DENSE:
            columns[claim.table, claim.subject].append(finding)
        elif finding.verdict is Verdict.RIGHT and claim.figure and len(claim.quantities) == 1:
            dense[claim.table][claim.figure].add(claim.subject)
    alike: dict[tuple[int, tuple[str, ...]], list[str]] = defaultdict(list)
    for (table, subject), group in columns.items():
        keys = tuple(dict.fromkeys(finding.claim.figure or "" for finding in group))
        if len(keys) >= _SEVERAL:
            alike[table, keys].append(subject)
    for (table, keys), subjects in alike.items():
        rows = ", ".join(BY_KEY[key].title.split()[0] for key in keys)
        text = f"{' and '.join(subjects)}: 2:4 sparse rates listed as dense ones ({rows})"
        beside = sorted({other for key in keys for other in dense[table][key]} - {*subjects})
        if table and beside:
            text += f"; beside it {' and '.join(beside)}: dense, so that factor of two is not real"
        yield text


def _shifts(findings: tuple[Finding, ...]) -> Iterator[str]:
    """Find runs of figures that each belong to a neighbouring row."""
    order = {row.key: number for number, row in enumerate(FIGURES)}
    runs: dict[tuple[int, str, Dimension, bool], list[Finding]] = defaultdict(list)
    for finding in findings:
        key = finding.claim.figure
        if finding.problem is Problem.OTHER_ROW and key:
            later = order[finding.matches] > order[key]
            place = finding.claim.subject if finding.claim.table else str(finding.claim.line)
            runs[finding.claim.table, place, BY_KEY[key].dimension, later].append(finding)
    for (*_, later), run in runs.items():
        if len(run) >= _SEVERAL:
            rows = ", ".join(BY_KEY[finding.claim.figure or ""].title for finding in run)
            whose = "following" if later else "preceding"
            yield f"values of {rows} look shifted by a row: each is a {whose} row's"
