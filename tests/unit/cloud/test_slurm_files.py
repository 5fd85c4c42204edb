"""Slurm's files: what is written fits, and what does not fit is named."""

from __future__ import annotations

import pytest

from tests.unit.cloud.fleets import SXM, card, mig
from va100.cloud.drivers.slurm_files import (
    NodeLayout,
    gres_conf,
    gres_request,
    mismatches,
    slurm_conf_lines,
)
from va100.errors import BadRequest

LAYOUT = NodeLayout(
    name="gpu01", model=SXM, cards=((), ("1g.10gb",) * 7, ("3g.40gb", "4g.40gb")), cpus=8
)


def files(layout=LAYOUT):
    return gres_conf([layout], "/dev/cap{number}"), slurm_conf_lines([layout])


def test_what_is_written_fits():
    gres, slurm = files()
    assert mismatches(gres, slurm) == []
    assert "Gres=gpu:a100:1,gpu:a100_1g.10gb:7,gpu:a100_3g.40gb:1,gpu:a100_4g.40gb:1" in slurm
    assert gres.count("NodeName=gpu01") == 10
    assert len(set(gres.splitlines())) == len(gres.splitlines()), "each GRES has its own file"


def test_what_a_job_asks_for():
    assert gres_request(card(4)) == "gpu:a100:4"
    assert gres_request(mig("1g.10gb")) == "gpu:a100_1g.10gb:1"


@pytest.mark.parametrize(
    "cards", [(("4g.40gb", "4g.40gb"),), (("1g.20gb",) * 4 + ("1g.10gb",) * 3,), (("9g.1gb",),)]
)
def test_what_no_card_can_be_is_refused(cards):
    with pytest.raises(BadRequest):
        gres_conf([NodeLayout(name="n", model=SXM, cards=cards)], "/dev/x{number}")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda g, s: (g, s.replace("GresTypes=gpu\n", "")), "GresTypes does not name gpu"),
        (lambda g, s: (g, s.replace("cons_tres", "linear")), "not select/cons_tres"),
        (lambda g, s: (g, s.replace("10gb:7", "10gb:8")), "slurm.conf has 8 of gpu:a100_1g.10gb, "
         "gres.conf 7: Slurm will drain it"),
        (lambda g, s: (g, s.replace("10gb:7", "10gb:6")), "the rest are ignored"),
        (lambda g, s: (g, s.replace("a100_3g.40gb", "a100_3g.20gb")), "gres.conf has 1 of "
         "gpu:a100_3g.40gb, slurm.conf none"),
        (lambda g, s: ("AutoDetect=nvml\n", s), "finds slices only while MIG is on"),
        (lambda g, s: (g.replace("gpu01", "gpu02"), s), "node gpu02 is not in slurm.conf"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(change, problem):
    assert any(problem in line for line in mismatches(*change(*files())))


def test_lists_of_hosts_and_files():
    gres = "NodeName=n[01-02] Name=gpu Type=a100 File=/dev/nvidia[0-3]\n"
    slurm = ("GresTypes=gpu\nSelectType=select/cons_tres\n"
             "NodeName=n[01-02] \\\n  Gres=gpu:a100:4  # four\n")  # fmt: skip
    assert mismatches(gres, slurm) == []
    assert len(mismatches(gres.replace("0-3", "0-2"), slurm)) == 2
