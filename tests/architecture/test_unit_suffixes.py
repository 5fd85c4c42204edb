"""Every quantity in the facts says its unit in its name."""

import dataclasses
import typing
from enum import Enum

from tests.helpers.spec_walk import spec_classes
from va100.spec.model import Spec
from va100.units import SUFFIXES

NOT_QUANTITIES = ("_id", "_ids", "_generation")
"""Numbers that name rather than measure."""

EXEMPT = {
    ("ChipSpec", "compute_capability"): "a version",
    ("HeadlineSpec", "compute_capability"): "a version",
    ("MigProfileSpec", "placement_starts"): "positions",
    ("AttributeSpec", "value"): "in whatever unit CUDA gives the attribute",
}


def numeric(annotation: object) -> bool:
    """Whether a value of this type is, or holds, a number."""
    if annotation is bool:
        return False
    if isinstance(annotation, type):
        return issubclass(annotation, (int, float)) and not issubclass(annotation, Enum)
    return any(numeric(part) for part in typing.get_args(annotation))


def test_every_numeric_field_ends_in_a_known_unit():
    strangers = []
    for cls in spec_classes():
        hints = typing.get_type_hints(cls)
        for field in dataclasses.fields(cls):
            named = field.name.endswith((*SUFFIXES, *NOT_QUANTITIES))
            exempt = (cls.__name__, field.name) in EXEMPT
            if numeric(hints[field.name]) and not named and not exempt:
                strangers.append(f"{cls.__name__}.{field.name}")
    assert strangers == []


def test_exemptions_are_still_needed():
    known = {
        (cls.__name__, field.name) for cls in spec_classes() for field in dataclasses.fields(cls)
    }
    assert set(EXEMPT) <= known


def test_words_do_not_end_in_units():
    lying = [
        f"{cls.__name__}.{field.name}"
        for cls in spec_classes()
        for field in dataclasses.fields(cls)
        if field.name.endswith(SUFFIXES) and not numeric(typing.get_type_hints(cls)[field.name])
    ]
    assert lying == []


def test_the_walk_finds_classes():
    assert len(spec_classes()) > 10
    assert all(issubclass(cls, Spec) for cls in spec_classes())
