"""The way of a kernel's bytes: from threads through L1 and L2 to DRAM, and shared memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from va100.profile.html.markup import Markup, element, joined, picture
from va100.profile.launch import Launch
from va100.units import bytes_text, rate_text

_WIDTH, _HEIGHT = 560.0, 190.0
_BOX_WIDTH: Final = 76.0
_BOX_HEIGHT: Final = 46.0
_UPPER, _LOWER = 30.0, 128.0
_PLACES: Final = (("threads", 2.0), ("L1", 162.0), ("L2", 322.0), ("DRAM", 482.0))
_BUSY: Final[Mapping[str, str]] = {
    "L1": "L1 bandwidth",
    "L2": "L2 bandwidth",
    "DRAM": "DRAM bandwidth",
    "shared": "shared memory",
}
_ASKED: Final[Mapping[str, str]] = {"L1": "l1_load_sectors", "L2": "l2_sectors"}


def memory_chart(launch: Launch, found: Mapping[str, float]) -> Markup:
    """Draw the levels with the bytes between them and how busy each is."""
    loads, stores = found.get("global_load_bytes", 0.0), found.get("global_store_bytes", 0.0)
    flows = (
        ("threads", "L1", loads, stores),
        ("L1", "L2", found.get("l2_read_bytes", 0.0), found.get("l2_write_bytes", 0.0)),
        ("L2", "DRAM", found.get("dram_read_bytes", 0.0), found.get("dram_write_bytes", 0.0)),
    )
    places = dict(_PLACES)
    boxes = [_box(name, at, _UPPER, _share(name, launch)) for name, at in _PLACES]
    boxes += [_hits(places[name], name, found) for name in ("L1", "L2")]
    arrows = [
        _arrows(places[near] + _BOX_WIDTH, places[far], read, written)
        for near, far, read, written in flows
    ]
    words = "; ".join(
        f"{near} and {far}: {bytes_text(read)} read, {bytes_text(written)} written"
        for near, far, read, written in flows
    )
    return picture(
        _WIDTH, _HEIGHT, f"Memory traffic. {words}", *arrows, *boxes, _shared(launch, found),
        _rate(launch, found),
    )  # fmt: skip


def _share(name: str, launch: Launch) -> float | None:
    part = _BUSY.get(name)
    return None if part is None else launch.parts.get(part, 0.0) / launch.time_s


def _box(name: str, x: float, y: float, share: float | None) -> Markup:
    middle = x + _BOX_WIDTH / 2
    inside: list[Markup] = []
    if share is not None:
        filled = _BOX_WIDTH * min(share, 1.0)
        inside.append(
            element("rect", x=x, y=y, width=filled, height=_BOX_HEIGHT, rx=4, class_="fill")
        )
        text = f"{share:.0%} busy"
        inside.append(element("text", text, x=middle, y=y + 37, class_="tick middle"))
    name_at = y + (21 if share is not None else 28)
    return joined(
        element("rect", x=x, y=y, width=_BOX_WIDTH, height=_BOX_HEIGHT, rx=4, class_="box"),
        *inside,
        element("text", name, x=middle, y=name_at, class_="label strong middle"),
    )


def _hits(x: float, name: str, found: Mapping[str, float]) -> Markup:
    """How much of what a cache is asked for it holds, where that is known."""
    hit, of = found.get(f"{name.lower()}_hit_sectors"), found.get(_ASKED[name], 0.0)
    if hit is None or not of:
        return Markup("")
    at = _UPPER + _BOX_HEIGHT + 15
    text = f"{hit / of:.0%} hit"
    return element("text", text, x=x + _BOX_WIDTH / 2, y=at, class_="tick middle")


def _arrows(left: float, right: float, read: float, written: float) -> Markup:
    """What is read comes from the right, what is written goes there."""
    middle = (left + right) / 2
    upper, lower = _UPPER + 16, _UPPER + 32
    return joined(
        _arrow(right - 3, left + 3, upper, busy=bool(read)),
        element("text", bytes_text(read), x=middle, y=upper - 6, class_="tick middle"),
        _arrow(left + 3, right - 3, lower, busy=bool(written)),
        element("text", bytes_text(written), x=middle, y=lower + 16, class_="tick middle"),
    )


def _arrow(start: float, end: float, y: float, *, busy: bool) -> Markup:
    point = 6 if start > end else -6
    path = f"M{start:.1f} {y:.1f} H{end:.1f} m{point} -4 l{-point} 4 l{point} 4"
    return element("path", d=path, class_="arrow" if busy else "arrow idle")


def _shared(launch: Launch, found: Mapping[str, float]) -> Markup:
    """Shared memory, which is the SM's own and has no way further out."""
    at = dict(_PLACES)
    requests, turns = found.get("shared_requests", 0.0), found.get("shared_wavefronts")
    text = "not used" if not requests else f"{requests:,.0f} requests"
    if requests and turns is not None:
        each = f"{turns / requests:.3g}"
        text += f", {each} turn{'' if each == '1' else 's'} each"
    start = at["threads"] + _BOX_WIDTH / 2
    path = (
        f"M{start:.1f} {_UPPER + _BOX_HEIGHT:.1f} V{_LOWER + _BOX_HEIGHT / 2:.1f} H{at['L1']:.1f}"
    )
    share = _share("shared", launch) if requests else None
    return joined(
        element("path", d=path, class_="arrow" if requests else "arrow idle"),
        _box("shared", at["L1"], _LOWER, share),
        element("text", text, x=at["L1"] + _BOX_WIDTH + 10, y=_LOWER + 27, class_="tick"),
    )


def _rate(launch: Launch, found: Mapping[str, float]) -> Markup:
    rate = found.get("dram_bytes", 0.0) / launch.time_s
    text = f"{rate_text(rate, 'B/s')} from and to DRAM"
    return element("text", text, x=_WIDTH - 4, y=14, class_="tick end")
