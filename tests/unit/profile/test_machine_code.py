"""Loads in machine code."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from va100.profile.machine_code import load_count

LOAD, GENERIC, SHARED, ADD = 0x981, 0x980, 0x984, 0x210


def cubin(code, name=".text.k"):
    """A file of three sections: nothing, names, and a kernel's instructions."""
    text = b"".join(struct.pack("<QQ", 0xABC000 | word, 7) for word in code)
    names = b"\0.names\0" + name.encode() + b"\0"
    start = 0x40
    headers = [(0, 0, 0), (1, start, len(names)), (8, start + len(names), len(text))]
    table = b"".join(
        struct.pack("<IIQQQQ", at, 1, 0, 0, offset, size) + bytes(0x18)
        for at, offset, size in headers
    )
    head = bytearray(b"\x7fELF\x02\x01" + bytes(0x3A))
    struct.pack_into("<Q", head, 0x28, start + len(names) + len(text))
    struct.pack_into("<HHH", head, 0x3A, 0x40, len(headers), 1)
    return bytes(head) + names + text + table


class TestLoadCount:
    def test_loads_of_global_and_generic_memory_are_counted(self):
        assert load_count(cubin([ADD, LOAD, SHARED, GENERIC, LOAD]), "k") == 3

    def test_another_kernel_is_not_known(self):
        assert load_count(cubin([LOAD]), "other") is None

    @pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x02\x01", bytes(200)])
    def test_what_is_no_such_file_is_not_known(self, data):
        assert load_count(data, "k") is None

    @given(st.data())
    def test_no_damage_does_harm(self, data):
        whole = bytearray(cubin([LOAD, ADD]))
        for _ in range(3):
            whole[data.draw(st.integers(6, len(whole) - 1))] = data.draw(st.integers(0, 255))
        load_count(bytes(whole[: data.draw(st.integers(0, len(whole)))]), "k")
