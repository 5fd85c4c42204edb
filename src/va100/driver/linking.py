"""The native driver's question to Python: join these PTX texts.

The answer to ``link`` of ``native/include/va100/backend.h``; the linker itself is
:mod:`va100.ptx.link`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from va100.gpu.native import library
from va100.ptx.link import linked_text
from va100.ptx.parser import parse
from va100.ptx.program import PtxModule


class LinkInput(ctypes.Structure):
    """``va_link_input``."""

    _fields_ = (("name", ctypes.c_char_p), ("text", ctypes.c_void_p), ("bytes", ctypes.c_size_t))


LINK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(LinkInput), ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_char), ctypes.c_size_t,
)  # fmt: skip


def answer(sink: int, inputs: Any, count: int) -> None:
    """Link what the driver hands over, and hand the result back.

    Raises
    ------
    PtxSyntaxError
    LinkError
    """
    result = joined([(_name(inputs[i]), _text(inputs[i])) for i in range(count)]).encode()
    library().va_link_result(ctypes.c_void_p(sink), result, ctypes.c_size_t(len(result)))


def joined(texts: Sequence[tuple[str, str]]) -> str:
    """Join texts, each with its name; source files, where they are known, are better names."""
    modules = [parse(text, name) for name, text in texts]
    return linked_text([replace(module, name=_title(module)) for module in modules])


def _title(module: PtxModule) -> str:
    """What to call a module that came without a file's name."""
    if not module.name.startswith(("object ", "input ")) or not module.files:
        return module.name
    return f"PTX of {PurePath(module.files[min(module.files)]).name}"


def _name(given: LinkInput) -> str:
    return bytes(given.name or b"").decode("utf-8", errors="replace")


def _text(given: LinkInput) -> str:
    raw = ctypes.string_at(given.text, given.bytes).split(b"\0", 1)[0]
    return raw.decode("utf-8", errors="replace")
