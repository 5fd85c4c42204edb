"""The locks pin every dependency by hash and say nothing of where it comes from."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.helpers.source_tree import ROOT, name_of

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"[a-z0-9-]+==[0-9][\w.]*( ; [^\\]+)? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
NAME = re.compile(r"[A-Za-z0-9-]+")

EXTRA_OF_LOCK = {
    "base": (),
    "bench": ("bench",),
    "bench-tensor": ("bench-tensor",),
    "clients": ("clients", "nccl4py", "numba-cuda", "tinygrad", "triton"),
    "cloud": ("cloud",),
    "cloud-test": ("cloud-test",),
    "cuda-python": ("cuda-python", "nvrtc"),
    "dev": ("dev", "test"),
    "jax": ("jax",),
    "node-clients": ("node-clients",),
    "nvcc": ("nvcc",),
    "plan": ("onnx", "plan"),
    "pycuda": ("pycuda",),
}
WITHOUT_LOCK = {"cupy", "ray", "torch"}
"""Gigabytes, or minutes of building, that tests do without."""
IN_ONE_ENVIRONMENT = set(EXTRA_OF_LOCK) - {"jax", "bench", "bench-tensor"} | {"build"}


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def pinned(lock):
    """Names in a lock."""
    lines = (ROOT / "requirements" / f"{lock}.txt").read_text("utf-8").splitlines()
    return {line.split("==")[0] for line in lines if not line.startswith(" ")}


@pytest.mark.parametrize("path", LOCKS, ids=name_of)
def test_a_lock_holds_names_versions_and_hashes_only(path):
    lines = path.read_text("utf-8").splitlines()
    assert [line for line in lines if not PIN.fullmatch(line) and not HASH.fullmatch(line)] == []


@pytest.mark.parametrize("lock", EXTRA_OF_LOCK)
def test_a_lock_covers_its_requirements(lock):
    extras = project()["optional-dependencies"]
    wanted = [*project()["dependencies"], *(r for e in EXTRA_OF_LOCK[lock] for r in extras[e])]
    names = {NAME.match(requirement).group().lower() for requirement in wanted} - {"va100"}
    assert names <= pinned(lock)


def test_every_lock_and_extra_is_accounted_for():
    assert {path.stem for path in LOCKS} == {*EXTRA_OF_LOCK, "build"}
    assert {e for extras in EXTRA_OF_LOCK.values() for e in extras} == set(
        project()["optional-dependencies"]
    ) - WITHOUT_LOCK


def test_locks_of_one_environment_agree():
    found = {}
    for lock in IN_ONE_ENVIRONMENT:
        for line in (ROOT / "requirements" / f"{lock}.txt").read_text("utf-8").splitlines():
            if not line.startswith(" "):
                name, _, version = line.removesuffix(" \\").partition("==")
                number, _, marker = version.partition(" ; ")
                found.setdefault((name, marker), set()).add(number)
    assert {key: numbers for key, numbers in found.items() if len(numbers) > 1} == {}


def test_the_base_needs_no_compiler_package():
    assert not any(name.startswith(("nvidia-", "cuda-")) for name in pinned("base"))
