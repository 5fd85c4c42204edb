"""Random PTX kernels with structured, divergent control flow, whose result is well defined.

Every thread owns a slot of global, shared and local memory; lanes exchange only where all of a
warp are together.  So any engine must leave the same memory, whatever order it takes.
"""

from __future__ import annotations

import numpy as np

from tests.helpers.kernels import HEADER

INTEGERS = 12
FLOATS = 6
SLOTS = 8
"""Words a thread owns in each kind of memory."""


class Program:
    """Grows one kernel from a seeded generator."""

    def __init__(self, seed: int, size: int = 40) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.labels = 0
        self.loops = 0
        self._block(size, depth=0, together=True)

    def text(self) -> str:
        """The module."""
        body = "\n".join(f"    {line}" if line[-1] != ":" else line for line in self.lines)
        stores = "\n".join(
            f"    st.global.b32 [%d3+{4 * i}], {name};"
            for i, name in enumerate(
                [f"%r{i}" for i in range(INTEGERS)] + [f"%f{i}" for i in range(FLOATS)]
            )
        )
        return f"""{HEADER}
.visible .entry program(.param .u64 source, .param .u64 target)
{{
    .reg .pred %p<8>;
    .reg .b32 %r<32>;
    .reg .f32 %f<8>;
    .reg .b64 %d<8>;
    .shared .align 16 .b8 box[{256 * SLOTS * 4}];
    .local .align 16 .b8 own[{SLOTS * 4}];
    mov.u32 %r20, %tid.x;
    mov.u32 %r21, %ctaid.x;
    mov.u32 %r22, %ntid.x;
    mad.lo.u32 %r23, %r21, %r22, %r20;
    ld.param.u64 %d1, [source];
    mul.wide.u32 %d2, %r23, {4 * SLOTS};
    add.s64 %d1, %d1, %d2;
    ld.param.u64 %d3, [target];
    mul.wide.u32 %d2, %r23, {4 * (INTEGERS + FLOATS)};
    add.s64 %d3, %d3, %d2;
    mov.u32 %r24, box;
    mad.lo.u32 %r24, %r20, {4 * SLOTS}, %r24;
    mov.u64 %d4, own;
    mov.u32 %r0, %r20;
    mov.u32 %r1, %r21;
    mov.u32 %r2, %laneid;
    mov.u32 %r3, 7;
{self._loads()}
{body}
{stores}
    ret;
}}
"""

    def _loads(self) -> str:
        lines = [f"    ld.global.u32 %r{4 + i}, [%d1+{4 * i}];" for i in range(SLOTS)]
        lines += [f"    cvt.rn.f32.s32 %f{i}, %r{4 + i};" for i in range(FLOATS)]
        lines += [f"    st.shared.u32 [%r24+{4 * i}], %r{4 + i};" for i in range(SLOTS)]
        lines += [f"    st.local.u32 [%d4+{4 * i}], %r{4 + i};" for i in range(SLOTS)]
        return "\n".join(lines)

    def _block(self, size: int, *, depth: int, together: bool) -> None:
        while size > 0:
            kind = self.rng.random()
            if depth < 3 and kind < 0.12:
                inner = int(self.rng.integers(2, 8))
                self._branch(inner, depth, together=together)
                size -= inner
            elif depth < 3 and kind < 0.2:
                inner = int(self.rng.integers(2, 6))
                self._loop(inner, depth, together=together)
                size -= inner
            elif kind < 0.3:
                self._memory()
            elif together and kind < 0.38:
                self._exchange()
            elif kind < 0.6:
                self._floating()
            else:
                self._integer()
            size -= 1

    def _branch(self, size: int, depth: int, *, together: bool) -> None:
        """An if, perhaps with an else; the condition may be the same in a whole CTA."""
        uniform = together and self.rng.random() < 0.3
        self.labels += 1
        other, done = f"ELSE{self.labels}", f"DONE{self.labels}"
        if uniform:
            self.lines.append(f"and.b32 %r16, %r21, {int(self.rng.integers(1, 4))};")
            self.lines.append("setp.ne.u32 %p0, %r16, 0;")
        else:
            self._condition("%p0")
        self.lines.append(f"@{self._negation()}%p0 bra {other};")
        self._block(size, depth=depth + 1, together=uniform)
        if self.rng.random() < 0.5:
            self.lines.append(f"bra {done};")
            self.lines.append(f"{other}:")
            self._block(size // 2, depth=depth + 1, together=uniform)
            self.lines.append(f"{done}:")
        else:
            self.lines.append(f"{other}:")

    def _loop(self, size: int, depth: int, *, together: bool) -> None:
        """A counted loop, whose count may differ from lane to lane, perhaps left early."""
        uniform = together and self.rng.random() < 0.4
        self.labels += 1
        top, done = f"LOOP{self.labels}", f"DONE{self.labels}"
        counter = f"%r{25 + depth}"
        source = "%r21" if uniform else self._integer_register()
        self.lines.append(f"and.b32 {counter}, {source}, 3;")
        self.lines.append(f"{top}:")
        self._block(size, depth=depth + 1, together=uniform)
        if not uniform and self.rng.random() < 0.4:
            self._condition("%p1")
            self.lines.append(f"@%p1 bra {done};")
        self.lines.append(f"sub.u32 {counter}, {counter}, 1;")
        self.lines.append(f"setp.ge.s32 %p2, {counter}, 0;")
        self.lines.append(f"@%p2 bra {top};")
        self.lines.append(f"{done}:")

    def _negation(self) -> str:
        return self.rng.choice(["", "!"])

    def _integer_register(self) -> str:
        return f"%r{self.rng.integers(INTEGERS)}"

    def _float_register(self) -> str:
        return f"%f{self.rng.integers(FLOATS)}"

    def _source(self) -> str:
        if self.rng.random() < 0.25:
            return str(self.rng.choice([0, 1, 2, 3, 5, 8, 31, 32, 255, 1000, 65536, 0x7FFFFFFF]))
        return self._integer_register()

    def _condition(self, predicate: str) -> None:
        compare = self.rng.choice(["lt.u32", "ge.s32", "eq.u32", "ne.s32", "le.s32", "hi.u32"])
        self.lines.append(
            f"setp.{compare} {predicate}, {self._integer_register()}, {self._source()};"
        )

    def _integer(self) -> None:
        text = self.rng.choice([
            "add.u32 D, A, B", "sub.s32 D, A, B", "mul.lo.s32 D, A, B", "mul.hi.u32 D, A, B",
            "mad.lo.u32 D, A, B, A", "and.b32 D, A, B", "or.b32 D, A, B", "xor.b32 D, A, B",
            "shl.b32 D, A, B", "shr.u32 D, A, B", "shr.s32 D, A, B", "min.s32 D, A, B",
            "max.u32 D, A, B", "popc.b32 D, A", "clz.b32 D, A", "brev.b32 D, A", "not.b32 D, A",
            "neg.s32 D, A", "abs.s32 D, A", "sad.u32 D, A, B, A", "bfe.u32 D, A, B, 7",
            "prmt.b32 D, A, A, B", "shf.l.wrap.b32 D, A, A, B", "mul24.lo.s32 D, A, B",
            "bfind.s32 D, A", "rem.u32 D, A, 13", "div.s32 D, A, 7", "cvt.s32.s8 D, A",
            "cvt.u32.u16 D, A", "add.sat.s32 D, A, B", "dp4a.u32.s32 D, A, A, A",
        ])  # fmt: skip
        guard = ""
        if self.rng.random() < 0.15:
            self._condition("%p3")
            guard = f"@{self._negation()}%p3 "
        text = text.replace("D", self._integer_register(), 1)
        head, _, rest = text.partition(", ")
        rest = ", ".join(self._fill(part) for part in rest.split(", "))
        self.lines.append(f"{guard}{head}, {rest};")
        if self.rng.random() < 0.1:
            self._condition("%p4")
            self.lines.append(
                f"selp.u32 {self._integer_register()}, {self._source()}, {self._source()}, %p4;"
            )

    def _fill(self, part: str) -> str:
        if part == "A":
            return self._integer_register()
        return self._source() if part == "B" else part

    def _floating(self) -> None:
        target, a, b, c = (self._float_register() for _ in range(4))
        text = self.rng.choice([
            "add.f32 {0}, {1}, {2}", "sub.f32 {0}, {1}, {2}", "mul.f32 {0}, {1}, {2}",
            "fma.rn.f32 {0}, {1}, {2}, {3}", "min.f32 {0}, {1}, {2}", "max.f32 {0}, {1}, {2}",
            "abs.f32 {0}, {1}", "neg.f32 {0}, {1}", "div.rn.f32 {0}, {1}, {2}",
            "sqrt.rn.f32 {0}, {1}", "add.rz.ftz.f32 {0}, {1}, {2}", "mul.sat.f32 {0}, {1}, {2}",
            "rcp.approx.f32 {0}, {1}", "ex2.approx.ftz.f32 {0}, {1}", "cvt.rmi.f32.f32 {0}, {1}",
            "fma.rp.f32 {0}, {1}, {2}, {3}", "copysign.f32 {0}, {1}, {2}",
        ])  # fmt: skip
        self.lines.append(text.format(target, a, b, c) + ";")
        if self.rng.random() < 0.2:
            self.lines.append(f"cvt.rzi.s32.f32 {self._integer_register()}, {a};")
        if self.rng.random() < 0.2:
            self.lines.append(f"setp.ltu.f32 %p5, {a}, {b};")
            self.lines.append(f"selp.f32 {target}, {b}, {c}, %p5;")

    def _memory(self) -> None:
        """Load or store in the thread's own slots, at a fixed or a computed place."""
        space, base = self.rng.choice([("shared", "%r24"), ("local", "%d4")])
        register = self._integer_register()
        if self.rng.random() < 0.5:
            place = f"{base}+{4 * int(self.rng.integers(SLOTS))}"
        else:
            self.lines.append(f"and.b32 %r16, {self._integer_register()}, {SLOTS - 1};")
            if space == "shared":
                self.lines.append("shl.b32 %r16, %r16, 2;")
                self.lines.append("add.u32 %r17, %r24, %r16;")
                place = "%r17"
            else:
                self.lines.append("mul.wide.u32 %d5, %r16, 4;")
                self.lines.append("add.s64 %d6, %d4, %d5;")
                place = "%d6"
        if self.rng.random() < 0.5:
            self.lines.append(f"st.{space}.u32 [{place}], {register};")
        else:
            self.lines.append(f"ld.{space}.u32 {register}, [{place}];")

    def _exchange(self) -> None:
        target, a = self._integer_register(), self._integer_register()
        mode = self.rng.choice(["up", "down", "bfly", "idx"])
        clamp = 0 if mode == "up" else 31
        text = self.rng.choice([
            f"shfl.sync.{mode}.b32 {target}, {a}, {int(self.rng.integers(32))}, {clamp}, -1;",
            f"redux.sync.add.s32 {target}, {a}, -1;",
            f"vote.sync.ballot.b32 {target}, %p6, -1;",
            f"match.any.sync.b32 {target}, {a}, -1;",
            "bar.sync 0;",
            "bar.warp.sync -1;",
        ])  # fmt: skip
        if "vote" in text:
            self._condition("%p6")
        self.lines.append(text)
