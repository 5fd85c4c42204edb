"""Arguments as Python has them, in the bytes that a kernel takes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.kernels import HEADER
from va100.gpu.arena import Arena
from va100.profile.arguments import Buffer, packed_arguments
from va100.ptx.parser import parse


@pytest.fixture(scope="module")
def arena():
    return Arena()


def function(*params):
    listed = ", ".join(f".param .{kind} p{i}{size}" for i, (kind, size) in enumerate(params))
    text = f"{HEADER}.visible .entry k({listed})\n{{\n    ret;\n}}\n"
    return parse(text, "k.ptx").kernels[0]


def packed(kinds, values, arena):
    params = [(kind, "") if isinstance(kind, str) else kind for kind in kinds]
    return packed_arguments(function(*params), values, arena)


class TestNumbers:
    @pytest.mark.parametrize(
        ("kind", "value", "raw"),
        [
            ("u32", 7, np.uint32(7).tobytes()),
            ("s32", -1, b"\xff" * 4),
            ("u32", -1, b"\xff" * 4),
            ("u64", 2**63, np.uint64(2**63).tobytes()),
            ("u8", True, b"\x01"),
            ("f32", 2.5, np.float32(2.5).tobytes()),
            ("f32", 2, np.float32(2).tobytes()),
            ("f64", 0.1, np.float64(0.1).tobytes()),
            ("b32", 1.5, np.float32(1.5).tobytes()),
            ("u32", np.int32(-5), np.int32(-5).tobytes()),
            ("f32", np.float32(0.1), np.float32(0.1).tobytes()),
        ],
    )
    def test_they_take_the_parameters_type(self, kind, value, raw, arena):
        assert packed([kind], [value], arena).packed == raw

    def test_each_lies_at_its_own_alignment(self, arena):
        found = packed(["u8", "u32", "u16", "f64"], [1, 2, 3, 4.0], arena).packed
        assert found == (
            b"\1\0\0\0" + np.uint32(2).tobytes() + np.uint16(3).tobytes() + b"\0" * 6
            + np.float64(4).tobytes()
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("kind", "value"), [("u8", 256), ("u32", 2**32), ("s32", -(2**31) - 1)]
    )
    def test_one_that_does_not_fit_is_refused(self, kind, value, arena):
        with pytest.raises(ValueError, match=r"argument 0, .* does not fit"):
            packed([kind], [value], arena)

    @pytest.mark.parametrize(
        ("kind", "value", "what"),
        [
            ("u32", 1.5, "is a float"),
            ("f32", np.float64(1), "has 8 bytes"),
            ("u32", "7", "is a str"),
            ("u32", None, "is a NoneType"),
            ("u32", [1, 2], "is a list"),
            ("u32", np.zeros(4), "is memory"),
            ("u64", np.array([object()]), "Python objects"),
            ("u64", np.zeros((4, 4))[:, ::2], "contiguous"),
            (("b8", "[12]"), 7, "12 bytes of a structure"),
            (("b8", "[12]"), b"1234", "has 4 bytes"),
        ],
    )
    def test_one_of_another_kind_is_refused_by_its_place(self, kind, value, what, arena):
        with pytest.raises(TypeError, match=f"argument 1 .*{what}"):
            packed(["u32", kind], [0, value], arena)

    def test_a_structure_is_its_bytes(self, arena):
        point = np.zeros((), np.dtype([("x", "<f4"), ("n", "<i8")], align=True))
        point["x"], point["n"] = 1.5, -2
        assert packed([("b8", "[16]")], [point], arena).packed == point.tobytes()

    @pytest.mark.parametrize("count", [0, 1, 3])
    def test_their_number_is_the_kernels(self, count, arena):
        with pytest.raises(TypeError, match=f"takes 2 arguments, got {count}"):
            packed(["u32", "u32"], [0] * count, arena)


class TestMemory:
    def test_arrays_are_uploaded_and_copied_back(self, arena):
        array = np.arange(6, dtype=np.int16).reshape(2, 3)
        arguments = packed(["u64", "u64"], [array, Buffer(100)], arena)
        try:
            first, second = np.frombuffer(arguments.packed, np.uint64).tolist()
            assert arena.download(first, 12) == array.tobytes()
            assert arena.accessible(second, 100)
            assert arguments.footprint_bytes == 112
            arena.write(first, np.full(6, 9, np.int16).tobytes())
            arguments.copy_back()
        finally:
            arguments.free()
        assert array.tolist() == [[9, 9, 9], [9, 9, 9]]

    def test_an_array_that_may_not_be_written_is_left_alone(self, arena):
        array = np.zeros(4, np.uint8)
        array.flags.writeable = False
        arguments = packed(["u64"], [array], arena)
        arena.write(arguments.held[0][0], b"abcd")
        arguments.copy_back()
        arguments.free()
        assert array.tolist() == [0, 0, 0, 0]

    def test_memory_is_given_back_when_a_later_argument_is_refused(self, arena):
        before = arena.free_bytes()
        with pytest.raises(TypeError):
            packed(["u64", "u32"], [np.zeros(1 << 20, np.uint8), "x"], arena)
        assert arena.free_bytes() == before

    @pytest.mark.parametrize("size", [0, -4])
    def test_a_buffer_has_a_size(self, size):
        with pytest.raises(ValueError, match="a buffer of"):
            Buffer(size)
