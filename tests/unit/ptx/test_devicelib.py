"""Functions written in PTX: each is valid, and is added only where it is called."""

from __future__ import annotations

import pytest

from tests.helpers.ptx_trees import HEADER
from va100.driver.checked import refusal_of
from va100.ptx.devicelib import DEVICE_LIBRARY, RECORD_BYTES, device_function
from va100.ptx.link import link, linked_text, missing_functions, needs_linking, require_resolved
from va100.ptx.parser import parse
from va100.ptx.provided import PROVIDED, is_declared_only
from va100.ptx.verify import verify


@pytest.mark.parametrize("name", sorted(DEVICE_LIBRARY))
def test_each_is_valid_and_needs_nothing_more(name):
    module = parse(device_function(name, 24), name)
    verify(module)
    require_resolved(module)
    assert [f.name for f in module.functions if f.body is not None] == [name]
    assert all(
        f.name in PROVIDED | DEVICE_LIBRARY.keys() for f in module.functions if f.body is None
    )
    assert all(is_declared_only(f.name) for f in module.functions)


def test_all_of_them_fit_together():
    declared = [parse(device_function(name, 24)).functions[-1] for name in DEVICE_LIBRARY]
    assert len({f.name for f in declared}) == len(DEVICE_LIBRARY)
    module = link([parse(device_function(name, 24), name) for name in DEVICE_LIBRARY])
    verify(module)


CALL = """
.extern .func (.param .b32 r) __cudaCDP2GetLastError();
.visible .entry k(.param .b64 a, .param .b32 b, .param .b64 c)
{ .param .b32 q; call.uni (q), __cudaCDP2GetLastError, (); ret; }
"""


def test_one_is_added_where_it_is_declared():
    module = parse(HEADER + CALL)
    assert needs_linking(module)
    linked = link([module])
    verify(linked)
    assert [f.name for f in linked.functions if f.body is not None] == [
        "k",
        "__cudaCDP2GetLastError",
    ]
    assert missing_functions(linked, linked.kernels[0]) == []


def test_a_definition_of_the_programs_own_stays():
    own = ".visible .func (.param .b32 r) __cudaCDP2GetLastError() { ret; }"
    text = linked_text([parse(HEADER + CALL), parse(HEADER + own)])
    assert "__va100_launch_error" not in text


def test_records_have_room_for_the_largest_kernels_parameters():
    buffer = "__cudaCDP2GetParameterBufferV2"
    declaration = device_function(buffer, 0).split(".weak")[1].split("{")[0].strip()
    text = f"{HEADER}{CALL}.extern {declaration};"
    assert f"st.param.b64 [bytes], {RECORD_BYTES + 24};" in linked_text([parse(text)])


def test_a_kernel_that_calls_what_nobody_has_is_refused_by_name():
    other = CALL.replace("GetLastError", "MemcpyAsync")
    module = parse(HEADER + other + ".visible .entry calm() { ret; }")
    require_resolved(module)
    kernel, calm = module.kernels
    assert refusal_of(module, calm) == ""
    assert refusal_of(module, kernel) == "va100 has no __cudaCDP2MemcpyAsync, which it calls"
