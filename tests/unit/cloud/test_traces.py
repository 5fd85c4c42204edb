"""Traces: the documented form, names that public traces use, and lines that are refused."""

from __future__ import annotations

import random

import pytest

from tests.unit.cloud.fleets import PCIE, SXM, card, mig
from va100.cloud.models import Market
from va100.cloud.traces import made_trace, read_trace, slice_for
from va100.errors import BadRequest


def read(text, **more):
    return read_trace(text.splitlines(), SXM, **more)


def test_the_documented_form():
    jobs = read(
        "job,tenant,submit_s,duration_s,gpus,gpu,profile,market,members\n"
        f"b,chat,30,600,,,1g.10gb,spot,4\na,vision,0,3600,2,{PCIE},,on-demand,1\n"
    )
    assert [(j.name, j.tenant, j.shape, j.market, j.members) for j in jobs] == [
        ("a", "vision", card(2, PCIE), Market.ON_DEMAND, 1),
        ("b", "chat", mig("1g.10gb"), Market.SPOT, 4),
    ]


def test_names_and_shares_of_public_traces():
    jobs = read("name,num_gpu,gpu_milli,qos,creation_time,duration\nx,1,500,BE,5,60.2\n")
    assert (jobs[0].shape, jobs[0].market, jobs[0].duration_s) == (
        mig("4g.40gb"), Market.SPOT, 61,
    )  # fmt: skip
    jobs = read("jobid,user,gpu_num,submit_time,duration\n1,u,20,5,60\n2,u,0,5,60\n")
    assert [(j.shape, j.members) for j in jobs] == [(card(8), 3)]


def test_other_names_are_mapped():
    jobs = read("id,t0,len\nq,1,2\n", columns={"job": "id", "submit_s": "t0", "duration_s": "len"})
    assert [(j.name, j.submit_s, j.duration_s) for j in jobs] == [("q", 1, 2)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("job,duration_s\na,1\n", "no column submit_s"),
        ("submit_s,duration_s\n1,soon\n", "trace:2: duration_s is 'soon'"),
        ("submit_s,duration_s\n1,nan\n", "trace:2: duration_s is 'nan'"),
        ("submit_s,duration_s,profile\n1,1,9g.1gb\n", "no MIG profile '9g.1gb'"),
        ("submit_s,duration_s,market\n1,1,free\n", "market 'free' is none of"),
        ("", "the header is empty"),
    ],
)
def test_what_is_no_trace_is_refused_by_line(text, problem):
    with pytest.raises(BadRequest, match=problem):
        read(text)


def test_the_smallest_slice_that_suffices():
    assert [slice_for(SXM, share) for share in (0.1, 0.25, 0.4, 0.5, 0.9, 1)] == [
        "1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb", "7g.80gb",
    ]  # fmt: skip


def test_made_traces_are_repeatable_and_ordered():
    one, two = (list(made_trace(random.Random(5), jobs=200, days=1, model=SXM)) for _ in "ab")
    assert one == two
    assert [j.submit_s for j in one] == sorted(j.submit_s for j in one)
    assert len({j.shape for j in one}) > 5
