"""Thousands of damaged texts: each parses or is refused, none ends in a traceback."""

from __future__ import annotations

import pytest

from tests.helpers.ptx_corpus import corpus_paths, golden_texts
from tests.helpers.ptx_mutation import mutants
from va100.errors import PtxError
from va100.ptx.cfg import build_flow
from va100.ptx.parser import parse
from va100.ptx.printer import print_module
from va100.ptx.verify import problems, unsupported

USUAL, FULL, SEED = 2_000, 10_000, 20_260_105
LARGEST = 9_000
"""Characters of the texts that are damaged; larger ones would only be slower."""


@pytest.fixture(scope="module")
def originals(request):
    texts = list(golden_texts().values())
    corpus = [path.read_text() for path in corpus_paths(request.config)]
    return texts + [text for text in corpus if len(text) <= LARGEST]


def outcome_of(text):
    """Do everything with a text that anyone does before it runs."""
    try:
        module = parse(text)
        found = problems(module)
        parse(print_module(module))
        for function in module.functions:
            if function.body is not None:
                resolve(module, function, found)
    except PtxError as error:
        assert error.line > 0
        return "refused"
    return "problems" if found else "clean"


def resolve(module, function, found):
    try:
        build_flow(module, function)
    except PtxError:
        assert found, "the verifier missed what stops a flow graph"
        return
    if not found and function.is_kernel:
        unsupported(module, function)


def test_mutants_parse_or_are_refused(originals, request):
    count = FULL if request.config.getoption("--full", default=False) else USUAL
    outcomes = [outcome_of(text) for text in mutants(originals, count, SEED)]
    for outcome in ("refused", "problems", "clean"):
        assert outcomes.count(outcome) > count // 50, outcome


def test_mutations_are_the_same_for_the_same_seed(originals):
    assert list(mutants(originals, 20, 7)) == list(mutants(originals, 20, 7))
    assert list(mutants(originals, 20, 7)) != list(mutants(originals, 20, 8))
