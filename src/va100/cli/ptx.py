"""``va100 ptx``: what was understood of PTX texts, their problems, blocks and coverage."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from va100.errors import PtxError
from va100.ptx.cfg import build_flow
from va100.ptx.cfg_text import flow_dot, flow_text
from va100.ptx.isa import ARCHITECTURE, FORM_IDS, ISA, Form, Support
from va100.ptx.isa.decode import spelling
from va100.ptx.parser import parse
from va100.ptx.printer import print_module
from va100.ptx.program import Function, PtxModule, Variable
from va100.ptx.summary import FunctionSummary, form_counts, summarise
from va100.ptx.types import Space
from va100.ptx.verify import problems

GOOD, BAD_TEXT, UNREADABLE = 0, 1, 2

_BINARIES: Final = {
    b"\x7fELF": "an ELF image; `cuobjdump -ptx` shows the PTX in it, if any",
    b"\x50\xed\x55\xba": "a fatbin; `cuobjdump -ptx` shows the PTX in it, if any",
}
_SHOWN_LINES: Final = 4


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "ptx",
        help="read PTX: what it holds, whether it keeps the rules, what is executed",
        description="Show what was understood of PTX texts: kernels, parameters, registers, "
        "shared memory, instructions by family, and what is not executed yet.",
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="a PTX text; - is standard input")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--verify", action="store_true", help="only check, list every problem")
    how.add_argument("--print", action="store_true", help="print the text back, normalised")
    how.add_argument("--cfg", action="store_true", help="print basic blocks and where they meet")
    how.add_argument("--dot", action="store_true", help="print the blocks for Graphviz")
    how.add_argument(
        "--coverage",
        action="store_true",
        help="list instruction forms with their support; without FILE, the whole table",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Do what the command line asks; the result is the exit status."""
    if not args.files:
        if not args.coverage:
            print("va100 ptx: name a PTX file, or - for standard input", file=sys.stderr)
            return UNREADABLE
        _print_table(as_json=args.json)
        return GOOD
    status = GOOD
    documents = []
    for name in args.files:
        text, outcome = _read(name)
        if text is None:
            status = max(status, outcome)
            continue
        document, outcome = _show(text, name, args)
        documents.append(document)
        status = max(status, outcome)
    if args.json:
        print(json.dumps(documents, indent=2))
    return status


def _read(name: str) -> tuple[str | None, int]:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        print(f"va100 ptx: {name}: {error.strerror}", file=sys.stderr)
        return None, UNREADABLE
    for magic, what in _BINARIES.items():
        if data.startswith(magic):
            print(f"va100 ptx: {name}: no PTX text but {what}", file=sys.stderr)
            return None, BAD_TEXT
    try:
        return data.decode(), GOOD
    except UnicodeDecodeError as error:
        print(f"va100 ptx: {name}: no text: byte {error.start} is none", file=sys.stderr)
        return None, BAD_TEXT


def _show(text: str, name: str, args: argparse.Namespace) -> tuple[dict[str, Any], int]:
    shown = "<stdin>" if name == "-" else name
    try:
        module = parse(text, shown)
    except PtxError as error:
        if not args.json:
            print(error, file=sys.stderr)
        return {"file": shown, "problems": [_problem(error)]}, BAD_TEXT
    found = problems(module)
    if args.json:
        return _document(module, found), BAD_TEXT if found else GOOD
    for problem in found:
        print(problem, file=sys.stderr)
    if args.print:
        print(print_module(module), end="")
    elif not found:
        _print(module, args)
    elif not args.verify:
        print(f"{shown}: {len(found)} problem{'s' if len(found) > 1 else ''}", file=sys.stderr)
    return {}, BAD_TEXT if found else GOOD


def _print(module: PtxModule, args: argparse.Namespace) -> None:
    if args.verify:
        print(f"{module.name}: keeps the rules")
    elif args.cfg or args.dot:
        for function in _defined(module):
            flow = build_flow(module, function)
            print(flow_dot(flow) if args.dot else flow_text(flow))
    elif args.coverage:
        _print_coverage(module)
    else:
        _print_summary(module)


def _defined(module: PtxModule) -> Iterator[Function]:
    return (function for function in module.functions if function.body is not None)


# ---------------------------------------------------------------- summary


def _print_summary(module: PtxModule) -> None:
    version = f"{module.version[0]}.{module.version[1]}"
    print(f"{module.name}: PTX ISA {version} for {', '.join(module.target)}")
    for variable in module.variables:
        print(f"  variable {_variable_text(variable)}")
    for function in _defined(module):
        _print_function(summarise(module, function))
    externs = [f.name for f in module.functions if f.linkage == "extern" and f.body is None]
    if externs:
        print(f"  needs from elsewhere: {', '.join(externs)}")


