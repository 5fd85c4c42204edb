"""Which engine the driver's launches get."""

from __future__ import annotations

from dataclasses import replace

import pytest

from va100.assembly import watched
from va100.config import Settings
from va100.debug.interpreted import WatchedCompiler
from va100.errors import SetupError
from va100.jit.compiler import JitCompiler
from va100.jit.engine import JitEngine
from va100.ptx.parser import parse

HOME = {"HOME": "/home/somebody"}


def test_the_jit_is_left_alone_unless_somebody_looks():
    jit = JitCompiler(JitEngine())
    assert watched(Settings.from_environment(HOME), jit) is jit


def test_the_reference_engine_interprets_every_kernel():
    settings = replace(Settings.from_environment(HOME), engine="reference")
    compiler = watched(settings, JitCompiler(JitEngine()))
    assert isinstance(compiler, WatchedCompiler)
    assert compiler._watcher.wants("any", parse(".version 8.0\n.target sm_80\n"))


def test_what_is_interpreted_cannot_be_checked():
    with pytest.raises(SetupError, match="VA100_ENGINE=reference interprets"):
        Settings.from_environment({**HOME, "VA100_CHECK": "memcheck", "VA100_ENGINE": "reference"})
