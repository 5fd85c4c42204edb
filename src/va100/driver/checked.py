"""From an image's text to a module that may be run, checked in this process or an earlier one.

What an earlier process found out about the very same text is kept beside the machine code: that it
breaks no rule, where its functions end, and which kernels are refused.  Function bodies are then
read when they are first needed, which for kernels whose machine code is kept too is never.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from va100.ptx.link import link, missing_functions, needs_linking, require_resolved
from va100.ptx.parser import function_ends, parse
from va100.ptx.program import Function, PtxModule
from va100.ptx.verify import unsupported, verify

Keep = Callable[[str, Callable[[], bytes]], bytes]
"""Gives what was kept of a text, or has it made and keeps it."""


@dataclass(frozen=True, slots=True)
class CheckedModule:
    """A whole module that breaks no rule."""

    ptx: PtxModule
    refusals: Mapping[str, str]
    """Why kernels that are not executed are refused, by kernel."""


def checked_module(text: str, name: str, keep: Keep | None = None) -> CheckedModule:
    """Parse, link and verify a text, or trust what is known of it.

    Parameters
    ----------
    text : str
    name : str
        The module's, for messages.
    keep : callable, optional
        Without it nothing is known and nothing is kept.

    Raises
    ------
    PtxError, LinkError
        The text is not run; nothing is kept of it.
    """
    made: list[CheckedModule] = []

    def make() -> bytes:
        made.append(_check(text, name))
        return _packed(made[0], text)

    if keep is None:
        return _check(text, name)
    kept = keep(f"{_LAYOUT}\n{text}", make)
    return made[0] if made else _unpacked(kept, text, name)


def _check(text: str, name: str) -> CheckedModule:
    ptx = _whole(parse(text, name))
    verify(ptx)
    found = {kernel.name: refusal_of(ptx, kernel) for kernel in ptx.kernels}
    return CheckedModule(ptx, {kernel: reason for kernel, reason in found.items() if reason})


def _whole(ptx: PtxModule) -> PtxModule:
    """A module that needs nothing more: aliases followed, nothing missing."""
    if needs_linking(ptx):
        return link([ptx], ptx.name)
    require_resolved(ptx)
    return ptx


def refusal_of(ptx: PtxModule, kernel: Function) -> str:
    """What a kernel reaches that is not executed, told before anybody launches it; else empty."""
    found = unsupported(ptx, kernel)
    if found:
        return str(found[0])
    missing = missing_functions(ptx, kernel)
    return f"va100 has no {missing[0]}, which it calls" if missing else ""


# ---------------------------------------------------------------- what is kept

_LAYOUT: Final = 1
"""Number of the layout below: what was kept in another is not found."""


def _packed(module: CheckedModule, text: str) -> bytes:
    source = module.ptx.source
    facts = {
        "ends": list(function_ends(module.ptx).items()),
        "refusals": dict(module.refusals),
        "name": module.ptx.name,
        "linked": None if source == text.rstrip("\0") else source,
    }
    return json.dumps(facts).encode()


def _unpacked(kept: bytes, text: str, name: str) -> CheckedModule:
    facts = json.loads(kept)
    source = text if facts["linked"] is None else facts["linked"]
    refusals = {
        kernel: reason.replace(facts["name"], name) for kernel, reason in facts["refusals"].items()
    }
    return CheckedModule(parse(source, name, dict(facts["ends"])), refusals)
