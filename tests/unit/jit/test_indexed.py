"""Accesses by base and 32-bit indices: right values, and faults at the very lane that is wrong.

The first warp of each launch makes only legal accesses, so that the second one meets an
allocation that is remembered already.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tests.helpers.engines import Loaded, load, pack
from tests.helpers.kernels import kernel
from va100 import errors
from va100.gpu.arena import Arena
from va100.jit.engine import JitEngine
from va100.jit.indexed import MOST_SHIFT

TABLE_BYTES = 4096
KINDS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
REGISTER = {8: "%r20", 16: "%r20", 32: "%r20", 64: "%d20"}


@dataclass(frozen=True)
class Form:
    """How a kernel gets from an index to an address."""

    bits: int
    shift: int
    signed: bool

    @property
    def size(self) -> int:
        return self.bits // 8

    @property
    def middle(self) -> int:
        """Where the base points, in the table: signed indices go both ways."""
        return TABLE_BYTES // 2 if self.signed else 0

    @property
    def legal(self) -> np.ndarray:
        """All indices of aligned places inside the table."""
        scale = 1 << self.shift
        least = -(self.middle // scale)
        places = np.arange(least, (TABLE_BYTES - self.middle) // scale + 1, dtype=np.int64)
        offsets = self.middle + places * scale
        inside = (offsets >= 0) & (offsets + self.size <= TABLE_BYTES)
        return places[inside & (offsets % self.size == 0)]

    def address(self) -> str:
        """PTX that leaves the address in %d9; the index is %r10, the base %d61."""
        kind = "s32" if self.signed else "u32"
        return f"mul.wide.{kind} %d8, %r10, {1 << self.shift};\nadd.s64 %d9, %d61, %d8;"

    def access(self, verb: str) -> str:
        register = REGISTER[self.bits]
        if verb == "ld":
            clear = f"mov.b{max(self.bits, 32)} {register}, 7;"
            return f"{clear}\nld.global.u{self.bits} {register}, [%d9];"
        return f"st.global.u{self.bits} [%d9], {register};"


FORMS = [
    Form(bits, shift, signed)
    for bits in KINDS
    for shift in sorted({0, bits.bit_length() - 4, 3, 5, MOST_SHIFT})
    for signed in (False, True)
]


def _module(form: Form, verb: str, *, guard: bool, arena: Arena) -> Loaded:
    """``out[i] = table[index[i]]`` or ``table[index[i]] = i``, by odd threads only if guarded."""
    register = REGISTER[form.bits]
    mov = f"mov.u32 {register}, %r3;" if form.bits < 64 else f"cvt.u64.u32 {register}, %r3;"
    wide = f"cvt.u64.u32 %d20, {register};" if form.bits < 64 else ""
    body = f"""
    add.s64 %d1, %d62, %d0;
    ld.global.u32 %r10, [%d1];
    {form.address()}
    {"and.b32 %r11, %r3, 1; setp.eq.u32 %p0, %r11, 0; @%p0 bra SKIP;" if guard else ""}
    {mov if verb == "st" else ""}
    {form.access(verb)}
    {wide if verb == "ld" else ""}
    mul.wide.u32 %d2, %r3, 8;
    add.s64 %d2, %d60, %d2;
    {"st.global.u64 [%d2], %d20;" if verb == "ld" else ""}
SKIP:
    ret;
