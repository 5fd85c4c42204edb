"""C++ made from the runtime's table: declarations and exports, for both majors in one file.

A row's version is the only major that has it, or 0 when both do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from driver_tables.native_source import HEAD
from driver_tables.table import Row

UNRECORDED: Final = frozenset({"cudaGetLastError", "cudaPeekAtLastError"})
"""Calls that report on the last error rather than set it."""


def header(rows: Sequence[Row]) -> str:
    """Declare what ``native/runtime`` has to define."""
    lines = [
        _when(row, f"{row.returns} {row.name}({row.prototype});") for row in rows if row.has_body
    ]
    return (
        HEAD.format(sources="runtime.table")
        + '#pragma once\n\n#include "runtime_types.h"\n\nnamespace va::rt {\n\n'
        + "\n".join(lines)
        + "\n\n} // namespace va::rt\n"
    )


def exports(rows: Sequence[Row]) -> str:
    """Define every exported function: check, call and record, or refuse."""
    body = "\n".join(_when(row, _export(row)) for row in rows)
    return (
        HEAD.format(sources="runtime.table")
        + '#include "runtime_api.h"\n#include "runtime_entry.h"\n\nextern "C" {\n\n'
        + body
        + '\n} // extern "C"\n'
    )


def _when(row: Row, text: str) -> str:
    if not row.version:
        return text
    return f"#if VA100_CUDART_MAJOR == {row.version}\n{text}\n#endif"


def _export(row: Row) -> str:
    names = [row.name] + ([row.twin] if row.twin else [])
    if not row.has_body:
        return "\n".join(
            f'VA_RT_ENTRY cudaError_t {name}(void) {{ return va::rt::refuse("{name}"); }}'
            for name in names
        )
    text = _entry(row, row.name, scope="")
    if row.twin:
        text += "\n" + _entry(row, row.twin, scope="  const va::rt::PerThreadStream scope;\n")
    return text


def _entry(row: Row, name: str, *, scope: str) -> str:
    arguments = ", ".join(p.name for p in row.parameters)
    call = f"va::rt::{row.name}({arguments})"
    records = row.returns == "cudaError_t" and row.name not in UNRECORDED
    checked = [p.name for p in row.parameters if p.is_checked] if records else []
    check = ""
    if checked:
        condition = " || ".join(f"!{name}" for name in checked)
        check = f"  if ({condition}) return va::rt::record(cudaErrorInvalidValue);\n"
    body = (
        f"  return va::rt::recorded([&] {{ return {call}; }});" if records else f"  return {call};"
    )
    return f"VA_RT_ENTRY {row.returns} {name}({row.prototype}) {{\n{check}{scope}{body}\n}}"
