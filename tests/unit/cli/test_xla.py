"""What JAX is told by its environment."""

from __future__ import annotations

import sys

import pytest

from va100.cli import xla


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A folder of packages where JAX's plugin is installed."""
    plugin = tmp_path / "jax_plugins" / "xla_cuda13" / "xla_cuda_plugin.so"
    plugin.parent.mkdir(parents=True)
    plugin.touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    xla.plugin.cache_clear()
    yield tmp_path
    xla.plugin.cache_clear()


def test_without_the_plugin_nothing_is_set(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    xla.plugin.cache_clear()
    assert xla.additions({"XLA_FLAGS": "--mine"}) == {}
    xla.plugin.cache_clear()


def test_the_plugin_gets_a_name_of_ours(packages):
    plugin = packages / "jax_plugins" / "xla_cuda13" / "xla_cuda_plugin.so"
    set_here = xla.additions({})
    assert set_here["PJRT_NAMES_AND_LIBRARY_PATHS"] == f"va100:{plugin}"
    assert set_here["XLA_FLAGS"].startswith("--xla_gpu_")


def test_a_persons_own_flags_hold(packages):
    """XLA takes the last of equal flags."""
    found = xla.additions({"XLA_FLAGS": "--mine=1", "PJRT_NAMES_AND_LIBRARY_PATHS": "a:b.so"})
    assert found["XLA_FLAGS"].endswith(" --mine=1")
    assert found["PJRT_NAMES_AND_LIBRARY_PATHS"].endswith(".so,a:b.so")
    again = xla.additions(found)
    assert again["XLA_FLAGS"] == found["XLA_FLAGS"]


def test_nvidias_assembler_beside_it_is_seen(packages):
    assert xla.foreign_assembler() is None
    program = packages / "nvidia" / "cu13" / "bin" / "ptxas"
    program.parent.mkdir(parents=True)
    program.touch()
    assert xla.foreign_assembler() == program
