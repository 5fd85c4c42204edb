"""Which CTAs stand for a grid of which few run: some inside, some on its borders.

Last rows and columns are often partial, first ones often have halos; CTAs taken here and there
would give them too much weight, or none.  What the CTAs do is counted elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from va100.work import Dim3

NEGLIGIBLE: Final = 0.004
"""Part of a grid below which a kind's CTAs are not run: should they do several times as much, it is
still less than the model is off.  The largest kind stands for them."""
_LAST_ONLY: Final = 2
_FIRST_AND_LAST: Final = 3


@dataclass(frozen=True, slots=True)
class Stratum:
    """CTAs next to each other that stand for others like them."""

    first: int
    """Index in the grid, x fastest."""
    cta_count: int
    stands_for: int
    """CTAs of the grid, these among them."""


def strata(grid: Dim3, cta_count: int) -> list[Stratum]:
    """Divide a grid by which of its borders a CTA lies on, as far as so few CTAs can tell.

    First and last of each axis are told apart from those between where there is a CTA for each
    kind; only the last where there are fewer; none where there are fewer still.  What is left of
    ``cta_count`` goes to the kind that is most of the grid.
    """
    kinds = next(
        kinds
        for ways in (_FIRST_AND_LAST, _LAST_ONLY, 1)
        if len(kinds := _that_count(_kinds(grid, ways), grid)) <= max(cta_count, 1)
    )
    passed_over = grid.size - sum(kind.cta_count for kind in kinds)
    most = max(range(len(kinds)), key=lambda n: kinds[n].cta_count)
    spare = max(cta_count - len(kinds), 0)
    return [
        _middle(kind, grid, min(1 + spare, kind.x.count), passed_over)
        if number == most
        else _middle(kind, grid, 1, 0)
        for number, kind in enumerate(kinds)
    ]


def _that_count(kinds: Iterable[_Kind], grid: Dim3) -> list[_Kind]:
    """Kinds that are enough of a grid to be run."""
    return [kind for kind in kinds if kind.cta_count >= NEGLIGIBLE * grid.size]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Indices of one kind on an axis."""

    first: int
    count: int

    def middle(self, count: int) -> int:
        """Where neighbours in the middle begin."""
        return self.first + (self.count - count) // 2


@dataclass(frozen=True, slots=True)
class _Kind:
    """CTAs that lie on the same borders."""

    x: _Stretch
    y: _Stretch
    z: _Stretch

    @property
    def cta_count(self) -> int:
        return self.x.count * self.y.count * self.z.count


def _middle(kind: _Kind, grid: Dim3, count: int, besides: int) -> Stratum:
    """Neighbours along x in the middle of their kind, which stand for others besides."""
    row = kind.y.middle(1) + grid.y * kind.z.middle(1)
    return Stratum(
        first=kind.x.middle(count) + grid.x * row,
        cta_count=count,
        stands_for=kind.cta_count + besides,
    )


def _kinds(grid: Dim3, ways: int) -> Iterator[_Kind]:
    for x, y, z in product(*(_stretches(extent, ways) for extent in grid)):
        yield _Kind(x, y, z)


def _stretches(extent: int, ways: int) -> list[_Stretch]:
    kinds = min(extent, ways)
    if kinds == 1:
        return [_Stretch(0, extent)]
    first = 1 if kinds == _FIRST_AND_LAST else 0
    inner = _Stretch(first, extent - 1 - first)
    return [_Stretch(0, 1)] * first + [inner, _Stretch(extent - 1, 1)]
