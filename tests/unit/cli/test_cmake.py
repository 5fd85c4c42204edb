"""The text of the CMake toolchain file."""

from __future__ import annotations

from pathlib import Path

from va100.cli.cmake import toolchain_text


def test_every_word_is_filled_in_and_taken_literally():
    folder = Path("/a folder/$HOME")
    text = toolchain_text(Path("/opt/${nvcc}"), folder, {"NAME": 'a "value"'})
    assert "@" not in text.replace("[==[", "").replace("]==]", "")
    assert "set(CMAKE_CUDA_COMPILER [==[/opt/${nvcc}]==])" in text
    assert '[==[NAME=a "value"]==]' in text
    assert "set(CUDA_CUDART [==[/a folder/$HOME/libcudart.so]==]" in text
