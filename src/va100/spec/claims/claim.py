"""What a text claims, and what came of comparing it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from va100.spec.claims.quantity import Quantity
from va100.spec.names import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One figure said of one model, or of a few that the text leaves open.

    ``quantities`` are alternatives or a dense-and-sparse pair.  ``multiple`` with ``reference``
    is a claimed ratio to other models instead.
    """

    line: int
    label: str
    text: str
    models: tuple[Model, ...]
    subject: str
    """The models as the text calls them."""
    figure: str | None
    quantities: tuple[Quantity, ...] = ()
    multiple: Quantity | None = None
    reference: tuple[Model, ...] = ()
    word: str = ""
    """For figures that are words, such as the kind of memory."""
    divisor: str = ""
    """``direction`` or ``link`` when the figure is said of one of them."""
    table: int = 0
    """Which table of the text; 0 in prose."""


class Verdict(Enum):
    """Outcome of one comparison."""

    RIGHT = "right"
    WRONG = "wrong"
    UNCHECKED = "not checked"


class Problem(Enum):
    """What kind of mistake explains a wrong figure."""

    NONE = "none"
    SPARSE_AS_DENSE = "sparse rate listed as dense"
    DENSE_AS_SPARSE = "dense rate listed as sparse"
    OTHER_ROW = "value of another row"
    OTHER_MODEL = "value of another model"
    DIRECTION = "one direction for both, or both for one"
    SCALE = "off by a power of ten, or bits for bytes"
    UNIT = "wrong unit"
    MULTIPLE = "wrong multiple"
    ABSENT = "the model has no such thing"
    VALUE = "wrong value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A claim, its verdict, and the sentence that says why."""

    claim: Claim
    verdict: Verdict
    explanation: str
    problem: Problem = Problem.NONE
    matches: str = ""
    """Key of the figure the value really is, when it is another's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """All findings of a text, and what they show together."""

    findings: tuple[Finding, ...]
    patterns: tuple[str, ...] = field(default=())

    @property
    def wrong_count(self) -> int:
        """How many claims are wrong."""
        return sum(finding.verdict is Verdict.WRONG for finding in self.findings)
