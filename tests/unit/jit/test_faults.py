"""Each kind of fault: what it says, and that the process and the next launch live on."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from tests.helpers.engines import load, pack
from tests.helpers.kernels import kernel
from tests.unit.jit.conftest import Run
from va100 import errors
from va100.gpu.arena import Arena
from va100.jit.engine import JitEngine

RUNTIME = """
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func (.param .b64 r) malloc(.param .b64 a);
.extern .func free(.param .b64 a);
.extern .func __assertfail(
    .param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 message[6] = {120, 32, 62, 32, 48, 0};
.global .align 1 .b8 file[5] = {97, 46, 99, 117, 0};
"""
OUT = np.zeros(64, np.uint32)
WILD = (
    0, 4, 8, 0x1000, 0x7FFF_FFFF_FFF8, 0x8000_0000_0000, 0xFFFF_FFFF_FFFF_FFF8, 0x2000_0000_0000,
    0x1FFF_FFFF_FFF8, 0x23FF_FFFF_FFF8, 0x2400_0000_0000, 0x2A00_0000_0000, 0x7F00_0000_0000,
)  # fmt: skip


def _works_again(run: Run) -> None:
    (got,) = run("u64", "add.s64 %d1, %d60, %d0; st.global.u32 [%d1], %r3; ret;", [OUT])
    np.testing.assert_array_equal(got[:32], np.arange(32))


def test_illegal_address_names_everything(run: Run) -> None:
    body = """
    setp.ne.u32 %p0, %r3, 37;
    @%p0 bra SKIP;
    mov.u32 %r4, %ctaid.x;
    setp.eq.u32 %p1, %r4, 1;
    @%p1 st.global.u64 [%d60+1073741824], %d0;
SKIP:
    ret;
"""
    with pytest.raises(errors.IllegalAddress) as caught:
        run("u64", body, [OUT], grid=(3,), block=(64,))
    fault = caught.value
    assert (fault.kernel, fault.cta, fault.thread) == ("test", (1, 0, 0), (37, 0, 0))
    assert (fault.space, fault.size) == ("global", 8)
    assert fault.instruction == "@%p1 st.global.u64 [%d60+1073741824], %d0;"
    assert fault.line > 0
    # Whose end is nearest depends on what else lives.
    assert re.search(r"\d+ bytes (past the end of|before) the nearest", fault.nearest)
    _works_again(run)


FORMS = [
    (space, form)
    for space in ("", ".global", ".shared", ".local")
    for form in ("ld", "st", "ldv2", "stv2", "atom", "red")
    if space != ".local" or form not in ("atom", "red")
]


@pytest.mark.parametrize(("space", "form"), FORMS)
def test_wild_addresses(arena: Arena, space: str, form: str) -> None:
    text = {
        "ld": f"ld{space}.u32 %r5, [%d8];",
        "st": f"st{space}.u32 [%d8], %r3;",
        "ldv2": f"ld{space}.v2.u32 {{%r5, %r6}}, [%d8];",
        "stv2": f"st{space}.v2.u32 [%d8], {{%r3, %r3}};",
        "atom": f"atom{space}.add.u32 %r5, [%d8], %r3;",
        "red": f"red{space}.add.u32 [%d8], %r3;",
    }[form]
    places = (  # one place, consecutive places, and places with a gap
        "mov.u64 %d8, %d61;",
        "add.s64 %d8, %d61, %d0;",
        "xor.b64 %d7, %d0, 16; add.s64 %d8, %d61, %d7;",
    )
    engine = JitEngine(workers=1)
    for place, guard in itertools.product(places, ("", "@%p0 ")):
        body = f"mov.u32 %r5, 0; setp.eq.u32 %p0, %r3, 6;\n{place}\n{guard}{text}\n"
        loaded = load(kernel("test", "u64 u64", f"{body}st.global.u32 [%d60], %r5;\nret;"), arena)
        try:
            out = loaded.buffer(OUT)
            for address in WILD:
                with pytest.raises((errors.IllegalAddress, errors.MisalignedAddress)):
                    loaded.run(engine, "test", (1,), (32,), pack(out, np.uint64(address)))
        finally:
            loaded.close()


@pytest.mark.parametrize("space", ["global", "shared", "local", "generic"])
def test_misaligned(run: Run, space: str) -> None:
    start = {
        "global": "add.u64 %d8, %d60, 2;",
        "generic": "add.u64 %d8, %d60, 2;",
        "shared": "mov.u64 %d8, 2;",
        "local": "mov.u64 %d8, 2;",
    }[space]
    suffix = "" if space == "generic" else f".{space}"
    with pytest.raises(errors.MisalignedAddress) as caught:
        run(
            "u64",
            f"{start}\nld{suffix}.u32 %r5, [%d8];\nst.global.u32 [%d60], %r5;\nret;",
            [OUT],
            before=".shared .align 4 .b8 win[64];",
        )
    assert caught.value.space == space
    assert caught.value.size == 4


@pytest.mark.parametrize("guard", ["", "@%p0 "])
def test_trap(run: Run, guard: str) -> None:
    body = f"setp.eq.u32 %p0, %r3, 11;\n{guard}trap;\nst.global.u32 [%d60], 5;\nret;"
    with pytest.raises(errors.TrapExecuted) as caught:
        run("u64", body, [OUT])
    assert caught.value.thread == ((11 if guard else 0), 0, 0)
    assert caught.value.instruction.endswith("trap;")
    _works_again(run)


def test_trap_that_no_lane_reaches(run: Run) -> None:
    body = "setp.eq.u32 %p0, %r3, 99;\n@%p0 trap;\nst.global.u32 [%d60], 5;\nret;"
    (got,) = run("u64", body, [OUT])
    assert got[0] == 5


def test_assertion(run: Run) -> None:
    body = """
    setp.ne.u32 %p0, %r3, 3;
    @%p0 bra FINE;
    mov.u64 %d5, message;
    mov.u64 %d6, file;
    {
    .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;
    st.param.b64 [m], %d5;
    st.param.b64 [f], %d6;
    st.param.b32 [l], 42;
    st.param.b64 [n], %d6;
    st.param.b64 [s], 1;
    call __assertfail, (m, f, l, n, s);
    }
FINE:
    ret;
"""
    with pytest.raises(errors.AssertFailed) as caught:
        run("u64", body, [OUT], before=RUNTIME)
    assert caught.value.condition == "x > 0"
    assert (caught.value.file, caught.value.line) == ("a.cu", 42)
    assert caught.value.thread == (3, 0, 0)


def test_indirect_call_to_nowhere(run: Run) -> None:
    body = """
    proto: .callprototype _ ();
    call %d60, (), proto;
    ret;
"""
    with pytest.raises(errors.IllegalInstruction, match="no function of the module"):
        run("u64", body, [OUT])


@pytest.mark.parametrize(
    ("text", "says"),
    [("bar.sync %r61;", "barrier number above 15"), ("bar.sync 1, %r61;", "multiple of the warp")],
)
def test_barrier_misuse(run: Run, text: str, says: str) -> None:
    with pytest.raises(errors.IllegalInstruction, match=says):
        run("u64 u32", f"{text}\nret;", [OUT, np.uint32(33)])


def test_barrier_that_cannot_fill(run: Run) -> None:
    with pytest.raises(errors.Deadlock, match=r"barrier 2.*32 of 96") as caught:
        run("u64", "bar.sync 2, 96;\nret;", [OUT], block=(32,))
    assert caught.value.instruction == "bar.sync 2, 96;"
    assert caught.value.line > 0
    _works_again(run)


def test_divergent_barrier(run: Run) -> None:
    body = """
    setp.lt.u32 %p0, %r3, 9;
    @%p0 bra A;
    bar.sync 0;
    bra B;
A:
    bar.sync 1;
B:
    ret;
"""
    with pytest.raises(errors.Deadlock, match="inside a warp"):
        run("u64", body, [OUT])


def test_membermask_that_names_lanes_which_never_come(run: Run) -> None:
    body = """
    setp.lt.u32 %p0, %r3, 9;
    @!%p0 bra ELSEWHERE;
    vote.sync.any.pred %p1, %p0, 0xffffffff;
    ret;
ELSEWHERE:
    bar.sync 0;
    ret;
"""
    with pytest.raises(errors.Deadlock):
        run("u64", body, [OUT])


@pytest.mark.parametrize("first", ["", "bar.sync 0;"], ids=["direct", "fiber"])
def test_too_much_local_memory_is_refused(run: Run, first: str) -> None:
    frame = ".local .align 4 .b8 big[268435456]; .reg .u64 %q;"
    body = f"{{ {frame}\n{first}\nmov.u64 %q, big;\nst.local.u32 [%q], 1;\n}}\nret;"
    with pytest.raises(errors.LaunchError, match="out of memory"):
        run("u64", body, [OUT], block=(1024,))


@pytest.mark.parametrize("where", ["parameter", "global", "wild", "twice"])
def test_free_of_what_malloc_did_not_give(run: Run, where: str) -> None:
    place = {
        "parameter": "mov.u64 %d5, %d60;",
        "global": "mov.u64 %d5, message;",
        "wild": "mov.u64 %d5, 0x123456789000;",
        "twice": """
    { .param .b64 n; .param .b64 r; st.param.b64 [n], 64; call (r), malloc, (n);
    ld.param.b64 %d5, [r]; }
    { .param .b64 a; st.param.b64 [a], %d5; call free, (a); }""",
    }[where]
    body = f"""
    setp.ne.u32 %p0, %r3, 0;
    @%p0 ret;
    {place}
    {{ .param .b64 a; st.param.b64 [a], %d5; call free, (a); }}
    ret;
"""
    with pytest.raises(errors.IllegalAddress):
        run("u64", body, [OUT], before=RUNTIME)


def test_malloc_gives_each_lane_its_own_and_free_takes_it(run: Run) -> None:
    body = """
    cvt.u64.u32 %d7, %r3;
    { .param .b64 n; .param .b64 r; st.param.b64 [n], 16; call (r), malloc, (n);
    ld.param.b64 %d5, [r]; }
    st.u32 [%d5+12], %r3;
    bar.warp.sync -1;
    ld.u32 %r6, [%d5+12];
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], %r6;
    { .param .b64 a; st.param.b64 [a], %d5; call free, (a); }
    { .param .b64 n; .param .b64 r; st.param.b64 [n], 0; call (r), malloc, (n);
    ld.param.b64 %d5, [r]; }
    cvt.u32.u64 %r7, %d5;
    st.global.u32 [%d1+128], %r7;
    ret;
