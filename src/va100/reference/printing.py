"""C format strings, as device ``printf`` takes them, over a packed argument buffer."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from va100.reference.storage import Storage

_CONVERSION: Final = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?"
    rb"(?P<length>hh|h|ll|l|j|z|t|L)?(?P<kind>[diouxXcsaAeEfFgGp%])"
)
_WIDE: Final = (b"l", b"ll", b"j", b"z", b"t")
_BITS: Final = {b"hh": 8, b"h": 16}


class Arguments:
    """Reads a packed argument buffer in order, each value aligned to its size."""

    def __init__(self, storage: Storage, address: int) -> None:
        self.storage = storage
        self._at = address
        self.taken = 0

    def word(self, size_bytes: int) -> int:
        """The next value as raw bits."""
        self._at = (self._at + size_bytes - 1) & -size_bytes
        value = int(self.storage.gather(np.array([self._at], np.uint64), size_bytes)[0])
        self._at += size_bytes
        self.taken += 1
        return value


def formatted(text: bytes, arguments: Arguments) -> tuple[bytes, int]:
    """Format; returns the text and how many arguments were converted."""
    output = bytearray()
    at = 0
    for match in _CONVERSION.finditer(text):
        output += text[at : match.start()]
        output += _converted(match, arguments)
        at = match.end()
    return bytes(output + text[at:]), arguments.taken


def _converted(match: re.Match[bytes], arguments: Arguments) -> bytes:
    kind = match["kind"].decode()
    if kind == "%":
        return b"%"
    flags = match["flags"].decode()
    width = _number(match["width"], arguments)
    precision = _number(match["precision"], arguments) if match["precision"] is not None else None
    if width is not None and width < 0:
        flags, width = flags + "-", -width
    spec = "%" + flags + ("" if width is None else str(width))
    if kind == "s":
        return _string(spec, precision, arguments)
    if kind in "aAeEfFgG":
        return _floating(spec, precision, kind, arguments)
    if kind == "c":
        return _padded(spec, chr(arguments.word(4) & 0xFF)).encode("latin-1")
    if kind == "p":
        return _padded(spec, f"{arguments.word(8):#x}").encode()
    return _integer(spec, precision, kind, match["length"] or b"", arguments)


def _number(field: bytes | None, arguments: Arguments) -> int | None:
    if field is None:
        return None
    if field == b"*":
        return _as_signed(arguments.word(4), 32)
    return int(field or b"0")


def _integer(
    spec: str, precision: int | None, kind: str, length: bytes, arguments: Arguments
) -> bytes:
    bits = 64 if length in _WIDE else 32
    value = arguments.word(bits // 8)
    bits = _BITS.get(length, bits)
    value &= (1 << bits) - 1
    if kind in "di":
        value, kind = _as_signed(value, bits), "d"
    elif kind == "u":
        kind = "d"
        spec = spec.replace("+", "").replace(" ", "")
    if precision is not None and precision >= 0:
        spec = spec.replace("0", "", 1) if spec[1:2] == "0" else spec
        spec += f".{precision}"
    if kind == "o" and "#" in spec:
        # C writes 0 where Python writes 0o.
        return _padded(spec.replace("#", ""), f"0{value:o}").encode()
    return ((spec + kind) % value).encode()


def _floating(spec: str, precision: int | None, kind: str, arguments: Arguments) -> bytes:
    value = float(np.uint64(arguments.word(8)).view(np.float64))
    if kind in "aA":
        return _padded(spec, _hexadecimal(value, precision, kind)).encode()
    if precision is not None and precision >= 0:
        spec += f".{precision}"
    if not np.isfinite(value):
        # C never pads infinities and NaNs with zeros.
        flags = spec[1:].lstrip("-+ #0")
        kept = "".join(c for c in spec[1 : len(spec) - len(flags)] if c != "0")
        spec = "%" + kept + flags
    return ((spec + kind) % value).encode()


def _hexadecimal(value: float, precision: int | None, kind: str) -> str:
    """C's ``%a``: no trailing zeros, no sign padding."""
    text = value.hex()
    if precision is None and "p" in text and "." in text:
        head, _, exponent = text.partition("p")
        text = head.rstrip("0").rstrip(".") + "p" + exponent
    return text.upper() if kind == "A" else text


def _string(spec: str, precision: int | None, arguments: Arguments) -> bytes:
    address = arguments.word(8)
    text = arguments.storage.text(address) if address else b"(null)"
    if precision is not None and precision >= 0:
        text = text[:precision]
    return _padded(spec, text.decode("latin-1")).encode("latin-1")


def _padded(spec: str, text: str) -> str:
    width = spec[1:].lstrip("-+ #0")
    if not width:
        return text
    return text.ljust(int(width)) if "-" in spec else text.rjust(int(width))


def _as_signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value
