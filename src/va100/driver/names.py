"""Kernel names as people wrote them: C++ mangled names made short and readable.

Function name and template arguments are spelled, parameters are not.  The grammar is the Itanium
C++ ABI's, the part of it that kernels' names use; a name that goes beyond it keeps its plain part.
"""

from __future__ import annotations

from typing import Final

_BUILTIN: Final = {
    "v": "void",
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "n": "__int128",
    "o": "unsigned __int128",
    "w": "wchar_t",
    "f": "float",
    "d": "double",
    "e": "long double",
    "z": "...",
    "Dh": "half",
    "Di": "char32_t",
    "Ds": "char16_t",
    "Dn": "nullptr_t",
}
_WRAPPED: Final = {"P": "*", "R": "&", "O": "&&", "K": " const", "V": " volatile", "r": ""}
_STANDARD: Final = {
    "St": "std",
    "Sa": "std::allocator",
    "Sb": "std::basic_string",
    "Ss": "std::string",
}
_LITERAL_SUFFIX: Final = {"j": "u", "m": "ul", "y": "ull", "l": "l", "x": "ll"}
_ANONYMOUS: Final = ("_GLOBAL__N_", "_INTERNAL_")
_DEEPEST: Final = 100


def short_name(mangled: str) -> str:
    """Spell a kernel's name without its parameters.

    ``_Z6reduceILi256EfEvPKT0_PS0_`` becomes ``reduce<256, float>``; what is not mangled, or is
    mangled wrongly, stays as it is.
    """
    if not mangled.startswith("_Z"):
        return mangled
    reader = _Reader(mangled)
    try:
        return reader.encoding()
    except _UnreadableError:
        return reader.plain or mangled


class _UnreadableError(Exception):
    """A construct outside the part of the grammar read here."""


class _Reader:
    """A cursor over one mangled name, with the substitutions met so far."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 2
        self._depth = 0
        self._seen: list[str] = []
        self.plain = ""
        """What was read of the function's own name before anything went wrong."""

    def encoding(self) -> str:
        if self._peek("N"):
            return self._nested(is_function=True)
        if self._peek("Z"):
            raise _UnreadableError
        self._take("L")
        prefix = ""
        if self._take("St"):
            prefix = "std::"
        name = prefix + self._source_name()
        self.plain = name
        if self._peek("I"):
            self._seen.append(name)
            name += self._template_arguments()
        return name

    def _nested(self, *, is_function: bool = False) -> str:
        self._expect("N")
        while self._take_any("KVr"):
            pass
        parts: list[str] = []
        while not self._take("E"):
            if self._peek("I"):
                if not parts:
                    raise _UnreadableError
                parts[-1] += self._template_arguments()
            elif self._peek("S"):
                parts.append(self._substitution())
                continue  # known already
            else:
                self._take("L")
                parts.append(self._source_name())
            if is_function:
                self.plain = "::".join(parts)
            self._seen.append("::".join(parts))
        if not parts:
            raise _UnreadableError
        return "::".join(parts)

    def _source_name(self) -> str:
        start = self._at
        while self._at < len(self._text) and self._text[self._at].isdigit():
            self._at += 1
        if start == self._at:
            raise _UnreadableError
        length = int(self._text[start : self._at])
        name = self._text[self._at : self._at + length]
        if not length or len(name) != length:
            raise _UnreadableError
        self._at += length
        return "(anonymous)" if name.startswith(_ANONYMOUS) else name

    def _template_arguments(self) -> str:
        self._expect("I")
        arguments = self._arguments_until_end()
        return f"<{', '.join(arguments)}>"

    def _arguments_until_end(self) -> list[str]:
        arguments: list[str] = []
        while not self._take("E"):
            if self._take("J"):
                arguments += self._arguments_until_end()
            elif self._take("L"):
                arguments.append(self._literal())
            else:
                arguments.append(self._type())
        return arguments

    def _literal(self) -> str:
        if self._take("_Z"):
            raise _UnreadableError
        kind = self._text[self._at : self._at + 1]
        is_builtin = kind in _BUILTIN
        name = self._type()
        value = ""
        while not self._take("E"):
            value += self._next()
        value = value.replace("n", "-", 1)
        if kind == "b":
            return {"0": "false", "1": "true"}.get(value, value)
        return value + _LITERAL_SUFFIX.get(kind, "") if is_builtin else f"({name}){value}"

    def _type(self) -> str:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _UnreadableError
        spelled = self._type_inside()
        self._depth -= 1
        return spelled

    def _type_inside(self) -> str:
        for length in (2, 1):
            key = self._text[self._at : self._at + length]
            if key in _BUILTIN:
                self._at += length
                return _BUILTIN[key]
        if self._text[self._at : self._at + 1] in _WRAPPED:
            spelled = _WRAPPED[self._next()]
            return self._remember(self._type() + spelled)
        if self._peek("N"):
            return self._nested()
        if self._peek("S"):
            return self._substituted_type()
        if self._text[self._at : self._at + 1].isdigit():
            return self._class_type()
        raise _UnreadableError

    def _class_type(self) -> str:
        name = self._remember(self._source_name())
        if self._peek("I"):
            return self._remember(name + self._template_arguments())
        return name

    def _substituted_type(self) -> str:
        in_standard = self._text.startswith("St", self._at)
        name = self._substitution()
        if in_standard:
            name = self._remember(f"{name}::{self._source_name()}")
        if self._peek("I"):
            return self._remember(name + self._template_arguments())
        return name

    def _substitution(self) -> str:
        key = self._text[self._at : self._at + 2]
        if key in _STANDARD:
            self._at += 2
            return _STANDARD[key]
        self._expect("S")
        digits = ""
        while not self._take("_"):
            digits += self._next()
        try:
            return self._seen[int(digits, 36) + 1 if digits else 0]
        except (IndexError, ValueError) as error:
            raise _UnreadableError from error

    def _remember(self, spelled: str) -> str:
        self._seen.append(spelled)
        return spelled

    def _peek(self, expected: str) -> bool:
        return self._text.startswith(expected, self._at)

    def _take(self, expected: str) -> bool:
        if not self._peek(expected):
            return False
        self._at += len(expected)
        return True

    def _take_any(self, letters: str) -> bool:
        return any(self._take(letter) for letter in letters)

    def _expect(self, expected: str) -> None:
        if not self._take(expected):
            raise _UnreadableError

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise _UnreadableError
        self._at += 1
        return self._text[self._at - 1]