"""
    (got,) = run("u64", body, [OUT], before=RUNTIME)
    np.testing.assert_array_equal(got, [*range(32), *[0] * 32])


def test_freed_memory_is_illegal(run: Run) -> None:
    body = """
    { .param .b64 n; .param .b64 r; st.param.b64 [n], 600; call (r), malloc, (n);
    ld.param.b64 %d5, [r]; }
    { .param .b64 a; st.param.b64 [a], %d5; call free, (a); }
    ld.u32 %r6, [%d5];
    st.global.u32 [%d60], %r6;
    ret;
"""
    with pytest.raises(errors.IllegalAddress):
        run("u64", body, [OUT], before=RUNTIME)


def test_division_never_traps_the_host(run: Run) -> None:
    lines = ["mov.u64 %d9, 0;"]
    for width, name, top in (
        (16, "%h", 0x8000), (32, "%r", 0x80000000), (64, "%d", 0x8000000000000000),
    ):  # fmt: skip
        lines.append(f"mov.u{width} {name}11, {top};")
        lines.append(f"selp.b{width} {name}12, 0, -1, %p2;")
        for op in ("div.s", "div.u", "rem.s", "rem.u"):
            for divisor in (f"{name}12", "0", "-1"):
                lines.append(f"{op}{width} {name}13, {name}11, {divisor};")
                lines.append(f"@%p1 {op}{width} {name}14, {name}11, {divisor};")
    text = "\n".join(lines)
    body = f"""
    setp.lt.u32 %p1, %r3, 5;
    setp.eq.u32 %p2, %r3, 9;
    {text}
    setp.lt.u32 %p3, %r3, 20;
    @%p3 bra Q;
    {text}
