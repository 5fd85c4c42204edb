"""A suite without any CUDA library."""

import cuda_by_hand
import pytest

DRIVER = cuda_by_hand.Driver()  # at import, as many suites do


@pytest.mark.parametrize("threads", [32, 64, 128])
def test_triple(threads):
    assert DRIVER.run(cuda_by_hand.TRIPLE, "triple", threads) == [3 * t for t in range(threads)]


def test_ordered():
    assert DRIVER.run(cuda_by_hand.ORDERED, "share") == cuda_by_hand.SHARED


def test_race():
    assert DRIVER.run(cuda_by_hand.RACE, "share") == cuda_by_hand.SHARED


def test_without_cuda():
    assert True
