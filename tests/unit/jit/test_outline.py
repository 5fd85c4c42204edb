"""Instructions as shared functions: what is a parameter, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from llvmlite import binding

from va100.jit.outline import Outlines, Surroundings
from va100.jit.outlined import MaskedObject

_DECLARED = {"va_h_ld_global_32": "declare void @va_h_ld_global_32(ptr, i64, i32, ptr, ptr)"}


def _around(mask: str = "%t7") -> Surroundings:
    def known(name: str) -> Sequence[str] | None:
        if name == "%w0":
            return ["  %w0.at = getelementptr i8, ptr %s, i64 16", "  %w0 = load ptr, ptr %w0.at"]
        if name == "%field.32":
            return ["  %field.32.at = getelementptr i8, ptr %w0, i64 32",
                    "  %field.32 = load ptr, ptr %field.32.at"]  # fmt: skip
        if name == "%scratch.0":
            return ["  %scratch.0 = alloca [32 x i32], align 64"]
        return None

    return Surroundings(
        masks=frozenset((mask,)),
        place_of=lambda name: int(name[4:]) if name.startswith("%at.") else None,
        known=known,
        declared=_DECLARED,
    )


def _load(first: int, at: int, site: int, offset: int, mask: str = "%t7") -> list[str]:
    names = [f"%t{first + k}" for k in range(5)]
    return [
        f"  {names[0]} = load i64, ptr %at.{at}",
        f"  {names[1]} = add i64 {names[0]}, {offset}",
        f"  {names[2]} = load ptr, ptr %field.32",
        f"  {names[3]} = icmp eq i64 {names[1]}, 0",
        f"  br i1 {names[3]}, label %slow{first}, label %ok{first}",
        f"slow{first}:",
        f"  call void @va_h_ld_global_32(ptr %w, i64 {site}, i32 {mask}, ptr {names[2]}, "
        "ptr %scratch.0)",
        f"  br label %ok{first}",
        f"ok{first}:",
        f"  store <32 x i32> splat (i32 {offset}), ptr %at.{at + 64}",
    ]


def _called(lines: Sequence[str], around: Surroundings) -> tuple[str, str]:
    found = Outlines().call(lines, around)
    assert found is not None
    return found


def test_instructions_that_differ_in_places_and_numbers_are_one_function() -> None:
    outlines = Outlines()
    first = outlines.call(_load(20, 1024, 73014446167, 440), _around())
    second = outlines.call(_load(300, 4096, 12345678, 16, "%t299"), _around("%t299"))
    assert first is not None
    assert second is not None
    assert first[0] == second[0]
    assert len(outlines.bodies) == 1
    for number in ("1024", "1088", "73014446167", "440", "i32 %t7"):
        assert number in first[1]
    for number in ("4096", "4160", "12345678", "16", "i32 %t299"):
        assert number in second[1]


def test_a_body_is_a_module_that_llvm_takes() -> None:
    outlines = Outlines()
    found = outlines.call(_load(20, 1024, 73014446167, 440), _around())
    assert found is not None
    symbol, call = found
    body = outlines.bodies[symbol]
    module = binding.parse_assembly(body.text)
    module.verify()
    parameters = list(module.get_function(symbol).arguments)
    assert len(parameters) == call.count(", ") + 1
    assert body.declaration.count(", ") + 1 == len(parameters)


@pytest.mark.parametrize(
    "line",
    [
        "  br label %dispatch",
        "  %t900 = add i32 %t20, %t3",
        "  call void @va_h_unheard_of(ptr %w)",
        "  store i32 0, ptr %hidden",
    ],
    ids=["jump", "value of the block", "undeclared", "unknown place"],
)
def test_what_only_its_block_knows_is_not_taken_out(line: str) -> None:
    assert Outlines().call([*_load(20, 1024, 7301444, 440), line], _around()) is None


def test_other_operations_are_other_functions() -> None:
    lines = _load(20, 1024, 7301444, 440)
    other = [line.replace("icmp eq", "icmp ne") for line in lines]
    assert _called(lines, _around())[0] != _called(other, _around())[0]


def test_amounts_of_shifts_stay_in_the_text() -> None:
    def shifted(by: int) -> list[str]:
        return ["  %t1 = load i64, ptr %at.64", f"  %t2 = shl i64 %t1, {by}",
                "  %t3 = xor i64 %t2, %t1", "  store i64 %t3, ptr %at.80"]  # fmt: skip

    assert _called(shifted(2), _around())[0] != _called(shifted(3), _around())[0]


def test_few_lines_stay_where_they_are() -> None:
    assert Outlines().call(["  store i32 0, ptr %at.64"], _around()) is None


@pytest.mark.parametrize("symbols", [(), ("o.1",), ("o.1", "o.2")])
def test_objects_are_packed_with_what_they_call(symbols: tuple[str, ...]) -> None:
    packed = MaskedObject(symbols, b"\0object \xff").pack()
    assert MaskedObject.unpack(packed) == MaskedObject(symbols, b"\0object \xff")
