"""PTX text below the grammar: comments, tokens, places, caret errors.

Nothing here knows a directive or an instruction; :mod:`va100.ptx.parser` does.
"""

from __future__ import annotations

import copy
import re
from typing import Final, NoReturn, TypeVar

from va100.errors import PtxError, PtxSyntaxError

E = TypeVar("E", bound=PtxError)

_COMMENT: Final = re.compile(r'"[^"\n]*"|//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?')
_VISIBLE: Final = re.compile(r"[^\n]")

_TOKEN: Final = re.compile(
    r"""\s*+(
      \.[A-Za-z_][\w$]*(?:::\w+)*            # directive or type
    | (?:[A-Za-z_$%][\w$]*)                  # name
    | (?:(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)? | \d+[eE][-+]?\d+)(?!\w)
    | \d\w*                                # integers, and numbers that are none
    | "[^"\n]*"
    | << | >> | <= | >= | == | != | && | \|\| | ::
    | [^\s]
    | $
    )""",
    re.VERBOSE,
)
_NAME: Final = re.compile(r"[A-Za-z][\w$]*|[_$%][\w$]+")


def error_at(kind: type[E], source: str, name: str, offset: int, problem: str, hint: str = "") -> E:
    """Build an error that points at a character of the text."""
    offset = min(max(offset, 0), len(source))
    start = source.rfind("\n", 0, offset) + 1
    end = source.find("\n", offset)
    line_text = source[start : end if end >= 0 else len(source)].rstrip("\r")
    return kind(
        problem,
        file=name,
        line=source.count("\n", 0, offset) + 1,
        column=offset - start + 1,
        source_line=line_text,
        hint=hint,
    )


def without_comments(source: str, name: str) -> str:
    """Replace comments by blanks of equal length, so that offsets stay valid."""
    if "//" not in source and "/*" not in source:
        return source

    def blank(match: re.Match[str]) -> str:
        text = match.group()
        if text[0] == '"':
            return text
        if text[1] == "/":
            return " " * len(text)
        if len(text) < len("/**/") or not text.endswith("*/"):
            raise error_at(
                PtxSyntaxError, source, name, match.start(), "comment without an end; expected */"
            )
        return _VISIBLE.sub(" ", text)

    return _COMMENT.sub(blank, source)


class Cursor:
    """A place in comment-free text, read token by token."""

    __slots__ = ("_token", "_token_end", "code", "name", "position", "source")

    def __init__(self, source: str, name: str) -> None:
        self.source = source
        self.name = name
        self.code = without_comments(source, name)
        self.position = 0
        self._token: str | None = None
        self._token_end = 0

    def at(self, position: int) -> Cursor:
        """Another place in the same text."""
        other = copy.copy(self)
        other.jump(position)
        return other

    def jump(self, position: int) -> None:
        """Go on reading from an offset."""
        self.position = position
        self._token = None

    def peek(self) -> str:
        """The next token; empty at the end of the text."""
        if self._token is None:
            match = _TOKEN.match(self.code, self.position)
            if match is None:  # cannot happen: the pattern takes any character and the end
                self.fail("unreadable text")
            self._token = match.group(1)
            self.position = match.start(1)
            self._token_end = match.end()
        return self._token

    def take(self) -> str:
        """Read the next token and step over it."""
        token = self.peek()
        self.position = self._token_end
        self._token = None
        return token

    def accept(self, token: str) -> bool:
        """Step over the next token if it is the one given."""
        if self.peek() == token:
            self.take()
            return True
        return False

    def expect(self, token: str, where: str = "") -> None:
        """Step over the token given, or fail."""
        if not self.accept(token):
            self.fail_expected(f"{token!r}{where}")

    def fail_expected(self, what: str) -> NoReturn:
        """Raise: something else was expected here."""
        found = self.peek()
        end = f"found {found!r}" if found else "found the end of the text"
        self.fail(f"expected {what}, {end}")

    def take_name(self, what: str) -> str:
        """Read an identifier."""
        if not is_name(self.peek()):
            self.fail_expected(what)
        return self.take()

    def take_string(self, what: str) -> str:
        """Read a quoted string, without its quotes."""
        token = self.peek()
        if len(token) < len('""') or token[0] != '"':
            self.fail_expected(what)
        return self.take()[1:-1]

    def error(self, offset: int, problem: str, hint: str = "") -> PtxSyntaxError:
        """Build a syntax error at an offset."""
        return error_at(PtxSyntaxError, self.source, self.name, offset, problem, hint)

    def fail(self, problem: str, hint: str = "") -> NoReturn:
        """Raise a syntax error at the next token."""
        raise self.error(self.position, problem, hint)


def is_name(token: str) -> bool:
    """Tell whether a token is an identifier as PTX spells them."""
    return _NAME.fullmatch(token) is not None
