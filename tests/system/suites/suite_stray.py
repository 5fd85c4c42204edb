"""A kernel that does wrong while the suite is collected."""

import cuda_by_hand

FOUND = cuda_by_hand.Driver().run(cuda_by_hand.RACE, "share")


def test_what_was_found():
    assert FOUND == cuda_by_hand.SHARED
