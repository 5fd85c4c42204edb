"""The small YAML that describes what no ``config.json`` does: maps, lists and plain values.

A subset on purpose: block maps and lists by indentation, ``[a, b]`` and ``{a: b}`` of plain
values, quoted and bare words, numbers with ``_`` and exponents, ``true``, ``false``, ``null`` and
comments.  Anchors, tags, block scalars and several documents are refused by line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from va100.errors import PlanError

_INTEGER: Final = re.compile(r"[-+]?\d[\d_]*")
_REAL: Final = re.compile(r"[-+]?(\d[\d_]*\.?\d*|\.\d+)([eE][-+]?\d+)?")
_WORDS: Final = {"true": True, "false": False, "null": None, "~": None, "": None}
_REFUSED: Final = ("&", "*", "!", "|", ">", "%", "@", "`")


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    indent: int
    text: str


def parse_yaml(text: str, where: str) -> Any:
    """Value that a document holds.

    Raises
    ------
    PlanError
        The text is outside the subset, with the line.
    """
    lines = _lines(text, where)
    if not lines:
        return {}
    parser = _Parser(lines, where)
    value = parser.block(lines[0].indent)
    parser.expect_end()
    return value


def _lines(text: str, where: str) -> list[_Line]:
    found: list[_Line] = []
    for number, raw in enumerate(text.splitlines(), 1):
        stripped = _without_comment(raw).rstrip()
        if not stripped.strip() or (stripped.strip() == "---" and not found):
            continue
        body = stripped.lstrip(" ")
        if "\t" in stripped[: len(stripped) - len(body) + 1]:
            raise _refusal(where, number, "a tab in the indentation", "indent with spaces")
        found.append(_Line(number, len(stripped) - len(body), body))
    return found


def _without_comment(line: str) -> str:
    quote = ""
    for position, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == "#" and (position == 0 or line[position - 1] in " \t"):
            return line[:position]
    return line


def _refusal(where: str, number: int, problem: str, hint: str) -> PlanError:
    return PlanError(f"{where}:{number}: {problem}", hint=hint)


class _Parser:
    """Reads blocks of lines of equal indentation."""

    def __init__(self, lines: list[_Line], where: str) -> None:
        self._lines = lines
        self._where = where
        self._next = 0

    def block(self, indent: int) -> Any:
        """Map or list that starts at the next line."""
        first = self._lines[self._next]
        if first.text.startswith("- ") or first.text == "-":
            return self._list(indent)
        if _split_key(first.text) is None:
            self._next += 1
            return self._value(first.text, first.number)
        return self._map(indent)

    def expect_end(self) -> None:
        """Refuse what is left over."""
        if self._next < len(self._lines):
            number = self._lines[self._next].number
            raise _refusal(self._where, number, "unexpected indentation", "align it with its list")

    def _map(self, indent: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self._next < len(self._lines) and self._lines[self._next].indent == indent:
            line = self._lines[self._next]
            split = _split_key(line.text)
            if split is None:
                raise _refusal(self._where, line.number, f"no `key: value`: {line.text}", "add one")
            key, rest = split
            if key in found:
                raise _refusal(self._where, line.number, f"{key} is given twice", "drop one")
            self._next += 1
            found[key] = self._value(rest, line.number) if rest else self._nested(indent)
        return found

    def _list(self, indent: int) -> list[Any]:
        found = []
        while self._next < len(self._lines) and self._lines[self._next].indent == indent:
            line = self._lines[self._next]
            if not line.text.startswith("-"):
                break
            rest = line.text[1:].lstrip(" ")
            if not rest:
                self._next += 1
                found.append(self._nested(indent))
            elif _split_key(rest) is not None or rest.startswith("- "):
                inner = indent + len(line.text) - len(rest)
                self._lines[self._next] = _Line(line.number, inner, rest)
                found.append(self.block(inner))
            else:
                self._next += 1
                found.append(self._value(rest, line.number))
        return found

    def _nested(self, indent: int) -> Any:
        if self._next >= len(self._lines):
            return None
        line = self._lines[self._next]
        deeper = line.indent > indent
        if deeper or (line.indent == indent and line.text.startswith("- ")):
            return self.block(line.indent)
        return None

    def _value(self, text: str, number: int) -> Any:
        if text[0] in _REFUSED:
            raise _refusal(
                self._where,
                number,
                f"{text[0]} is not read here",
                "write the value out, or quote it",
            )
        if text[0] in "[{":
            return self._flow(text, number)
        return _scalar(text)

    def _flow(self, text: str, number: int) -> Any:
        closing = "]" if text[0] == "[" else "}"
        inner = text[1:-1]
        if not text.endswith(closing) or any(letter in inner for letter in "[]{}"):
            raise _refusal(self._where, number, "nested or unclosed brackets", "use indentation")
        parts = [part.strip() for part in inner.split(",") if part.strip()]
        if closing == "]":
            return [_scalar(part) for part in parts]
        pairs = [_split_key(part) for part in parts]
        if None in pairs:
            raise _refusal(self._where, number, f"no `key: value` in {text}", "write a: b")
        return {pair[0]: _scalar(pair[1]) for pair in pairs if pair is not None}


def _split_key(text: str) -> tuple[str, str] | None:
    match = re.match(r"""("[^"]*"|'[^']*'|[^\s"'\[{][^:]*?)\s*:(?:\s+(.*)|$)""", text)
    if match is None:
        return None
    return match[1].strip("\"'"), (match[2] or "").strip()


def _scalar(text: str) -> Any:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    return text
