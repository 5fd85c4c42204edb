"""``va100 specs``: the facts side by side, and a check of other people's tables."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Final

from va100.spec import a100, clouds, hgx, mig, rates
from va100.spec.claims.claim import Finding, Review, Verdict
from va100.spec.claims.review import review
from va100.spec.figures import FIGURES, figure_sources, figures, value_text
from va100.spec.model import ChipSpec, Source, Spec, nested_specs, plain_fields
from va100.spec.names import MODELS, Model, close_names, find_models
from va100.units import GB, GIB, MIB

TOPICS: Final = ("mig", "hgx", "clouds")
_COLUMNS: Final = 4
_LARGEST_FILE_BYTES: Final = 2 * MIB

RIGHT, DISCREPANCIES, UNREADABLE = 0, 1, 2


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "specs",
        help="facts of GPUs side by side, or a check of someone's table of them",
        description="Show facts of GPU models side by side (the four A100s unless named), or "
        "check what a table or text says of them.",
    )
    parser.add_argument(
        "models",
        nargs="*",
        metavar="MODEL",
        help="such as sxm80, a100-80g, h100; also mig, hgx, clouds",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, in base units")
    parser.add_argument("--sources", action="store_true", help="say where each figure is from")
    parser.add_argument(
        "--all", action="store_true", help="every model, MIG profiles, boards and clouds"
    )
    parser.add_argument(
        "--check",
        metavar="FILE",
        help="compare a Markdown, CSV, TSV or JSON table, or plain text, with the facts; "
        "- reads standard input",
    )


def run(args: argparse.Namespace) -> int:
    """Do what the command line asks; the result is the exit status."""
    if args.check is not None:
        return _check(args.check, as_json=args.json)
    topics = TOPICS if args.all else tuple(dict.fromkeys(w for w in args.models if w in TOPICS))
    models, strangers = _chosen(args)
    if strangers:
        for name in strangers:
            _complain(name)
        return UNREADABLE
    if args.json:
        print(json.dumps(_json(models, topics, with_sources=args.sources), indent=2))
        return RIGHT
    for start in range(0, len(models), _COLUMNS):
        _print_models(models[start : start + _COLUMNS])
        print()
    for topic in topics:
        _PRINTERS[topic]()
        print()
    if args.sources:
        _print_sources(models)
    return RIGHT


def _chosen(args: argparse.Namespace) -> tuple[list[Model], list[str]]:
    """Models asked for, and words that name none."""
    names = [word for word in args.models if word not in TOPICS]
    found = {name: find_models(name) for name in names}
    strangers = [name for name, models in found.items() if not models]
    if names:
        chosen = dict.fromkeys(model for models in found.values() for model in models)
        return list(chosen), strangers
    if args.all:
        return list(MODELS), strangers
    return ([] if args.models else list(a100.MODELS)), strangers


def _complain(name: str) -> None:
    near = close_names(name) or [model.name for model in MODELS]
    print(f"va100 specs: no model {name!r}; close: {', '.join(near)}", file=sys.stderr)


def _print_models(models: Sequence[Model]) -> None:
    tables = [figures(model) for model in models]
    rows = [["", *(model.name for model in models)]]
    for figure in FIGURES:
        cells = [value_text(figure, table[figure.key]) for table in tables]
        if any(cell not in ("-", "?") for cell in cells):
            rows.append([figure.title, *cells])
    _print_table(rows)
    print("-: has none   ?: no figure here   rates at boost clock, 2:4 sparse counted as dense")


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for number, row in enumerate(rows):
        first = row[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join([first, *rest]).rstrip())
        if number == 0:
            print("-" * (sum(widths) + 2 * (len(widths) - 1)))


def _print_mig() -> None:
    for title, table in (("40 GB", mig.PROFILES_40GB), ("80 GB", mig.PROFILES_80GB)):
        rows = [
            [f"MIG, {title}", "id", "most", "MiB", "SMs", "CE", "DEC", "JPEG", "OFA", "start:size"]
        ]
        for profile in table:
            starts = ",".join(str(start) for start in profile.placement_starts)
            rows.append(
                [
                    profile.name,
                    str(profile.profile_id),
                    str(profile.instance_count),
                    str(profile.memory_bytes // MIB),
                    str(profile.sm_count),
                    str(profile.copy_engine_count),
                    str(profile.nvdec_count),
                    str(profile.nvjpeg_count),
                    str(profile.ofa_count),
                    f"{{{starts}}}:{profile.memory_slice_count}",
                ]
            )
        _print_table(rows)


def _print_boards() -> None:
    rows = [["Board", "GPUs", "NVSwitches", "a pair, GB/s", "bisection, GB/s"]]
    for board in hgx.BOARDS:
        pair, halves = rates.pair_bytes_per_s(board), rates.bisection_bytes_per_s(board)
        counts = [str(board.gpu_count), str(board.nvswitch_count)]
        rows.append([board.name, *counts, f"{pair / GB:,.0f}", f"{halves / GB:,.0f}"])
    _print_table(rows)
    print("rates are of one direction")


def _print_clouds() -> None:
    rows = [["Instance", "GPUs", "vCPUs", "GiB", "network", "USD/h", "market", "region", "seen"]]
    for row in clouds.INSTANCES:
        memory = "?" if row.memory_bytes is None else str(row.memory_bytes // GIB)
        shape = [
            f"{row.provider} {row.name}",
            f"{row.gpu_count} x {row.gpu_model}",
            "?" if row.vcpu_count is None else str(row.vcpu_count),
            memory,
            row.network,
        ]
        rows += [
            [*shape, f"{price.price_usd_per_h:.2f}", price.market, price.region, price.date]
            for price in row.prices
        ]
    _print_table(rows)
    print("prices are copies of price lists as of the day given, not today's")


_PRINTERS: Final = {"mig": _print_mig, "hgx": _print_boards, "clouds": _print_clouds}


def _print_sources(models: Sequence[Model]) -> None:
    for model in models:
        print(f"{model.name}:")
        for figure in FIGURES:
            cited = [f"{path} [{_cite(source)}]" for path, source in figure_sources(model, figure)]
            if cited:
                print(f"  {figure.title}: {', '.join(cited)}")
    print("keys are explained in docs/sources.md")


def _cite(source: Source) -> str:
    return f"{source.key}, {source.where}; {source.confidence.value}"


def _json(
    models: Sequence[Model], topics: Sequence[str], *, with_sources: bool
) -> dict[str, object]:
    data: dict[str, object] = {
        "models": {model.name: _model_json(model, with_sources=with_sources) for model in models}
    }
    specs: dict[str, Iterable[Spec]] = {
        "mig": (*mig.PROFILES_40GB, *mig.PROFILES_80GB, *mig.COMPUTE_PROFILES),
        "hgx": (*hgx.BOARDS, *hgx.FABRIC_PARTITIONS),
        "clouds": clouds.INSTANCES,
    }
    for topic in topics:
        data[topic] = [_plain(spec, with_sources=with_sources) for spec in specs[topic]]
    return data


def _model_json(model: Model, *, with_sources: bool) -> dict[str, object]:
    entry: dict[str, object] = {"product_name": model.product_name, **figures(model)}
    if isinstance(model, ChipSpec):
        entry["structure"] = _plain(model, with_sources=False)
    if with_sources:
        entry["sources"] = {
            figure.key: {path: _source_json(s) for path, s in figure_sources(model, figure)}
            for figure in FIGURES
        }
        entry["field_sources"] = dict(_field_sources(model))
    return entry


def _field_sources(spec: Spec, outer: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    for name, source in spec.sources.items():
        yield f"{outer}{name}", _source_json(source)
    for name, part in nested_specs(spec):
        yield from _field_sources(part, f"{outer}{name}.")


def _source_json(source: Source) -> dict[str, str]:
    return {"key": source.key, "where": source.where, "confidence": source.confidence.value}


def _plain(spec: Spec, *, with_sources: bool) -> dict[str, object]:
    """Fields of a spec as JSON values."""
    entry: dict[str, object] = {name: _jsonable(getattr(spec, name)) for name in plain_fields(spec)}
    lists: dict[str, list[object]] = {}
    for name, part in nested_specs(spec):
        inner = _plain(part, with_sources=with_sources)
        if isinstance(getattr(spec, name), tuple):
            lists.setdefault(name, []).append(inner)
        else:
            entry[name] = inner
    entry.update(lists)
    if with_sources:
        entry["sources"] = {name: _source_json(source) for name, source in spec.sources.items()}
    return entry


def _jsonable(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, frozenset):
        return sorted(str(_jsonable(part)) for part in value)
    if isinstance(value, tuple):
        return [_jsonable(part) for part in value]
    return value


def _check(name: str, *, as_json: bool) -> int:
    try:
        result = review(_read(name), suffix="" if name == "-" else Path(name).suffix)
    except (OSError, ValueError) as error:
        reason = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
        print(f"va100 specs: cannot check {name}: {reason}", file=sys.stderr)
        return UNREADABLE
    if not any(f.verdict is not Verdict.UNCHECKED for f in result.findings):
        print(f"va100 specs: {name}: nothing in it could be checked", file=sys.stderr)
        _print_review(result, as_json=as_json)
        return UNREADABLE
    _print_review(result, as_json=as_json)
    return DISCREPANCIES if result.wrong_count else RIGHT


def _read(name: str) -> str:
    """Text of a file.

    Raises
    ------
    OSError
        It cannot be read, or is too large to be a table.
    UnicodeDecodeError
        It is no text.
    """
    if name == "-":
        return sys.stdin.buffer.read(_LARGEST_FILE_BYTES).decode("utf-8-sig")
    path = Path(name)
    if path.stat().st_size > _LARGEST_FILE_BYTES:
        raise OSError(f"larger than {_LARGEST_FILE_BYTES // MIB} MiB")
    return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def _print_review(result: Review, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(_review_json(result), indent=2))
        return
    for verdict in (Verdict.WRONG, Verdict.RIGHT, Verdict.UNCHECKED):
        group = [finding for finding in result.findings if finding.verdict is verdict]
        if group:
            print(f"{verdict.value}: {len(group)}")
        for finding in group:
            print(f"  {_finding_text(finding)}")
    for pattern in result.patterns:
        print(f"pattern: {pattern}")


def _finding_text(finding: Finding) -> str:
    claim = finding.claim
    place = f"line {claim.line}: " if claim.line else ""
    subject = f" of {claim.subject}" if claim.subject and claim.figure else ""
    said = f" ({claim.text})" if claim.text else ""
    return f"{place}{claim.label}{subject}{said}: {finding.explanation}"


def _review_json(result: Review) -> dict[str, object]:
    counts = {v.name.lower(): sum(f.verdict is v for f in result.findings) for v in Verdict}
    return {
        "counts": counts,
        "findings": [_finding_json(finding) for finding in result.findings],
        "patterns": list(result.patterns),
    }


def _finding_json(finding: Finding) -> dict[str, object]:
    claim = finding.claim
    return {
        "line": claim.line,
        "label": claim.label,
        "subject": claim.subject,
        "text": claim.text,
        "figure": claim.figure,
        "models": [model.name for model in claim.models],
        "ours": [figures(model)[claim.figure] for model in claim.models] if claim.figure else [],
        "verdict": finding.verdict.name.lower(),
        "problem": finding.problem.name.lower(),
        "matches": finding.matches,
        "explanation": finding.explanation,
    }
