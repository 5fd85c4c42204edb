"""A node as a user writes it: a YAML or JSON file of cards and how they are joined."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from va100.errors import SetupError
from va100.node.documents import malformed, read_document
from va100.node.kinds import Board, Seat
from va100.spec.model import ChipSpec
from va100.spec.names import find_models

MOST_GPUS: Final = 16
_BUS: Final = re.compile(r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(?:\.0)?")
_EXAMPLE: Final = "{board: switched, gpus: [{model: A100-SXM4-80GB, bus: '07:00', numa: 3}]}"


def read_wish(path: Path) -> tuple[Board, list[tuple[ChipSpec, Seat]]]:
    """Read a node's file.

    Raises
    ------
    SetupError
        It cannot be read, or what it says makes no node; the message says where.
    """
    wish = read_document(path, _EXAMPLE)
    if not isinstance(wish, Mapping):
        raise _wrong(path, "it holds no mapping")
    unknown = sorted(map(str, set(wish) - {"board", "gpus"}))
    if unknown:
        raise _wrong(path, f"{unknown[0]} is unknown; a node has `board` and `gpus`")
    gpus = wish.get("gpus")
    if not isinstance(gpus, list) or not 1 <= len(gpus) <= MOST_GPUS:
        raise _wrong(path, f"`gpus` is to be a list of 1 to {MOST_GPUS}")
    cards = [_card(path, index, entry) for index, entry in enumerate(gpus)]
    places = [(seat.domain, seat.bus, seat.slot) for _, seat in cards]
    for index, place in enumerate(places):
        if place in places[:index]:
            raise _wrong(path, f"gpus[{index}] sits where gpus[{places.index(place)}] does")
    return _board(path, wish.get("board", "unlinked")), cards


def _card(path: Path, index: int, entry: Any) -> tuple[ChipSpec, Seat]:
    where = f"gpus[{index}]"
    if isinstance(entry, str):
        entry = {"model": entry}
    if not isinstance(entry, Mapping) or "model" not in entry:
        raise _wrong(path, f"{where} is to be a model, or a mapping with `model`")
    unknown = sorted(map(str, set(entry) - {"model", "bus", "numa"}))
    if unknown:
        raise _wrong(path, f"{where}.{unknown[0]} is unknown; a GPU has model, bus, numa")
    chips = [c for c in find_models(str(entry["model"])) if isinstance(c, ChipSpec)]
    if len(chips) != 1:
        raise _wrong(path, f"{where}.model: {entry['model']} names {len(chips)} A100 models, not 1")
    numa = entry.get("numa", -1)
    if not isinstance(numa, int) or isinstance(numa, bool) or not -1 <= numa < 1024:
        raise _wrong(path, f"{where}.numa is to be a number from -1 to 1023")
    bus = str(entry.get("bus", f"{0x07 + 8 * index:02x}:00"))
    match = _BUS.fullmatch(bus)
    if match is None:
        raise _wrong(path, f"{where}.bus: {bus} is no PCI address such as 0000:07:00.0")
    domain, number, slot = (int(part or "0", 16) for part in match.groups())
    return chips[0], Seat(domain, number, slot, numa)


def _board(path: Path, word: Any) -> Board:
    names = {board.name.lower(): board for board in Board}
    if word not in names:
        raise _wrong(path, f"board: {word} is none of {', '.join(names)}")
    return names[word]


def _wrong(path: Path, problem: str) -> SetupError:
    return malformed(path, problem, _EXAMPLE)