Q:
    div.s32 %r13, %r11, %r12;
    add.s64 %d1, %d60, %d0;
    st.global.u32 [%d1], %r13;
    ret;
"""
    (got,) = run("u64", body, [OUT])
    lanes = [k for k in range(32) if k != 9]
    assert (got[lanes] == 0x80000000).all()


def test_deadlock_blames_a_thread_that_exists(run: Run) -> None:
    body = "bar.sync 1, 1024;\nret;"
    with pytest.raises(errors.Deadlock) as caught:
        run("u64", body, [OUT], block=(7, 3, 2))
    x, y, z = caught.value.thread
    assert (x < 7, y < 3, z < 2) == (True, True, True)


@pytest.mark.parametrize("spin", ["ld.volatile.global.u32 %r20, [%d60];", "nanosleep.u32 20;"])
def test_a_spinning_warp_is_told_with_its_line(run: Run, spin: str) -> None:
    body = f"""
    mov.u32 %r21, 0;
    mov.u32 %r20, 0;
WAIT:
    {spin}
    setp.eq.u32 %p0, %r20, %r21;
    @%p0 bra WAIT;
    ret;
"""
    with pytest.raises(errors.Deadlock) as caught:
        run("u64", body, [OUT])
    assert caught.value.instruction == spin
    assert caught.value.line > 0
