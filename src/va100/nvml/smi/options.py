"""The tool's own way of options: ``-i 0``, ``--id=0``, ``--id 0``, in any order.

``argparse`` takes longer to load than the whole tool may take, and spells its errors otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from va100.nvml.smi.look import Stop

MISUSED: Final = 2
FLAG, VALUE, OPTIONAL = range(3)


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its spellings, the first of which it is known by, and whether it has a value."""

    spellings: tuple[str, ...]
    takes: int
    text: str
    metavar: str = ""


Given = dict[str, str]
"""Options that were given, each with its value; flags have an empty one."""


def parse(words: Sequence[str], table: Sequence[Option], program: str) -> Given:
    """Read a command line.

    Raises
    ------
    Stop
        It is wrong, or help was asked for.
    """
    known = {spelling: option for option in table for spelling in option.spellings}
    given: Given = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        option = known.get(name)
        if option is None:
            raise misuse(f'Option "{word}" is not recognized.', program)
        if option.takes == FLAG and equals:
            raise misuse(f'Option "{name}" takes no value, and has "{value}".', program)
        takes_next = option.takes == VALUE or (
            option.takes == OPTIONAL and bool(rest) and not rest[0].startswith("-")
        )
        if not equals and takes_next:
            if not rest:
                raise misuse(f'Option "{name}" is missing its value.', program)
            value = rest.pop(0)
        if option.spellings[0] in given:
            raise misuse(f'Option "{name}" was given twice.', program)
        given[option.spellings[0]] = value
    return given


def misuse(text: str, program: str) -> Stop:
    """Make the end that a wrong command line comes to."""
    return Stop(f"{text} Please run '{program} -h' for help.\n", MISUSED)


def number(given: Mapping[str, str], name: str, program: str, least: int = 0) -> int:
    """Take a whole number.

    Raises
    ------
    Stop
        It is none, or below the least.
    """
    text = given[name]
    if not text.isdecimal() or int(text) < least:
        raise misuse(f'"{text}" of option "{name}" is no whole number from {least}.', program)
    return int(text)


def help_text(usage: str, table: Sequence[Option], after: str = "") -> str:
    """Lay out what ``-h`` prints."""
    lines = [usage, ""]
    for option in table:
        names = ", ".join(option.spellings)
        if option.metavar:
            names += f" {option.metavar}"
        pad = f"    {names:<34}"
        lines.append(f"{pad} {option.text}" if len(pad) <= 38 else f"{pad}\n{'':39}{option.text}")
    return "\n".join([*lines, *([after] if after else []), ""])
