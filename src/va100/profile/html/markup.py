"""Elements of HTML and SVG as text; what is said inside them is escaped here and nowhere else."""

from __future__ import annotations

from html import escape
from typing import Final

_VOID: Final = frozenset({"meta", "line", "rect", "circle", "path", "polyline", "br"})
"""Elements without contents."""


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str | float) -> Markup:
    """Make an element; children that are plain text are escaped.

    Attributes are named as in Python: ``class_`` is ``class``, ``stroke_width`` is
    ``stroke-width``; ``view_box`` alone keeps a capital, as SVG asks.
    """
    spelled = "".join(
        f' {_attribute(name)}="{escape(_number(value))}"' for name, value in attributes.items()
    )
    if tag in _VOID:
        return Markup(f"<{tag}{spelled}/>" if tag not in ("meta", "br") else f"<{tag}{spelled}>")
    return Markup(f"<{tag}{spelled}>{joined(*children)}</{tag}>")


def joined(*children: str) -> Markup:
    """Put pieces one after another; plain text among them is escaped."""
    return Markup(
        "".join(child if isinstance(child, Markup) else escape(child) for child in children)
    )


def picture(width: float, height: float, title: str, *children: str, class_: str = "") -> Markup:
    """Make an SVG that scales with the page and says in words what it shows."""
    return element(
        "svg",
        element("title", title),
        *children,
        view_box=f"0 0 {_number(width)} {_number(height)}",
        role="img",
        class_=class_ or "chart",
    )


def _attribute(name: str) -> str:
    if name == "view_box":
        return "viewBox"
    return name.rstrip("_").replace("_", "-")


def _number(value: str | float) -> str:
    """Spell an attribute; coordinates to a hundredth."""
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
