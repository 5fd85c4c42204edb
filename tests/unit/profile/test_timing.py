"""One launch timed without a program: what is run, what is refused, at which clock."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.kernels import HEADER
from va100.driver.checked import CheckedModule
from va100.errors import LaunchError, OutOfResources
from va100.gpu.arena import Arena
from va100.perf.memory import Residency
from va100.profile import timing
from va100.profile.arguments import Buffer
from va100.profile.timing import Conditions, Shape, find_kernel, timed
from va100.ptx.parser import parse
from va100.reference.engine import ReferenceEngine
from va100.spec.a100 import A100_SXM4_80GB

DOUBLE = HEADER + """
.visible .entry _Z6doublePf(.param .u64 data)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    .reg .f32 %f<2>;
    .shared .align 4 .b8 box[4096];
    ld.param.u64 %d0, [data];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r0, %r0, %r1, %r2;
    mul.wide.u32 %d1, %r0, 4;
    add.u64 %d1, %d0, %d1;
    ld.global.f32 %f0, [%d1];
    add.f32 %f0, %f0, %f0;
    st.global.f32 [%d1], %f0;
    ret;
}
"""  # fmt: skip
SPIN = HEADER + ".visible .entry idle()\n{\n    ret;\n}\n"


def run(text=DOUBLE, kernel="double", grid=4, block=64, given=None, shared_bytes=0, **conditions):
    given = [Buffer(4 * 4 * 64)] if given is None else given
    shape = Shape(grid=grid, block=block, dynamic_shared_bytes=shared_bytes)
    wanted = Conditions(**{"chip": A100_SXM4_80GB} | conditions)
    return timed(ReferenceEngine(), text, kernel, shape, given, wanted)


class TestTimed:
    def test_a_launch_is_told_in_full(self):
        launch = run(shared_bytes=512)
        assert (launch.name, launch.grid.size, launch.block.size) == ("double", 4, 64)
        assert launch.counters["global_load_bytes"] == 4 * 4 * 64
        assert launch.counters["footprint_bytes"] == 4 * 4 * 64
        assert (launch.shared_bytes, launch.dynamic_shared_bytes) == (4096 + 512, 512)
        low, high = launch.time_s_band
        assert 1e-6 < low < launch.time_s < high < 1e-5
        idle_w = A100_SXM4_80GB.measured.idle_w
        assert launch.record()["energy_j"] > idle_w * launch.time_s
        assert launch.clock_hz == A100_SXM4_80GB.boost_clock_hz

    def test_a_slower_clock_takes_longer(self):
        assert run(clock_hz=600e6).time_s > run().time_s

    def test_arrays_receive_what_was_written_where_it_is_asked_for(self):
        array = np.ones(256, np.float32)
        run(given=[array])
        assert array.sum() == 256
        run(given=[array], copy_back=True)
        assert array.sum() == 512

    def test_all_memory_is_given_back(self):
        before = Arena().free_bytes()
        run()
        with pytest.raises(TypeError):
            run(given=["x"])
        assert Arena().free_bytes() == before

    def test_data_that_is_in_l2_takes_no_longer(self):
        count = 1 << 12
        shape = {"grid": count // 256, "block": 256, "given": [Buffer(4 * count)]}
        cold, warm = run(**shape), run(**shape, residency=Residency.L2)
        assert warm.time_s < cold.time_s

    def test_extents_of_up_to_three(self):
        assert run(SPIN, "idle", (2, 3), [4, 2, 2], []).counters["warp_count"] == 6


class TestRefused:
    def test_more_than_an_sm_has_names_the_resource(self):
        with pytest.raises(OutOfResources, match="shared memory") as caught:
            run(shared_bytes=170_000)
        assert caught.value.limit == A100_SXM4_80GB.sm.shared_block_optin_bytes
        with pytest.raises(OutOfResources, match="threads a CTA"):
            run(block=(32, 64))

    @pytest.mark.parametrize(
        ("shape", "error"),
        [
            ({"grid": 0}, LaunchError), ({"grid": (1, 70_000)}, LaunchError),
            ({"block": 2048}, LaunchError), ({"block": (1, 1, 65)}, LaunchError),
            ({"grid": (1, 2, 3, 4)}, ValueError), ({"grid": ()}, ValueError),
            ({"block": (1.5,)}, TypeError), ({"shared_bytes": -1}, ValueError),
        ],
    )  # fmt: skip
    def test_shapes_that_no_launch_has(self, shape, error):
        with pytest.raises(error):
            run(**shape)

    def test_a_kernel_that_is_refused_is_not_run(self, monkeypatch):
        refused = CheckedModule(parse(SPIN, "k.ptx"), {"idle": "va100 has no f, which it calls"})
        monkeypatch.setattr(timing, "checked_module", lambda text, name: refused)
        with pytest.raises(LaunchError, match="kernel idle: va100 has no f, which it calls"):
            run(SPIN, "idle", given=[])


class TestFindKernel:
    MODULE = parse(
        HEADER
        + "".join(
            f".visible .entry {name}()\n{{\n    ret;\n}}\n"
            for name in ("_Z3addILi4EEvv", "_Z3addILi8EEvv", "_ZN2ns3mulEv", "plain")
        ),
        "many.ptx",
    )

    @pytest.mark.parametrize(
        ("name", "found"),
        [
            ("_Z3addILi8EEvv", "_Z3addILi8EEvv"), ("add<4>", "_Z3addILi4EEvv"),
            ("ns::mul", "_ZN2ns3mulEv"), ("mul", "_ZN2ns3mulEv"), ("plain", "plain"),
        ],
    )  # fmt: skip
    def test_by_any_of_its_names(self, name, found):
        assert find_kernel(self.MODULE, name).name == found

    def test_none_or_several_are_told(self):
        with pytest.raises(ValueError, match="add leaves a choice among add<4>, add<8>"):
            find_kernel(self.MODULE, "add")
        with pytest.raises(ValueError, match=r"sub is none of add<4>, add<8>, ns::mul, plain"):
            find_kernel(self.MODULE, "sub")