"""
    return load(kernel("test", "u64 u64 u64", body), arena)


def _run(form: Form, loaded: Loaded, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    table = np.random.default_rng(1).integers(0, 256, TABLE_BYTES, dtype=np.uint8)
    out, place = loaded.buffer(np.zeros(64, np.uint64)), loaded.buffer(table)
    indices = loaded.buffer(index.astype(np.int64).astype(np.uint32))
    base = place + form.middle
    loaded.run(JitEngine(workers=1), "test", (1,), (64,), pack(out, base, indices))
    return loaded.read(out, np.uint64, 64), loaded.read(place, np.uint8, TABLE_BYTES)


def _expected(form: Form, index: np.ndarray, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    table = np.random.default_rng(1).integers(0, 256, TABLE_BYTES, dtype=np.uint8)
    offsets = form.middle + (index << form.shift)
    read = np.zeros(64, np.uint64)
    for i in lanes:
        read[i] = table[offsets[i] : offsets[i] + form.size].view(KINDS[form.bits])[0]
    for i in lanes:
        value = np.array([i], KINDS[form.bits])
        table[offsets[i] : offsets[i] + form.size] = value.view(np.uint8)
    return read, table


@pytest.mark.parametrize("guard", [False, True], ids=["all", "odd"])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_values(arena: Arena, form: Form, guard: bool) -> None:
    rng = np.random.default_rng(form.bits + form.shift)
    legal = form.legal
    shuffled = rng.choice(legal, 64)
    side_by_side = legal[np.arange(64) % len(legal)]
    rows = np.concatenate([legal[np.arange(16) % len(legal)]] * 2 + [shuffled[:32]])
    lanes = np.arange(64)[1::2] if guard else np.arange(64)
    for verb in ("ld", "st"):
        loaded = _module(form, verb, guard=guard, arena=arena)
        for index in (shuffled, side_by_side, rows):
            kept = index.copy()
            if guard:
                kept[::2] = 2**31 - 5  # idle lanes may hold anything
            read, table = _run(form, loaded, kept)
            want_read, want_table = _expected(form, index, lanes)
            if verb == "ld":
                np.testing.assert_array_equal(read, want_read)
            else:
                np.testing.assert_array_equal(table, want_table)
        loaded.close()


@pytest.mark.parametrize("verb", ["ld", "st"])
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_one_wrong_lane(arena: Arena, form: Form, verb: str) -> None:
    rng = np.random.default_rng(form.bits * 8 + form.shift)
    legal = form.legal
    wrong = [legal[-1] + 1, 2**31 - 1, 2**31 if not form.signed else -(2**31)]
    if form.signed:
        wrong.append(legal[0] - 1)
    else:
        wrong.append(2**32 - 1)
    loaded = _module(form, verb, guard=False, arena=arena)
    for bad in wrong:
        index = rng.choice(legal, 64)
        lane = int(rng.integers(32, 64))
        index[lane] = bad
        with pytest.raises((errors.IllegalAddress, errors.MisalignedAddress)) as caught:
            _run(form, loaded, index)
        assert caught.value.thread == (lane, 0, 0)
        assert caught.value.size == form.size
    loaded.close()


def test_misaligned_lane(arena: Arena) -> None:
    form = Form(bits=32, shift=0, signed=False)
    index = np.arange(64) * 4
    index[45] = 46
    loaded = _module(form, "ld", guard=False, arena=arena)
    try:
        with pytest.raises(errors.MisalignedAddress) as caught:
            _run(form, loaded, index)
    finally:
        loaded.close()
    assert caught.value.thread == (45, 0, 0)


@pytest.mark.parametrize("step", [0, 4], ids=["one place", "consecutive"])
def test_what_was_freed_is_not_remembered(arena: Arena, step: int) -> None:
    """A site that went to an allocation before must not go there once it is free."""
    body = f"mul.wide.u32 %d8, %r3, {step}; add.s64 %d9, %d61, %d8;\n"
    body += "ld.global.u32 %r20, [%d9]; add.s64 %d1, %d60, %d0; st.global.u32 [%d1], %r20; ret;"
    loaded = load(kernel("test", "u64 u64", body), arena)
    engine = JitEngine(workers=1)
    out = loaded.buffer(np.zeros(32, np.uint32))
    place = arena.upload(np.full(64, 5, np.uint32))
    loaded.run(engine, "test", (1,), (32,), pack(out, place))
    np.testing.assert_array_equal(loaded.read(out, np.uint32, 32), 5)
    arena.free(place)
    with pytest.raises(errors.IllegalAddress):
        loaded.run(engine, "test", (1,), (32,), pack(out, place))
    loaded.close()


def test_memory_freed_by_the_kernel_itself(arena: Arena) -> None:
    before = """
.extern .func (.param .b64 r) malloc(.param .b64 a);
.extern .func free(.param .b64 a);
"""
    body = """
    mov.u32 %r20, 0;
    setp.ne.u32 %p0, %r3, 0;
    @%p0 bra END;
    { .param .b64 a; .param .b64 r; st.param.b64 [a], 512;
      call (r), malloc, (a); ld.param.b64 %d20, [r]; }
AGAIN:
    ld.u32 %r21, [%d20];
    setp.eq.u32 %p1, %r20, 1;
    @%p1 bra END;
    mov.u32 %r20, 1;
    { .param .b64 a; st.param.b64 [a], %d20; call free, (a); }
    bra AGAIN;
END:
    ret;
"""
    loaded = load(kernel("test", "u64", body, before=before), arena)
    try:
        out = loaded.buffer(np.zeros(32, np.uint32))
        with pytest.raises(errors.IllegalAddress):
            loaded.run(JitEngine(workers=1), "test", (1,), (32,), pack(out))
    finally:
        loaded.close()


def test_pointers_to_many_places(arena: Arena) -> None:
    """A site whose every access goes elsewhere stays right, however often it misses."""
    places = [arena.upload(np.full(64, i, np.uint32)) for i in range(48)]
    body = """
    mov.u32 %r20, 0;
    mov.u32 %r21, 0;
NEXT:
    mul.wide.u32 %d8, %r20, 8; add.s64 %d8, %d61, %d8;
    ld.global.u64 %d9, [%d8];
    add.s64 %d9, %d9, %d0;
    ld.global.u32 %r22, [%d9];
    add.u32 %r21, %r21, %r22;
    add.u32 %r20, %r20, 1;
    setp.lt.u32 %p0, %r20, 48;
    @%p0 bra NEXT;
    add.s64 %d1, %d60, %d0; st.global.u32 [%d1], %r21; ret;
"""
    loaded = load(kernel("test", "u64 u64", body), arena)
    try:
        out = loaded.buffer(np.zeros(64, np.uint32))
        table = loaded.buffer(np.array(places, np.uint64))
        loaded.run(JitEngine(workers=1), "test", (1,), (64,), pack(out, table))
        np.testing.assert_array_equal(loaded.read(out, np.uint32, 64), sum(range(48)))
    finally:
        loaded.close()
        for place in places:
            arena.free(place)
