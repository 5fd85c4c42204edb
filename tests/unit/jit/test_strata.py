"""Which CTAs stand for a grid."""

from hypothesis import given
from hypothesis import strategies as st

from va100.jit.strata import NEGLIGIBLE, _kinds, _that_count, strata
from va100.work import Dim3

extents = st.builds(
    Dim3, st.integers(1, 400), st.integers(1, 60), st.integers(1, 9)
)  # fmt: skip


class TestStrata:
    @given(extents, st.integers(1, 40))
    def test_they_stand_for_the_whole_grid_and_do_not_meet(self, grid, count):
        found = strata(grid, count)
        assert sum(s.stands_for for s in found) == grid.size
        assert sum(s.cta_count for s in found) <= max(count, 1)
        ran = [s.first + n for s in found for n in range(s.cta_count)]
        assert len(set(ran)) == len(ran)
        assert all(0 <= index < grid.size for index in ran)
        assert all(s.cta_count <= s.stands_for for s in found)

    @given(extents, st.integers(9, 40))
    def test_neighbours_are_of_one_kind(self, grid, count):
        for stratum in strata(Dim3(grid.x, grid.y, 1), count):
            kinds = set()
            for index in range(stratum.first, stratum.first + stratum.cta_count):
                x, y = index % grid.x, index // grid.x
                kinds.add((x == 0, x == grid.x - 1, y == 0, y == grid.y - 1))
            assert len(kinds) == 1

    def test_a_partial_last_row_counts_as_one_row(self):
        found = strata(Dim3(10, 7, 1), 4)
        assert [(s.first, s.cta_count, s.stands_for) for s in found] == [
            (24, 1, 54),
            (64, 1, 9),
            (29, 1, 6),
            (69, 1, 1),
        ]

    def test_a_border_that_is_next_to_nothing_is_not_run(self):
        found = strata(Dim3(1000, 10, 1), 4)
        assert [(s.cta_count, s.stands_for) for s in found] == [(1, 998), (2, 8004), (1, 998)]
        assert all(s.first % 1000 not in (0, 999) for s in found)

    @given(extents, st.integers(1, 40))
    def test_no_more_than_a_few_in_a_thousand_are_passed_over(self, grid, count):
        for ways in (1, 2, 3):
            passed = grid.size - sum(
                kind.cta_count for kind in _that_count(_kinds(grid, ways), grid)
            )
            assert passed <= 27 * NEGLIGIBLE * grid.size

    def test_one_cta_is_taken_from_the_middle(self):
        (only,) = strata(Dim3(10, 7, 1), 1)
        assert (only.first, only.stands_for) == (34, 70)

    def test_what_is_left_goes_to_most_of_the_grid(self):
        assert [s.cta_count for s in strata(Dim3(100, 1, 1), 8)] == [1, 6, 1]
