"""Comparing PTX trees and building small texts."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

HEADER = ".version 9.0\n.target sm_80\n.address_size 64\n"


def without_spans(tree: object) -> object:
    """Turn a tree into plain tuples that say everything but where it stood."""
    if is_dataclass(tree):
        skipped = ("span", "source", "name") if type(tree).__name__ == "PtxModule" else ("span",)
        return (
            type(tree).__name__,
            *(without_spans(getattr(tree, f.name)) for f in fields(tree) if f.name not in skipped),
        )
    if isinstance(tree, tuple):
        return (type(tree).__name__, *(without_spans(part) for part in tree))
    return tree


def kernel_text(body: str, params: str = "", header: str = HEADER) -> str:
    """Wrap statements into a kernel named ``k`` with some registers of every kind."""
    return f"""{header}
.visible .entry k({params})
{{
.reg .pred %p<9>;
.reg .b16 %h<9>;
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
.reg .f32 %f<9>;
.reg .f64 %fd<9>;
{body}
}}
"""
