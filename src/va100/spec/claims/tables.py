"""Tables to claims: Markdown, CSV, TSV and JSON, models across or down."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from va100.spec import a100
from va100.spec.claims.claim import Claim
from va100.spec.claims.labels import divisor_of, label_of, labels_in, says_sparse
from va100.spec.claims.prose import sentence_claims
from va100.spec.claims.quantity import Quantity, quantities, unit_in, with_unit
from va100.spec.figures import BY_KEY, Dimension, sparse_twin
from va100.spec.names import Model, models_in

_DEFAULT_UNIT: Final = {
    Dimension.RATE: "TFLOPS",
    Dimension.BANDWIDTH: "GB/s",
    Dimension.SIZE: "GB",
    Dimension.POWER: "W",
    Dimension.CLOCK: "MHz",
    Dimension.WIDTH: "bit",
}
_SMALL_SIZES: Final = {"l2_bytes": "MB", "l1_shared_bytes": "KB", "shared_bytes": "KB"}
_DASHES: Final = re.compile(r":?-+:?")
_HEADED: Final = 2
"""Rows of the smallest table: a heading and a row."""
_LONGEST_CELL: Final = 500
_MARKUP: Final = re.compile(r"<[^>]{0,40}>|\*\*|__|`")
_UNIT_HEADING: Final = re.compile(r"^\W*(?:units?|单位)\W*$", re.IGNORECASE)
_KIND: Final = re.compile(r"(?:hbm\d?e?|gddr\d\w?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of a table and the line each row stands on."""

    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]
    column_lines: tuple[int, ...] = ()
    """The lines instead of each column, once a table has been turned."""


def markdown_grids(text: str) -> tuple[list[Grid], str]:
    """Tables of a Markdown text, and the text with their lines blanked."""
    lines = text.split("\n")
    grids: list[Grid] = []
    index = 0
    while index + 1 < len(lines):
        if "|" in lines[index] and "|" in lines[index + 1] and _separates(lines[index + 1]):
            end = index + 2
            while end < len(lines) and "|" in lines[end] and lines[end].strip():
                end += 1
            numbers = [index, *range(index + 2, end)]
            grids.append(
                Grid(
                    tuple(_markdown_row(lines[number]) for number in numbers),
                    tuple(number + 1 for number in numbers),
                )
            )
            lines[index:end] = [""] * (end - index)
            index = end
        else:
            index += 1
    return grids, "\n".join(lines)


def delimited_grid(text: str, delimiter: str) -> Grid:
    """Rows of a CSV or TSV text."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    rows, lines = [], []
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append(tuple(cell[:_LONGEST_CELL] for cell in row))
                lines.append(reader.line_num)
    except csv.Error as error:
        raise ValueError(f"not a table of delimited values: {error}") from error
    return Grid(tuple(rows), tuple(lines))


def json_grid(text: str) -> Grid:
    """Read a JSON table: model to figures, figure to models, or a list of records.

    Raises
    ------
    ValueError
        It is no JSON, or no such table.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from error
    records = data.get("models", data) if isinstance(data, dict) else data
    if isinstance(records, list):
        records = _named_records(records)
    if not isinstance(records, dict) or not records:
        raise ValueError("JSON, but no object of models or figures, and no list of records")
    if not all(isinstance(value, dict) for value in records.values()):
        records = {"A100": records}
    columns = list(dict.fromkeys(key for value in records.values() for key in value))
    rows = [("", *columns)]
    rows += [(name, *(_text(row.get(key)) for key in columns)) for name, row in records.items()]
    rows = [tuple(cell[:_LONGEST_CELL] for cell in row) for row in rows]
    return Grid(tuple(rows), tuple(0 for _ in rows))


def grid_claims(grid: Grid, table: int) -> list[Claim]:
    """Claims of a table, whichever way it lies."""
    if len(grid.rows) < _HEADED:
        return []
    if _lies_down(grid):
        width = max(len(row) for row in grid.rows)
        padded = [(*row, *[""] * (width - len(row))) for row in grid.rows]
        turned = Grid(tuple(zip(*padded, strict=True)), (grid.lines[0],) * width, grid.lines)
        return _once(_claims(turned, table))
    return _once(_claims(grid, table))


def _once(claims: Iterable[Claim]) -> list[Claim]:
    """Drop repeats of a row that is not known here, one for each column."""
    kept: dict[tuple[int, str] | int, Claim] = {}
    for number, claim in enumerate(claims):
        repeated = claim.figure is None and not claim.quantities and claim.subject
        kept.setdefault((claim.line, claim.label) if repeated else number, claim)
    return list(kept.values())


def _named_records(records: list[object]) -> dict[str, dict[str, object]]:
    named = {}
    for number, record in enumerate(records):
        if not isinstance(record, dict):
            raise ValueError("a JSON list, but not of objects")
        known = {key.lower(): key for key in record}
        title = next((known[k] for k in ("model", "gpu", "name", "product") if k in known), None)
        name = str(record[title]) if title else f"record {number + 1}"
        named[name] = {key: value for key, value in record.items() if key != title}
    return named


def _text(value: object, depth: int = 4) -> str:
    """Spell a JSON value as a table's cell would; what is nested deeper than a cell is left out."""
    if value is None or not depth:
        return ""
    if isinstance(value, dict):
        return " ".join(_text(part, depth - 1) for part in value.values())
    if isinstance(value, list):
        return " / ".join(_text(part, depth - 1) for part in value)
    try:
        return str(value)
    except ValueError:
        return "a number of too many digits"


