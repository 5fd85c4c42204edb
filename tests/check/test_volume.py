"""Many hazards of two lines are one finding: counted, with one witness, and never a flood."""

from __future__ import annotations

import numpy as np

from tests.helpers.checking import bench
from tests.helpers.kernels import HEADER
from va100.check.report import Outcome, report_text

CTAS, THREADS, ROUNDS = 40, 256, 20
TEXT = f"""{HEADER}
.visible .entry squeeze(.param .u64 out)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .b64 %d<3>;
    .shared .align 4 .b8 s[1024];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, s;
    shl.b32 %r2, %r0, 2;
    add.u32 %r2, %r1, %r2;
    xor.b32 %r3, %r0, 255;
    shl.b32 %r3, %r3, 2;
    add.u32 %r3, %r1, %r3;
    mov.u32 %r4, 0;
AGAIN:
    st.shared.u32 [%r2], %r4;
    ld.shared.u32 %r5, [%r3];
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p0, %r4, {ROUNDS};
    @%p0 bra AGAIN;
    ret;
}}
"""


def test_hazards_of_two_lines_are_one_finding() -> None:
    with bench(TEXT, ["racecheck"]) as made:
        made.run("squeeze", (CTAS,), (THREADS,), made.buffer(4))
        (found,) = made.found()
    assert found.kind == "race"
    assert found.count > CTAS * THREADS
    assert {found.first.what, found.second.what} == {"read", "write"}
    assert found.first.cta == found.second.cta
    assert found.first.thread != found.second.thread
    outcome = Outcome(tools=("racecheck",), findings=[found])
    assert len(report_text(outcome).splitlines()) < 12
    assert np.isin(found.first.thread[0], range(THREADS))
