"""Tables of the ``mig`` verb against lines of real prints, character by character."""

from __future__ import annotations

import pytest

from va100.nvml.instances import Profile
from va100.nvml.smi import mig_tables
from va100.nvml.smi.mig_tables import InstanceRow, ProfileRow

COMPUTE_PROFILES = """\
+--------------------------------------------------------------------------------------+
| Compute instance profiles:                                                           |
| GPU     GPU       Name             Profile  Instances   Exclusive       Shared       |
|       Instance                       ID     Free/Total     SM       DEC   ENC   OFA  |
|         ID                                                          CE    JPEG       |
|======================================================================================|
|   0      2       MIG 1c.3g.20gb       0      3/3           14        2     0     0   |
|                                                                      3     0         |
+--------------------------------------------------------------------------------------+
|   0      2       MIG 3g.20gb          2*     1/1           42        2     0     0   |
|                                                                      3     0         |
+--------------------------------------------------------------------------------------+
"""


def profile(**given):
    usual = {
        "id": 19,
        "name": "1g.5gb",
        "slices": 1,
        "instances": 7,
        "multiprocessors": 14,
        "copy_engines": 1,
        "decoders": 0,
        "encoders": 0,
        "jpegs": 0,
        "ofas": 0,
        "memory_mib": 4864,
    }
    return Profile(**{**usual, **given})


class TestGpuProfiles:
    def test_a_row_of_each_width(self):
        me = profile(
            id=20, name="1g.10gb+me", instances=1, decoders=1, jpegs=1, ofas=1, memory_mib=9728
        )
        whole = profile(
            id=0, name="7g.80gb", instances=1, multiprocessors=98, copy_engines=7, decoders=5,
            jpegs=1, ofas=1, memory_mib=80896,
        )  # fmt: skip
        rows = [
            ProfileRow(gpu=0, profile=profile(), free=7),
            ProfileRow(gpu=0, profile=me, free=1),
            ProfileRow(gpu=11, profile=whole, free=0),
        ]
        assert list(mig_tables.gpu_profiles(rows)) == [
            "+-------------------------------------------------------------------------------+",
            "| GPU instance profiles:                                                        |",
            "| GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC  |",
            "|                                Free/Total   GiB              CE    JPEG  OFA  |",
            "|===============================================================================|",
            "|   0  MIG 1g.5gb          19     7/7        4.75       No     14     0     0   |",
            "|                                                               1     0     0   |",
            "+-------------------------------------------------------------------------------+",
            "|   0  MIG 1g.10gb+me      20     1/1        9.50       No     14     1     0   |",
            "|                                                               1     1     1   |",
            "+-------------------------------------------------------------------------------+",
            "|  11  MIG 7g.80gb          0     0/1        79.00      No     98     5     0   |",
            "|                                                               7     1     1   |",
            "+-------------------------------------------------------------------------------+",
        ]

    @pytest.mark.parametrize(
        ("mebibytes", "printed"),
        [(4864, "4.75"), (9856, "9.62"), (19968, "19.50"), (40192, "39.25"), (80896, "79.00")],
    )
    def test_gibibytes_are_those_of_real_prints(self, mebibytes, printed):
        row = ProfileRow(gpu=0, profile=profile(memory_mib=mebibytes), free=1)
        assert list(mig_tables.gpu_profiles([row]))[5].partition("/")[2].split()[1] == printed


class TestGpuInstances:
    def test_rows(self):
        rows = [
            InstanceRow(gpu=0, name="1g.5gb", profile_id=19, id=9, span=(6, 1)),
            InstanceRow(gpu=0, name="4g.20gb", profile_id=5, id=12, span=(0, 4)),
        ]
        assert list(mig_tables.gpu_instances(rows)) == [
            "+---------------------------------------------------------+",
            "| GPU instances:                                          |",
            "| GPU   Name               Profile  Instance   Placement  |",
            "|                            ID       ID       Start:Size |",
            "|=========================================================|",
            "|   0  MIG 1g.5gb            19        9          6:1     |",
            "+---------------------------------------------------------+",
            "|   0  MIG 4g.20gb            5       12          0:4     |",
            "+---------------------------------------------------------+",
        ]


class TestComputeProfiles:
    def test_rows_and_the_mark_of_the_whole(self):
        part = profile(id=0, name="1c.3g.20gb", instances=3, copy_engines=3, decoders=2)
        whole = profile(
            id=2, name="3g.20gb", instances=1, multiprocessors=42, copy_engines=3, decoders=2
        )
        rows = [
            ProfileRow(gpu=0, gpu_instance=2, profile=part, free=3),
            ProfileRow(gpu=0, gpu_instance=2, profile=whole, free=1, is_whole=True),
        ]
        printed = "\n".join(mig_tables.compute_profiles(rows)) + "\n"
        assert printed == COMPUTE_PROFILES


class TestComputeInstances:
    def test_rows(self):
        rows = [
            InstanceRow(gpu=0, gpu_instance=1, name="3g.20gb", profile_id=2, id=0, span=(0, 3)),
            InstanceRow(gpu=0, gpu_instance=2, name="1c.3g.20gb", profile_id=0, id=1, span=(1, 1)),
        ]
        assert list(mig_tables.compute_instances(rows)) == [
            "+--------------------------------------------------------------------+",
            "| Compute instances:                                                 |",
            "| GPU     GPU       Name             Profile   Instance   Placement  |",
            "|       Instance                       ID        ID       Start:Size |",
            "|         ID                                                         |",
            "|====================================================================|",
            "|   0      1       MIG 3g.20gb          2         0          0:3     |",
            "+--------------------------------------------------------------------+",
            "|   0      2       MIG 1c.3g.20gb       0         1          1:1     |",
            "+--------------------------------------------------------------------+",
        ]


class TestPlacements:
    def test_one_and_several(self):
        spans = [(0, 2), (2, 2), (4, 2)]
        assert mig_tables.placements(0, 14, spans) == "GPU  0 Profile ID 14 Placements: {0,2,4}:2"
        assert mig_tables.placements(7, 5, [(0, 4)]) == "GPU  7 Profile ID  5 Placement : {0}:4"
