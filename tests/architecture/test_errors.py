"""Every exception crosses processes whole, keeps its facts, and stands in the drawn tree."""

from __future__ import annotations

import inspect
import pickle

import pytest

from va100 import errors

PLACE = {
    "kernel": "saxpy",
    "cta": (3, 0, 0),
    "thread": (31, 2, 0),
    "file": "saxpy.cu",
    "line": 12,
    "instruction": "st.global.f32 [%rd4], %f3;",
}

FACTS = {
    "str": "words",
    "int": 4096,
    "tuple[int, int, int]": (1, 2, 3),
}


def classes():
    """Every exception of the library, root included."""
    found = [errors.Va100Error]
    for cls in found:
        found.extend(cls.__subclasses__())
    return found


def example(cls):
    """An exception with every fact given."""
    if "__init__" not in {name for base in cls.__mro__[:-3] for name in vars(base)}:
        return cls("words")
    given = {}
    positional = []
    for parameter in inspect.signature(cls).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            given |= {name: value for name, value in PLACE.items() if name not in given}
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            positional.append(FACTS[parameter.annotation])
        elif parameter.kind is parameter.KEYWORD_ONLY:
            given[parameter.name] = FACTS[parameter.annotation]
    return cls(*positional, **given)


@pytest.mark.parametrize("cls", classes(), ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_with_every_fact(cls, protocol):
    error = example(cls)
    back = pickle.loads(pickle.dumps(error, protocol))
    assert type(back) is cls
    assert str(back) == str(error)
    assert vars(back) == vars(error)


@pytest.mark.parametrize("cls", classes()[1:], ids=lambda cls: cls.__name__)
def test_stands_in_the_tree_that_the_module_draws(cls):
    lines = [line for line in errors.__doc__.splitlines() if f"── {cls.__name__}" in line]
    assert len(lines) == 1
    depth = len(cls.__mro__) - len(errors.Va100Error.__mro__)
    assert lines[0].index("──") == 4 * depth + 1


def test_nothing_else_in_the_library_defines_exceptions_of_the_tree():
    assert {cls.__module__ for cls in classes()} == {"va100.errors"}
