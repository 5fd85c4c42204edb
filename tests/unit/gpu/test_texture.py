"""The table of texture and surface objects."""

from __future__ import annotations

import ctypes

import pytest

from va100.gpu.texture import (
    Kind,
    TexelFormat,
    Texture,
    add_texture,
    find_texture,
    native_bytes,
    remove_texture,
)


def test_the_structure_is_the_native_one():
    assert ctypes.sizeof(Texture) == native_bytes()


def test_what_is_added_is_found_until_it_is_removed():
    number = add_texture(Texture(kind=Kind.TEXTURE, base=512, width=3, channels=4))
    found = find_texture(number)
    assert (found.kind, found.base, found.width, found.channels) == (1, 512, 3, 4)
    with pytest.raises(ValueError, match=f"0x{number:x} is no surface object"):
        remove_texture(number, Kind.SURFACE)
    remove_texture(number, Kind.TEXTURE)
    assert find_texture(number) is None
    with pytest.raises(ValueError, match="is no texture object"):
        remove_texture(number, Kind.TEXTURE)


def test_a_number_does_not_come_back_soon():
    seen = set()
    for _ in range(600):
        number = add_texture(Texture(kind=Kind.TEXTURE))
        remove_texture(number, Kind.TEXTURE)
        seen.add(number)
    assert len(seen) == 600


@pytest.mark.parametrize("number", [0, 1, 0x1A << 52, (1 << 64) - 1, 0x1A0 << 48 | 0xFFFFFF0])
def test_any_number_may_be_asked_about(number):
    assert find_texture(number) is None


@pytest.mark.parametrize(
    ("kind", "size_bytes"),
    [(TexelFormat.U8, 1), (TexelFormat.S16, 2), (TexelFormat.F16, 2), (TexelFormat.F32, 4)],
)
def test_formats(kind, size_bytes):
    assert kind.size_bytes == size_bytes
    assert kind.is_float == (kind.name[0] == "F")
    assert kind.is_signed == (kind.name[0] == "S")
