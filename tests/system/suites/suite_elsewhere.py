"""Kernels that run in other places than a test's body."""

import subprocess
import sys

import cuda_by_hand
import pytest

DRIVER = cuda_by_hand.Driver()


@pytest.fixture
def racy():
    return DRIVER.run(cuda_by_hand.RACE, "share")


@pytest.fixture
def racy_at_its_end():
    yield
    DRIVER.run(cuda_by_hand.RACE, "share")


def test_with_a_fixture(racy):
    assert racy == cuda_by_hand.SHARED


@pytest.mark.usefixtures("racy_at_its_end")
def test_with_a_fixture_that_ends_badly():
    assert True


@pytest.mark.parametrize("ptx", ["RACE", "ORDERED"])
def test_child(ptx):
    """A program that the test starts, as a suite of a compiled project does."""
    program = f"import cuda_by_hand as c; print(c.Driver().run(c.{ptx}, 'share'))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == str(cuda_by_hand.SHARED), done.stderr


@pytest.mark.xfail(reason="known", strict=True)
def test_known():
    DRIVER.run(cuda_by_hand.RACE, "share")
    raise AssertionError
