"""Moves that make room: fewest, only of what may move, and they do make room."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cloud.fleets import SXM, ask, assert_legal, at, card, hgx, lease, mig
from va100.cloud.defragment import fragmentation, moves_for, stranded_eighths
from va100.cloud.fleet import Fleet
from va100.cloud.models import Market, Tier
from va100.cloud.placement import find_free
from va100.cloud.policies import Policy, Tight
from va100.cloud.scheduler import decide


def one_each(tier=Tier.SPOT, **more):
    return [
        lease(f"s{gpu}", mig("1g.10gb"), at("node-1", gpu, "1g.10gb", 0), tier=tier, **more)
        for gpu in range(2)
    ]


def test_one_move_frees_a_card():
    moves = moves_for(Fleet([hgx(gpus=2)], one_each()), card(), Tight())
    assert [(move.lease, move.source.gpus, move.target.gpus) for move in moves] == [
        ("s0", (0,), (1,))
    ]


def test_what_stays_is_left_alone():
    fleet = Fleet([hgx(gpus=2)], one_each(Tier.STANDARD))
    assert moves_for(fleet, card(), Tight()) is None
    assert len(moves_for(fleet, card(), Tight(), frozenset({"s1"}))) == 1


def test_nothing_moves_when_there_is_room():
    assert moves_for(Fleet([hgx(gpus=3)], one_each()), card(), Tight()) == ()


def test_several_moves_free_several_cards():
    leases = [
        lease(f"s{gpu}", mig("1g.10gb"), at("node-1", gpu, "1g.10gb", 0), tier=Tier.SPOT)
        for gpu in range(4)
    ]
    moves = moves_for(Fleet([hgx(gpus=4)], leases), card(2), Tight())
    assert len(moves) == 2


def test_fragmentation_is_what_no_whole_card_can_be_made_of():
    assert fragmentation(Fleet([hgx(gpus=2)]), SXM) == 0
    assert fragmentation(Fleet([hgx(gpus=2)], one_each()), SXM) == 1
    assert fragmentation(Fleet([hgx(gpus=2)], one_each()[:1]), SXM) == 7 / 15


def test_what_is_stranded_is_told():
    leases = [lease("a", mig("4g.40gb"), at("node-1", 0, "4g.40gb", 0)),
              lease("b", mig("3g.40gb"), at("node-1", 1, "3g.40gb", 4)),
              lease("c", mig("3g.40gb"), at("node-1", 1, "3g.40gb", 0))]  # fmt: skip
    assert stranded_eighths(Fleet([hgx(gpus=2)], leases), SXM) == 0
    narrow = [lease(f"n{s}", mig("1g.10gb"), at("node-1", 0, "1g.10gb", s)) for s in range(7)]
    assert stranded_eighths(Fleet([hgx(gpus=1)], narrow), SXM) == 1


@given(
    asked=st.lists(
        st.tuples(st.sampled_from(["1g.10gb", "2g.20gb", "3g.40gb", "1g.20gb"]), st.booleans()),
        max_size=14,
    ),
    ended=st.sets(st.integers(0, 13)),
    wanted=st.sampled_from([card(), card(2), mig("4g.40gb"), mig("3g.40gb"), mig("7g.80gb")]),
)
def test_after_the_moves_there_is_room(asked, ended, wanted):
    fleet = Fleet([hgx(gpus=3)])
    requests = [
        ask(f"r{n:02}", shape=mig(profile), market=Market.SPOT if spot else Market.ON_DEMAND)
        for n, (profile, spot) in enumerate(asked)
    ]
    decide(fleet, requests, {}, Policy(), 0)
    for n in ended:
        if f"r{n:02}" in fleet.leases:
            fleet.remove(f"r{n:02}")
    before = dict(fleet.leases)
    moves = moves_for(fleet, wanted, Tight())
    assert fleet.leases == before, "planning moves nothing"
    if moves is None:
        return
    for move in moves:
        assert not before[move.lease].firm
        assert before[move.lease].place == move.source
    for move in moves:
        fleet.remove(move.lease)
    for move in moves:
        fleet.add(replace(before[move.lease], place=move.target))
    assert_legal(fleet)
    assert find_free(fleet, wanted, Tier.STANDARD, Tight()) is not None