def _separates(line: str) -> bool:
    """Tell the row of dashes under a Markdown heading."""
    cells = line.strip().strip("|").split("|")
    return all(_DASHES.fullmatch(cell.strip()) for cell in cells)


def _markdown_row(line: str) -> tuple[str, ...]:
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    cells = re.split(r"(?<!\\)\|", inner)
    return tuple(
        _MARKUP.sub(" ", cell).replace("\\|", "|").replace("\\*", "*").strip()[:_LONGEST_CELL]
        for cell in cells
    )


def _lies_down(grid: Grid) -> bool:
    """Models run down the first column and figures across the first row."""
    across = [cell for cell in grid.rows[0][1:] if label_of(cell)]
    models = [row[0] for row in grid.rows[1:] if row and models_in(row[0])]
    figures = [row[0] for row in grid.rows[1:] if row and label_of(row[0])]
    headed = [cell for cell in grid.rows[0][1:] if models_in(cell)]
    return len(across) > len(headed) and len(models) > len(figures)


def _claims(grid: Grid, table: int) -> Iterator[Claim]:
    heading = grid.rows[0]
    units = next((i for i, cell in enumerate(heading) if _UNIT_HEADING.match(cell)), None)
    columns = [i for i in range(1, len(heading)) if i != units]
    models = {i: models_in(heading[i]) for i in columns}
    if not any(models.values()) and len(columns) == 1:
        models = {columns[0]: models_in(heading[0]) or a100.MODELS}
    for index in columns:
        if not models[index] and heading[index].strip():
            yield _unknown(heading[index], grid.lines[0], table, "")
    for row, line in zip(grid.rows[1:], grid.lines[1:], strict=True):
        unit = row[units] if units is not None and units < len(row) else ""
        for index in columns:
            if models[index] and index < len(row) and row[0].strip():
                where = grid.column_lines[index] if grid.column_lines else line
                place = _Place(where, table, heading[index], models[index])
                yield from _cell_claims(row[0], row[index], unit, place)


@dataclass(frozen=True, slots=True)
class _Place:
    line: int
    table: int
    heading: str
    models: tuple[Model, ...]

    @property
    def subject(self) -> str:
        return " ".join(self.heading.split()) or "value"


def _cell_claims(label: str, cell: str, unit: str, place: _Place) -> Iterator[Claim]:
    key = label_of(label)
    inner = labels_in(cell)
    if key is None and inner and any(q.dimension for q in quantities(cell)):
        for claim in sentence_claims(cell, place.line, place.models, place.subject):
            yield _placed(claim, place)
        return
    if key is None:
        yield _unknown(label, place.line, place.table, place.subject)
        return
    yield from _keyed_claims(key, label, cell, unit, place)


def _keyed_claims(key: str, label: str, cell: str, unit: str, place: _Place) -> Iterator[Claim]:
    ratios = [
        c
        for c in sentence_claims(f"{label}: {cell}", place.line, place.models, place.subject)
        if c.multiple
    ]
    if ratios:
        yield from (_placed(claim, place) for claim in ratios)
        return
    if says_sparse(place.heading):
        key = sparse_twin(key) or key
    given = _united(key, cell, (unit_in(unit), unit_in(label), unit_in(place.heading)))
    figure = BY_KEY[key]
    kind = _KIND.search(cell) if key in ("memory_bytes", "memory_kind") else None
    if figure.dimension is Dimension.WORD or kind:
        word = kind.group() if kind else cell
        word_key = "memory_kind" if kind else key
        yield _claim(word_key, label, cell, (), place, word=word.strip())
    if figure.dimension is Dimension.WORD:
        return
    if key == "mig_instance_count":
        sizes = tuple(q for q in given if q.dimension is Dimension.SIZE)
        if sizes:
            yield _claim("mig_instance_bytes", label, cell, sizes, place)
        given = tuple(q for q in given if q.dimension is not Dimension.SIZE)
    if given or not kind:
        yield _claim(key, label, cell, given, place)


def _united(key: str, cell: str, units: tuple[str, ...]) -> tuple[Quantity, ...]:
    """Numbers of a cell, bare ones read in the unit its row or heading gives."""
    found = quantities(cell)
    dimension = BY_KEY[key].dimension
    if dimension is Dimension.COUNT:
        return tuple(found)
    if any(q.dimension for q in found):
        return tuple(q for q in found if q.dimension)
    usual = _SMALL_SIZES.get(key) or _DEFAULT_UNIT.get(dimension, "")
    for unit in (*units, usual):
        read = tuple(with_unit(q, unit) for q in found)
        if all(q.dimension is dimension for q in read):
            return read
    return tuple(found)


def _claim(
    key: str,
    label: str,
    cell: str,
    given: tuple[Quantity, ...],
    place: _Place,
    *,
    word: str = "",
) -> Claim:
    return Claim(
        line=place.line,
        label=" ".join(label.split()),
        text=" ".join(cell.split())[:120],
        models=place.models,
        subject=place.subject,
        figure=key,
        quantities=given,
        word=word,
        divisor=divisor_of(f"{label} {cell}"),
        table=place.table,
    )


def _placed(claim: Claim, place: _Place) -> Claim:
    return replace(claim, table=place.table)


def _unknown(label: str, line: int, table: int, subject: str) -> Claim:
    return Claim(
        line=line,
        label=" ".join(label.split())[:80],
        text="",
        models=(),
        subject=subject,
        figure=None,
        table=table,
    )
