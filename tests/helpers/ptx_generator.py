"""Random structured PTX kernels whose results do not depend on how threads are scheduled.

A kernel is a tree of numbered statements made from a seed; leaving numbers out gives a smaller
kernel that is otherwise the same, which is how a failure is reduced (:func:`reduce_failure`).
Registers come in classes: ``u`` starts uniform, ``a`` affine, ``v`` varying, ``k`` is the same in
all of the CTA for ever, so that what an engine knows about lanes is put to use and to the test.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tests.helpers.engines import load, pack
from tests.helpers.ptx_generator_text import FUNCTIONS, HEADER, PROLOGUE, REGISTERS, spelled
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine

SHAPES = ((32,), (64,), (33,), (100,), (7, 3, 2), (48, 2), (16, 16), (8, 8), (5,), (1,), (96,),
          (4, 4, 4), (32, 3), (128,), (2, 50), (31,))  # fmt: skip
SLOTS = 12
"""Words a thread may write."""
INPUT_WORDS = 4096
ACCUMULATORS = 64


@dataclass(frozen=True)
class Generated:
    """A kernel and its launch."""

    seed: int
    text: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    statements: int
    """How many numbered statements it has."""

    @property
    def threads(self) -> int:
        """Threads of the grid."""
        return int(np.prod(self.grid)) * int(np.prod(self.block))


class _Writer:
    """Writes one kernel."""

    def __init__(self, seed: int, size: int, without: frozenset[int]) -> None:
        self.rng = random.Random(seed)
        self.seed, self.size, self.without = seed, size, without
        self.lines: list[str] = []
        self.ordinal = self.muted = self.labels = self.depth = 0
        self.together = True  # all of the CTA comes here
        self.loops: list[str] = []
        self.block = self.rng.choice(SHAPES)
        self.grid = (self.rng.choice((1, 2, 3)),)
        self.threads = int(np.prod(self.grid)) * int(np.prod(self.block))
        self.unrolling = False

    # ------------------------------------------------------------ pieces

    def emit(self, text: str) -> None:
        if not self.muted:
            self.lines.append(f"    {text}")

    def label(self, name: str) -> None:
        if not self.muted:
            self.lines.append(f"{name}:")

    def fresh(self, stem: str) -> str:
        self.labels += 1
        return f"{stem}{self.labels}"

    def guard(self, chance: float = 0.2) -> str:
        if self.rng.random() >= chance:
            return ""
        return f"@{self.rng.choice(('', '!'))}{self.predicate()} "

    def kind(self) -> str:
        return self.rng.choice("uuaaavv")

    def source(self, kind: str, width: int) -> str:
        """A register a value of this class may be made of, or a literal."""
        if self.rng.random() < 0.2:
            return self.literal(width)
        pools = {"u": "u", "a": "ua", "v": "uav"}[kind]
        pool = self.rng.choice(pools) if self.rng.random() < 0.92 else self.rng.choice("uav")
        return self.register(pool, width)

    def register(self, kind: str, width: int) -> str:
        count = {32: 3, 64: 2, 16: 1}[width]
        return f"%{kind}{width}_{self.rng.randrange(count)}"

    def literal(self, width: int) -> str:
        value = self.rng.choice(
            (0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 63, 64, 100, 255, -1, -2, -8, 0x7FFF,
             0x7FFFFFFF, -0x80000000, 0xFFFFFFF0, 0x10001, self.rng.getrandbits(32))
        )  # fmt: skip
        value &= (1 << width) - 1
        return str(value - (1 << width) if width < 64 and value >> (width - 1) else value)

    def predicate(self, kind: str = "") -> str:
        return f"%p{kind or self.rng.choice('uav')}{self.rng.randrange(2)}"

    def f(self) -> str:
        if self.rng.random() < 0.12:
            return self.rng.choice(("0f3F800000", "0f00000000", "0f80000000", "0f7F800000",
                                    "0fC0490FDB", "0f00000001", "0f7FC00001"))  # fmt: skip
        return f"%f{self.rng.randrange(3)}"

    @property
    def mask(self) -> str:
        return f"%m{self.depth}"

    # ------------------------------------------------------------ statements

    def body(self, count: int) -> None:
        for _ in range(count):
            self.statement()

    def statement(self) -> None:
        number = self.ordinal
        self.ordinal += 1
        gone = number in self.without
        self.muted += gone
        names = list(_STATEMENTS)
        name = self.rng.choices(names, [_STATEMENTS[n][0] for n in names])[0]
        _STATEMENTS[name][1](self)
        self.muted -= gone

    def alu(self) -> None:
        kind, width = self.kind(), self.rng.choice((32, 32, 32, 64, 16))
        target = self.register(kind, width)
        a, b, c = (self.source(kind, width) for _ in range(3))
        n32 = self.source(kind, 32)
        text = spelled(self.rng, width, target, a, b, c, n32)
        self.emit(f"{self.guard()}{text}")

    def wide(self) -> None:
        kind, sign = self.kind(), self.rng.choice("su")
        target, a, b = (self.register(kind, 64), *(self.source(kind, 32) for _ in range(2)))
        if self.rng.random() < 0.6:
            b = self.rng.choice(("4", "8", "1", "12", "-4" if sign == "s" else "2"))
        how = self.rng.randrange(4)
        texts = (
            f"mul.wide.{sign}32 {target}, {a}, {b};",
            f"mad.wide.{sign}32 {target}, {a}, {b}, {self.source(kind, 64)};",
            f"cvt.{sign}64.{sign}32 {target}, {self.register(kind, 32)};",
            f"mul.wide.{sign}16 {self.register(kind, 32)}, {self.register(kind, 16)}, "
            f"{self.source(kind, 16)};",
        )
        self.emit(f"{self.guard()}{texts[how]}")

    def convert(self) -> None:
        kind = self.kind()
        widths = [self.rng.choice((16, 32, 64)) for _ in range(2)]
        to, source = (f"{self.rng.choice('su')}{w}" for w in widths)
        sat = self.rng.choice(("", "", ".sat"))
        if widths[0] == widths[1]:
            sat = ".sat" if to != source else ""
        if self.rng.random() < 0.3:
            source = f"{self.rng.choice('su')}8"
        self.emit(
            f"{self.guard()}cvt{sat}.{to}.{source} {self.register(kind, widths[0])}, "
            f"{self.register(kind, widths[1])};"
        )

    def floating(self) -> None:
        d, a, b, c = f"%f{self.rng.randrange(3)}", self.f(), self.f(), self.f()
        texts = (
            f"add.f32 {d}, {a}, {b};", f"sub.f32 {d}, {a}, {b};", f"mul.f32 {d}, {a}, {b};",
            f"fma.rn.f32 {d}, {a}, {b}, {c};", f"neg.f32 {d}, {a};", f"abs.f32 {d}, {a};",
            f"min.f32 {d}, {a}, {b};", f"max.f32 {d}, {a}, {b};", f"div.rn.f32 {d}, {a}, {b};",
            f"mov.f32 {d}, {a};", f"selp.f32 {d}, {a}, {b}, {self.predicate()};",
            f"mov.b32 {d}, {self.register('v', 32)};",
            f"mov.b32 {self.register('v', 32)}, %f{self.rng.randrange(3)};",
            f"cvt.rn.f32.s32 {d}, {self.register(self.kind(), 32)};",
            f"cvt.rzi.s32.f32 {self.register('v', 32)}, %f{self.rng.randrange(3)};",
            f"add.ftz.f32 {d}, {a}, {b};", f"sqrt.rn.f32 {d}, {a};",
            f"setp.{self.rng.choice(('lt', 'geu', 'nan', 'eq', 'neu'))}.f32 "
            f"{self.predicate('v')}, {a}, {b};",
        )  # fmt: skip
        self.emit(f"{self.guard()}{self.rng.choice(texts)}")

    def compare(self) -> None:
        kind, width = self.kind(), self.rng.choice((32, 32, 64, 16))
        sign = self.rng.choice("sub")
        test = self.rng.choice(
            ("eq", "ne") if sign == "b" else ("eq", "ne", "lt", "le", "gt", "ge")
        )
        target = self.predicate(kind)
        if self.rng.random() < 0.25:
            other = f"%p{kind}{1 - int(target[-1])}"
            target = f"{target}|{other}"
        a, b = self.register(kind, width), self.source(kind, width)
        how, extra = "", ""
        if self.rng.random() < 0.35:
            how = "." + self.rng.choice(("and", "or", "xor"))
            extra = f", {self.rng.choice(('', '!'))}{self.predicate()}"
        if self.rng.random() < 0.15:
            d = self.register(kind, 32)
            self.emit(f"{self.guard()}set.{test}{how}.u32.{sign}{width} {d}, {a}, {b}{extra};")
            return
        self.emit(f"{self.guard()}setp.{test}{how}.{sign}{width} {target}, {a}, {b}{extra};")

    def logic(self) -> None:
        kind = self.kind()
        d, a, b = self.predicate(kind), self.predicate(kind), self.predicate()
        op = self.rng.choice(("and", "or", "xor", "not", "mov"))
        operands = f"{d}, {a}" if op in ("not", "mov") else f"{d}, {a}, {b}"
        self.emit(f"{self.guard()}{op}.pred {operands};")

    def pick(self) -> None:
        kind, width = self.kind(), self.rng.choice((32, 64, 16))
        d, a, b = (self.register(kind, width), self.source(kind, width), self.source(kind, width))
        if self.rng.random() < 0.2 and width == 32:
            self.emit(f"{self.guard()}slct.u32.s32 {d}, {a}, {b}, {self.source(kind, 32)};")
        else:
            self.emit(f"{self.guard()}selp.b{width} {d}, {a}, {b}, {self.predicate()};")

    def carry(self) -> None:
        kind = self.kind()
        a, b, c, d = (self.source(kind, 32) for _ in range(4))
        op = self.rng.choice(("add", "sub"))
        self.emit(f"{op}.cc.u32 {self.register(kind, 32)}, {a}, {b};")
        self.emit(f"{self.guard()}{op}c.u32 {self.register(kind, 32)}, {c}, {d};")

    def pack(self) -> None:
        kind = self.kind()
        wide, a, b = self.register(kind, 64), self.register(kind, 32), self.register(kind, 32)
        if self.rng.random() < 0.5:
            self.emit(f"{self.guard()}mov.b64 {wide}, {{{a}, {b}}};")
        elif a != b:
            self.emit(f"{self.guard()}mov.b64 {{{a}, {b}}}, {wide};")

    # ------------------------------------------------------------ memory

    def place(self, kind: str, size: int) -> str:
        """Leaves an address of input memory in %ad."""
        index = self.register(kind, 32)
        if kind == "a" and self.rng.random() < 0.6:  # keep the pattern of lanes
            self.emit("mul.wide.u32 %ad, %tx, %sz;".replace("%sz", str(size)))
        else:
            self.emit(f"and.b32 %ix, {index}, {INPUT_WORDS * 4 // size // 2 - 1};")
            self.emit(f"mul.wide.u32 %ad, %ix, {size};")
        self.emit("add.s64 %ad, %ad, %in;")
        return "%ad"

    def load(self) -> None:
        kind = self.kind()
        width, count = self.rng.choice(((32, 1), (32, 1), (64, 1), (16, 1), (8, 1), (32, 2),
                                        (32, 4), (16, 2), (64, 2)))  # fmt: skip
        where = self.place(kind, width // 8 * count)
        space = self.rng.choice((".global", ".global", ""))
        nc = self.rng.choice(("", "", ".nc")) if space else ""
        sign = self.rng.choice("usb")
        pool = 32 if width == 8 else width
        offset = self.rng.randrange(4) * width // 8 * count
        vector = f".v{count}" if count > 1 else ""
        if count == 1:
            target = self.register(kind if kind == "u" else "v", pool)
        else:
            names = self.rng.sample(["%x0", "%x1", "%x2", "%x3"], 4)[:count]
            target = "{" + ", ".join(n.replace("x", f"x{pool}_") for n in names) + "}"
        guard = self.guard()
        self.emit(f"{guard}ld{space}{nc}{vector}.{sign}{width} {target}, [{where}+{offset}];")
        for k in range(count if count > 1 else 0):
            d = self.register("v", pool)
            self.emit(f"xor.b{pool} {d}, {d}, %x{pool}_{k};")

    def unrolled(self) -> None:
        """Several accesses from one register: engines may check them at once."""
        kind = self.kind()
        if self.unrolling:
            self.alu()
            return
        self.unrolling = True
        where = "%base"
        self.emit(f"mov.u64 {where}, {self.place(kind, 4)};")
        for k in range(self.rng.randrange(2, 6)):
            d = self.register("u" if kind == "u" else "v", 32)
            self.emit(f"ld.global.u32 {d}, [{where}+{4 * k}];")
            if self.rng.random() < 0.3:
                self.statement()
        self.unrolling = False

    def slot(self, width: int) -> str:
        """An operand that addresses a place of this thread's own in the output."""
        slot = self.rng.randrange(SLOTS // 2)
        if width == 64:
            return f"[%out2+{slot * self.threads * 8}]"
        return f"[%out1+{slot * self.threads * 4}]"

    def store(self) -> None:
        kind, width = self.kind(), self.rng.choice((32, 32, 64, 16, 8))
        space = self.rng.choice((".global", ".global", ""))
        guard = self.guard(0.3)
        if width == 64 and self.rng.random() < 0.4:
            a, b = self.source(kind, 32), self.register(kind, 32)
            a = b if not a.startswith("%") else a
            self.emit(f"{guard}st{space}.v2.u32 {self.slot(64)}, {{{a}, {b}}};")
            return
        value = self.register(kind, 32 if width == 8 else width)
        if width == 32 and self.rng.random() < 0.3:
            self.emit(f"{guard}st{space}.f32 {self.slot(32)}, %f{self.rng.randrange(3)};")
            return
        self.emit(f"{guard}st{space}.u{width} {self.slot(width)}, {value};")

    def local(self) -> None:
        kind = self.kind()
        self.emit(f"and.b32 %ix, {self.register(kind, 32)}, 15;")
        self.emit("mul.wide.u32 %ad, %ix, 4;")
        how = self.rng.randrange(3)
        if how == 0:
            self.emit("add.u64 %ad, %ad, %lgen;")
        else:
            self.emit("add.u64 %ad, %ad, %lspc;")
        space = "" if how == 0 else ".local"
        if self.rng.random() < 0.5:
            self.emit(f"{self.guard()}st{space}.u32 [%ad], {self.register(self.kind(), 32)};")
        else:
            self.emit(f"{self.guard()}ld{space}.u32 {self.register('v', 32)}, [%ad];")

    def atomic(self) -> None:
        if self.rng.random() < 0.5:
            self.emit(f"and.b32 %ix, {self.register(self.kind(), 32)}, {ACCUMULATORS - 1};")
            self.emit("mul.wide.u32 %ad, %ix, 4;")
            self.emit("add.u64 %ad, %ad, %acc;")
            self.emit(
                f"{self.guard(0.4)}red{self.rng.choice(('.global', ''))}.add.u32 [%ad], "
                f"{self.register(self.kind(), 32)};"
            )
            return
        op = self.rng.choice(("add.u32", "exch.b32", "max.s32", "and.b32", "inc.u32", "cas.b32"))
        third = f", {self.register('v', 32)}" if op.startswith("cas") else ""
        self.emit(
            f"{self.guard(0.4)}atom.global.{op} {self.register('v', 32)}, {self.slot(32)}, "
            f"{self.register(self.kind(), 32)}{third};"
        )

    def shared(self) -> None:
        """Write one's own word, meet, read another's, meet."""
        if not self.together:
            self.alu()
            return
        kind = self.kind()
        bar = self.rng.choice(("bar.sync 0;", "bar.sync 0;", "barrier.sync 3;", "bar.sync %k0x;"))
        self.emit(f"{self.guard(0.1)}st.shared.u32 [%sown], {self.register(kind, 32)};")
        self.emit(bar)
        count = int(np.prod(self.block))
        step = self.rng.choice((0, 1, 2, 5, 31))
        self.emit(f"add.u32 %ix, %lin, {step};")
        self.emit(f"rem.u32 %ix, %ix, {count};")
        self.emit("shl.b32 %ix, %ix, 2;")
        self.emit("add.u32 %ix, %ix, %sbase;")
        self.emit(f"{self.guard()}ld.shared.u32 {self.register('v', 32)}, [%ix];")
        if self.rng.random() < 0.4:
            self.emit("cvt.u64.u32 %ad, %ix;")
            self.emit("cvta.shared.u64 %ad, %ad;")
            self.emit(f"{self.guard()}ld.u32 {self.register('v', 32)}, [%ad];")
        if self.rng.random() < 0.4:
            self.emit(f"ld.shared.u32 {self.register('u', 32)}, [%sbase];")
        self.emit("bar.sync 0;")

    def vote_barrier(self) -> None:
        if not self.together:
            self.logic()
            return
        how = self.rng.choice(("popc.u32", "and.pred", "or.pred"))
        target = self.register("u", 32) if how.startswith("popc") else self.predicate("u")
        negate = self.rng.choice(("", "!"))
        self.emit(f"bar.red.{how} {target}, 1, {negate}{self.predicate()};")

    # ------------------------------------------------------------ the warp

    def exchange(self) -> None:
        how = self.rng.randrange(6)
        value = self.register(self.kind(), 32)
        if how <= 2:
            self.shuffle(value)
        elif how == 3:
            op = self.rng.choice(("all", "any", "uni"))
            self.emit(
                f"vote.sync.{op}.pred {self.predicate('u')}, {self.predicate()}, {self.mask};"
            )
        elif how == 4:
            self.emit(f"and.b32 %ix, {value}, 3;")
            self.emit(f"match.any.sync.b32 {self.register('v', 32)}, %ix, {self.mask};")
        else:
            op = self.rng.choice(("add.u32", "min.s32", "max.u32", "xor.b32", "or.b32"))
            self.emit(f"redux.sync.{op} {self.register('u', 32)}, {value}, {self.mask};")

    def shuffle(self, value: str) -> None:
        """The value of a lane that takes part, else zero."""
        mode = self.rng.choice(("up", "down", "bfly", "idx"))
        step = self.rng.choice(("1", "2", "3", "16", "31", self.register(self.kind(), 32)))
        clamp = {"up": "0"}.get(mode, self.rng.choice(("31", "31", "0x181f", "0x1c1f")))
        self.emit(f"shfl.sync.{mode}.b32 %x32_0|%px, {value}, {step}, {clamp}, {self.mask};")
        self.emit(f"and.b32 %x32_1, {step}, 31;")
        change = {"up": "sub.u32 %x32_1, %lane, %x32_1;", "down": "add.u32 %x32_1, %lane, %x32_1;",
                  "bfly": "xor.b32 %x32_1, %lane, %x32_1;"}  # fmt: skip
        if mode != "idx":
            self.emit(change[mode])
        else:
            segment = {"0x181f": 24, "0x1c1f": 28}.get(clamp, 0)
            self.emit(f"and.b32 %x32_1, %x32_1, {31 & ~segment};")
            self.emit(f"and.b32 %x32_2, %lane, {segment};")
            self.emit("or.b32 %x32_1, %x32_1, %x32_2;")
        self.emit("selp.b32 %x32_1, %x32_1, %lane, %px;")
        self.emit(f"shr.u32 %x32_1, {self.mask}, %x32_1;")
        self.emit("and.b32 %x32_1, %x32_1, 1;")
        self.emit("setp.ne.u32 %px, %x32_1, 0;")
        self.emit(f"selp.b32 {self.register('v', 32)}, %x32_0, 0, %px;")

    # ------------------------------------------------------------ control

    def ballot(self, into: str, predicate: str) -> None:
        self.emit(f"vote.sync.ballot.b32 {into}, {predicate}, {self.mask};")

    def branch(self) -> None:
        if self.depth >= 3:
            self.alu()
            return
        uniform = self.rng.random() < 0.3
        predicate = "%pk" if uniform else self.predicate()
        if uniform:
            self.emit(
                f"setp.{self.rng.choice(('lt', 'ge'))}.s32 %pk, %k0, {self.rng.randrange(9)};"
            )
        self.emit(f"mov.pred %pd{self.depth}, {predicate};")
        condition = f"%pd{self.depth}"
        otherwise, done = self.fresh("ELSE"), self.fresh("FI")
        self.ballot(f"%m{self.depth + 1}", condition)
        self.emit(f"@!{condition} bra {otherwise};")
        self.inside(uniform, self.rng.randrange(1, 5))
        with_else = self.rng.random() < 0.6
        if with_else:
            self.emit(f"bra{'.uni' if uniform else ''} {done};")
        self.label(otherwise)
        if with_else:
            # these lanes hold the ballot of those that took the other side
            self.emit(f"not.b32 %m{self.depth + 1}, %m{self.depth + 1};")
            self.emit(f"and.b32 %m{self.depth + 1}, %m{self.depth + 1}, {self.mask};")
            self.inside(uniform, self.rng.randrange(1, 5))
        self.label(done)
        self.rejoin()

    def inside(self, uniform: bool, count: int) -> None:
        before = self.together
        self.together = before and uniform
        self.depth += 1
        self.body(count)
        self.depth -= 1
        self.together = before

    def rejoin(self) -> None:
        """Lanes may have left for good: who is still here?"""
        self.emit("setp.eq.u32 %px, 0, 0;")
        self.ballot(self.mask, "%px")

    def loop(self) -> None:
        if self.depth >= 3 or len(self.loops) >= 2:
            self.alu()
            return
        uniform = self.rng.random() < 0.3
        trip = "%k1" if uniform else self.register(self.rng.choice("uav"), 32)
        counter, limit = f"%n{self.depth}", f"%t{self.depth}"
        head, end = self.fresh("LOOP"), self.fresh("END")
        self.emit(f"and.b32 {limit}, {trip}, 3;")
        self.emit(f"mov.u32 {counter}, 0;")
        self.emit(f"mov.b32 %m{self.depth + 1}, {self.mask};")
        self.label(head)
        self.emit(f"setp.lt.u32 %pd{self.depth}, {counter}, {limit};")
        self.emit(f"vote.sync.ballot.b32 %m{self.depth + 1}, %pd{self.depth}, %m{self.depth + 1};")
        self.emit(f"@!%pd{self.depth} bra {end};")
        self.emit(f"add.u32 {counter}, {counter}, 1;")
        self.loops.append(end)
        self.inside(uniform, self.rng.randrange(1, 4))
        if self.rng.random() < 0.3 and not uniform:
            self.depth += 1
            self.emit(f"mov.pred %pd{self.depth}, {self.predicate()};")
            self.ballot("%gone", f"%pd{self.depth}")
            self.emit("not.b32 %gone, %gone;")
            self.emit(f"and.b32 {self.mask}, {self.mask}, %gone;")
            self.emit(f"@%pd{self.depth} bra {end};")
            self.depth -= 1
        self.loops.pop()
        self.emit(f"bra {head};")
        self.label(end)
        self.rejoin()

    def leave(self) -> None:
        """Some lanes end here."""
        if self.rng.random() < 0.5:
            self.alu()
            return
        self.emit(f"mov.pred %pl, {self.predicate()};")
        self.emit(f"setp.eq.and.u32 %pl, %lane, {self.rng.randrange(32)}, %pl;")
        self.ballot("%x32_0", "%pl")
        self.emit(f"@%pl st.global.u32 {self.slot(32)}, {self.register('v', 32)};")
        self.emit(f"@%pl {self.rng.choice(('ret', 'exit'))};")
        self.emit("not.b32 %x32_0, %x32_0;")
        self.emit(f"and.b32 {self.mask}, {self.mask}, %x32_0;")

    def table(self) -> None:
        """``brx.idx``."""
        if self.depth >= 3:
            self.alu()
            return
        names = [self.fresh("CASE") for _ in range(3)]
        done, targets = self.fresh("SW"), self.fresh("TBL")
        self.emit(f"and.b32 %sel, {self.register(self.kind(), 32)}, 3;")
        self.emit("min.u32 %sel, %sel, 2;")
        self.emit(f"match.any.sync.b32 %m{self.depth + 1}, %sel, {self.mask};")
        self.emit(f"{targets}: .branchtargets {', '.join(names)};")
        self.emit(f"brx.idx %sel, {targets};")
        for k, name in enumerate(names):
            self.label(name)
            self.inside(False, self.rng.randrange(0, 3))
            if k < 2:
                self.emit(f"bra {done};")
        self.label(done)
        self.rejoin()

    def call(self) -> None:
        a, b, d = (
            self.register(self.kind(), 32),
            self.register(self.kind(), 32),
            self.register("v", 32),
        )
        guard = self.guard(0.25)
        how = self.rng.choice(("mix", "deep", "look", "some", "other"))
        self.emit("{")
        self.emit(".param .b32 pa; .param .b32 pb; .param .b64 pc; .param .b32 pr;")
        self.emit(f"st.param.b32 [pa], {a}; st.param.b32 [pb], {b}; st.param.b64 [pc], %in;")
        if self.rng.random() < 0.35:
            self.emit(f"mov.u64 %fn, {how};")
            self.emit(f"mov.u64 %fn2, {self.rng.choice(('mix', 'look', 'some'))};")
            self.emit(f"selp.b64 %fn, %fn, %fn2, {self.predicate()};")
            self.emit(f"{guard}call (pr), %fn, (pa, pb, pc), proto;")
        else:
            self.emit(f"{guard}call (pr), {how}, (pa, pb, pc);")
        self.emit(f"{guard}ld.param.b32 {d}, [pr];")
        self.emit("}")

    # ------------------------------------------------------------ the whole

    def finish(self) -> None:
        """Every register goes to where the test can see it."""
        self.emit("mov.b32 %x32_3, 0;")
        self.emit("mov.b64 %x64_0, 0;")
        for kind in "uav":
            for k in range(3):
                self.emit(f"mad.lo.u32 %x32_3, %x32_3, 31, %{kind}32_{k};")
            for k in range(2):
                self.emit(f"mad.lo.u64 %x64_0, %x64_0, 31, %{kind}64_{k};")
                self.emit(f"@%p{kind}{k} add.u32 %x32_3, %x32_3, {1 << k + 9};")
            self.emit(f"cvt.u32.u16 %x32_1, %{kind}16_0;")
            self.emit("mad.lo.u32 %x32_3, %x32_3, 31, %x32_1;")
        for k in range(3):
            self.emit(f"mov.b32 %x32_1, %f{k};")
            self.emit("mad.lo.u32 %x32_3, %x32_3, 31, %x32_1;")
        self.emit(f"st.global.u64 [%out2+{(SLOTS // 2) * self.threads * 8}], %x64_0;")
        self.emit(f"st.global.u32 [%out1+{(SLOTS // 2) * self.threads * 4}], %x32_3;")

    def write(self) -> Generated:
        self.body(self.size)
        self.finish()
        self.emit("ret;")
        x, y = self.block[0], self.block[1] if len(self.block) > 1 else 1
        prologue = PROLOGUE.replace("@X@", str(x)).replace("@XY@", str(x * y))
        prologue = prologue.replace("@CTA@", str(int(np.prod(self.block))))
        text = (
            f"{HEADER}{FUNCTIONS}\n.visible .entry generated(.param .u64 pin, .param .u64 pout1, "
            ".param .u64 pout2, .param .u64 pacc, .param .u32 pk0, .param .u32 pk1)\n{\n"
            f"{REGISTERS}{prologue}\n" + "\n".join(self.lines) + "\n}\n"
        )
        return Generated(self.seed, text, self.grid, self.block, self.ordinal)


_STATEMENTS: dict[str, tuple[int, Callable[[_Writer], None]]] = {
    "alu": (24, _Writer.alu),
    "wide": (6, _Writer.wide),
    "convert": (5, _Writer.convert),
    "floating": (8, _Writer.floating),
    "compare": (9, _Writer.compare),
    "logic": (3, _Writer.logic),
    "pick": (4, _Writer.pick),
    "carry": (2, _Writer.carry),
    "pack": (2, _Writer.pack),
    "load": (8, _Writer.load),
    "unrolled": (3, _Writer.unrolled),
    "store": (6, _Writer.store),
    "local": (3, _Writer.local),
    "atomic": (3, _Writer.atomic),
    "shared": (4, _Writer.shared),
    "vote_barrier": (1, _Writer.vote_barrier),
    "exchange": (5, _Writer.exchange),
    "branch": (8, _Writer.branch),
    "loop": (5, _Writer.loop),
    "leave": (2, _Writer.leave),
    "table": (2, _Writer.table),
    "call": (3, _Writer.call),
}


def generate(seed: int, size: int = 12, without: frozenset[int] = frozenset()) -> Generated:
    """A kernel of about ``size`` top-level statements; those in ``without`` are left out."""
    return _Writer(seed, size, without).write()


def run_generated(kernel: Generated, engine: Engine, arena: Arena) -> list[np.ndarray]:
    """Everything the kernel leaves in memory."""
    rng = np.random.default_rng(kernel.seed)
    source = rng.integers(0, 2**32, INPUT_WORDS, dtype=np.uint32)
    small = rng.random(INPUT_WORDS) < 0.5
    source[small] %= 64
    n = kernel.threads
    loaded = load(kernel.text, arena, f"seed{kernel.seed}.ptx")
    try:
        sizes = (((SLOTS // 2) + 1) * n, ((SLOTS // 2) + 1) * n * 2, ACCUMULATORS)
        places = [loaded.buffer(source)]
        places += [loaded.buffer(np.zeros(size, np.uint32)) for size in sizes]
        scalars = rng.integers(0, 9, 2, dtype=np.uint32)
        loaded.run(engine, "generated", kernel.grid, kernel.block, pack(*places, *scalars))
        return [
            loaded.read(place, np.uint32, size)
            for place, size in zip(places[1:], sizes, strict=True)
        ]
    finally:
        loaded.close()


def reduce_failure(
    seed: int, size: int, fails: Callable[[Generated], bool], tries: int = 400
) -> Generated:
    """A smaller kernel that still fails."""
    without: frozenset[int] = frozenset()
    best = generate(seed, size)
    step = max(best.statements // 2, 1)
    while step and tries > 0:
        for start in range(0, best.statements, step):
            more = without | frozenset(range(start, start + step))
            tries -= 1
            if more == without or tries <= 0:
                continue
            smaller = generate(seed, size, more)
            if fails(smaller):
                without, best = more, smaller
        step //= 2
    return best


def differences(names: Sequence[str], a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> str:
    """Where two runs differ, in words; empty when they do not."""
    found = []
    for name, x, y in zip(names, a, b, strict=True):
        where = np.flatnonzero(x != y)
        if where.size:
            k = int(where[0])
            found.append(f"{name}[{k}] {int(x[k]):#x} != {int(y[k]):#x} ({where.size} differ)")
    return "; ".join(found)