def _print_function(summary: FunctionSummary) -> None:
    kind = "kernel" if summary.is_kernel else "function"
    print(f"  {kind} {summary.name} (line {summary.line})")
    for what, variables in (("parameter", summary.params), ("returns", summary.returns)):
        for variable in variables:
            print(f"    {what} {_variable_text(variable)}")
    for name, numbers in summary.directives:
        print(f"    .{name} {', '.join(str(n) for n in numbers)}".rstrip())
    registers = ", ".join(f"{count} {kind}" for kind, count in summary.registers.items())
    print(f"    registers: {registers or 'none'}")
    dynamic = " and dynamic" if summary.uses_dynamic_shared else ""
    print(f"    shared: {summary.static_shared_bytes} bytes{dynamic}; local: ", end="")
    print(f"{summary.local_bytes} bytes")
    mix = ", ".join(f"{count} {family}" for family, count in summary.families.items())
    blocks = f"{summary.block_count} block{'s' if summary.block_count != 1 else ''}"
    print(f"    instructions: {summary.instruction_count} in {blocks}: {mix}")
    if summary.calls:
        print(f"    calls: {', '.join(summary.calls)}")
    for operation, lines in summary.unsupported.items():
        print(f"    not executed yet: {operation} ({_lines_text(lines)})")


def _lines_text(lines: tuple[int, ...]) -> str:
    shown = ", ".join(str(line) for line in lines[:_SHOWN_LINES])
    more = f" and {len(lines) - _SHOWN_LINES} more" if len(lines) > _SHOWN_LINES else ""
    return f"line{'s' if len(lines) > 1 else ''} {shown}{more}"


def _variable_text(variable: Variable) -> str:
    shape = "".join(f"[{extent or ''}]" for extent in variable.shape)
    vector = f".v{variable.vector}" if variable.vector > 1 else ""
    space = "" if variable.space is Space.PARAM else f".{variable.space.value} "
    note = " (managed)" if variable.managed else ""
    pointer = ""
    if variable.pointer is not None:
        pointer = f", points to {variable.pointer.space.value} memory"
    return f"{space}{vector}.{variable.type.value} {variable.name}{shape}{pointer}{note}"


# ---------------------------------------------------------------- coverage


def _print_coverage(module: PtxModule) -> None:
    counts = form_counts(module)
    executed = sum(1 for form in counts if form.support is Support.EXECUTED)
    print(f"{module.name}: {len(counts)} forms, {executed} executed")
    for form in (form for form in ISA if form in counts):
        count, example = counts[form]
        state = f"{form.family.value:9} {form.support.value:9}"
        print(f"  {state} {count:6d}  {spelling(form)}  e.g. {example.text}")


def _print_table(*, as_json: bool) -> None:
    if as_json:
        print(json.dumps([_form(form) for form in ISA], indent=2))
        return
    for form in ISA:
        since = f"{form.since[0]}.{form.since[1]}"
        least = f"sm_{form.min_sm}" if form.min_sm else ""
        support = "refused" if form.min_sm > ARCHITECTURE else form.support.value
        print(f"{form.family.value:9} {support:9} {since:4} {least:6} {spelling(form)}")


def _form(form: Form) -> dict[str, Any]:
    return {
        "id": FORM_IDS[form],
        "family": form.family.value,
        "form": spelling(form),
        "since": f"{form.since[0]}.{form.since[1]}",
        "min_sm": form.min_sm,
        "support": form.support.value,
    }


# ---------------------------------------------------------------- JSON


def _document(module: PtxModule, found: list[PtxError]) -> dict[str, Any]:
    document: dict[str, Any] = {
        "file": module.name,
        "version": f"{module.version[0]}.{module.version[1]}",
        "target": list(module.target),
        "address_size": module.address_size,
        "problems": [_problem(error) for error in found],
    }
    if found:
        return document
    document["variables"] = [_variable(variable) for variable in module.variables]
    document["functions"] = [_function(module, function) for function in _defined(module)]
    document["coverage"] = [
        {**_form(form), "count": count, "example": example.text}
        for form, (count, example) in form_counts(module).items()
    ]
    return document


def _problem(error: PtxError) -> dict[str, Any]:
    return {
        "problem": error.problem,
        "line": error.line,
        "column": error.column,
        "source_line": error.source_line,
        "hint": error.hint,
    }


def _variable(variable: Variable) -> dict[str, Any]:
    return {
        "name": variable.name,
        "space": variable.space.value,
        "type": variable.type.value,
        "vector": variable.vector,
        "shape": list(variable.shape),
        "size_bytes": variable.size_bytes,
        "align_bytes": variable.alignment_bytes,
        "linkage": variable.linkage,
        "managed": variable.managed,
    }


def _function(module: PtxModule, function: Function) -> dict[str, Any]:
    summary = summarise(module, function)
    flow = build_flow(module, function)
    return {
        "name": summary.name,
        "kernel": summary.is_kernel,
        "line": summary.line,
        "params": [_variable(parameter) for parameter in summary.params],
        "returns": [_variable(parameter) for parameter in summary.returns],
        "directives": _lists(summary.directives),
        "registers": dict(summary.registers),
        "static_shared_bytes": summary.static_shared_bytes,
        "uses_dynamic_shared": summary.uses_dynamic_shared,
        "local_bytes": summary.local_bytes,
        "instruction_count": summary.instruction_count,
        "families": dict(summary.families),
        "opcodes": dict(summary.opcodes),
        "calls": list(summary.calls),
        "unsupported": _lists(tuple(summary.unsupported.items())),
        "blocks": [
            {
                "lines": [flow.lines[block.start], flow.lines[block.end - 1]],
                "successors": list(block.successors),
                "immediate_dominator": block.immediate_dominator,
                "immediate_postdominator": block.immediate_postdominator,
            }
            for block in flow.blocks
        ],
    }


def _lists(pairs: tuple[tuple[str, tuple[int, ...]], ...]) -> Mapping[str, list[int]]:
    return {name: list(numbers) for name, numbers in pairs}
