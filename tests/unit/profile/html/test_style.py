"""Colours that can be read, in light and in dark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import va100.profile.html.page as module

CSS = Path(module.__file__).with_name("style.css").read_text(encoding="utf-8")
ROOTS = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
PALETTES = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", root)) for root in ROOTS]
READ = [
    ("ink", "card"), ("soft", "card"), ("ink", "page"), ("soft", "page"), ("main", "card"),
    ("card", "warm"), ("card", "main"), ("ink", "main-soft"), ("ink", "warm-soft"),
]  # fmt: skip
"""Text on what it stands on."""
ENOUGH = 4.5


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_the_measure_is_right():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_light_dark_and_print_name_the_same_colours():
    assert len(PALETTES) == 3
    assert len({frozenset(palette) for palette in PALETTES}) == 1


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark", "print"])
@pytest.mark.parametrize(("text", "ground"), READ)
def test_text_stands_out(text, ground, palette):
    assert contrast(palette[text], palette[ground]) >= ENOUGH


def test_every_colour_that_is_used_is_named():
    used = set(re.findall(r"var\(--([\w-]+)\)", CSS)) - {"share"}
    assert used <= set(PALETTES[0])
