"""Seeded damage to PTX texts: what a slip of the hand or a broken tool would do."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

_PIECES = (
    *"{}()[];,:@!|<>+-.%\"$_\0é",
    "/*", "//", "0f3F80000", "0x", "99999999999999999999999", "-1", ".f99", ".reg", ".loc",
    ".entry", "call", "bra", "%r1", "mov.b32", "1.5e400", "((((((((", "{{{{", "0b2", "08",
)  # fmt: skip


def mutants(texts: Sequence[str], count: int, seed: int) -> Iterator[str]:
    """Yield ``count`` damaged texts, the same ones for the same seed."""
    rng = random.Random(seed)
    for _ in range(count):
        text = rng.choice(texts)
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            text = _damage(text, rng)
        yield text


def _damage(text: str, rng: random.Random) -> str:
    if not text:
        return rng.choice(_PIECES)
    at = rng.randrange(len(text))
    until = min(len(text), at + rng.choice((1, 1, 2, 5, 20, 200)))
    kind = rng.randrange(7)
    if kind == 0:
        return text[:at] + text[until:]
    if kind == 1:
        return text[:at] + rng.choice(_PIECES) + text[at:]
    if kind == 2:
        return text[:at] + rng.choice(_PIECES) + text[until:]
    if kind == 3:
        return text[:at] + text[at:until] * 2 + text[until:]
    if kind == 4:
        return text[:at]
    if kind == 5:
        other = rng.randrange(len(text))
        return text[:at] + text[other : other + until - at] + text[until:]
    return text[:at] + chr(rng.randrange(32, 127)) + text[at + 1 :]
