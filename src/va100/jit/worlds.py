"""Between the converged and the masked world, and among the masked world's groups of lanes.

How a warp leaves F and comes back, how lanes wait for each other, which group runs next.
Pending lanes of a block are bits of an ``i32``; a set of ready blocks picks the lowest.  What
blocks do is written by :mod:`va100.jit.function`.
"""

from __future__ import annotations

from typing import Final

from va100.jit.analysis import Block
from va100.jit.context import FULL, Context
from va100.jit.emit import Value
from va100.jit.lattice import Shape, signed_limits
from va100.ptx import effects
from va100.ptx.types import PtxType

SPIN_BUDGET: Final = 256
"""Turns of a loop that may wait before other lanes and warps get theirs."""


class Worlds:
    """State that both worlds of one function share while they are written."""

    def __init__(self, context: Context) -> None:
        self.c = context
        self.blocks = context.analysis.blocks
        self.small = len(self.blocks) <= 64
        self.edges: dict[str, int] = {}
        self.uses_above = False
        self.leaves_groups = False
        """Whether the block at hand may leave lanes behind that could go on: other groups."""

    # ---------------------------------------------------------- the masked world's memory

    def _write_masked_state(self) -> None:
        """Room for what the masked world keeps of its lanes."""
        c = self.c
        for name, kind in (("alive", "i32"), ("returned", "i32"), ("budget", "i32")):
            c.line(f"%{name} = alloca {kind}")
        if self.small:
            c.line("%ready = alloca i64")
        else:
            c.line(f"%words = alloca [{-(-len(self.blocks) // 64)} x i64], align 8")
            c.line("%after = alloca i32")
        if c.file_in_memory:
            self._write_file()
        for block in self.blocks:
            if c.file_in_memory:
                c.line(f"%pend{block.index} = getelementptr i32, ptr %waiting, i64 {block.index}")
            else:
                c.line(f"%pend{block.index} = alloca i32")

    def _write_file(self) -> None:
        """The masked world's memory, behind a pointer whose origin LLVM does not know."""
        c = self.c
        waiting = -(-len(self.blocks) * 4 // 64) * 64
        c.line(f"%raw = alloca [{c.file_bytes + waiting + 64} x i8], align 64")
        c.line("%hidden = alloca ptr")
        c.line("store volatile ptr %raw, ptr %hidden")
        c.line("%file = load volatile ptr, ptr %hidden")
        for line in c.file_lines:
            c.line(line)
        c.line(f"%waiting = getelementptr i8, ptr %file, i64 {c.file_bytes}")

    # ---------------------------------------------------------- between the worlds

    def _leave(
        self, first: int | None, mask: str, second: int | None, rest: str, start: str = ""
    ) -> None:
        """F to M: registers take their vector form, lanes wait at their blocks.

        M starts at the lowest block unless ``start`` is a label.
        """
        c = self.c
        names: set[str] = set()
        for target in (first, second):
            if target is not None:
                names |= c.analysis.live_in[target]
        self._reset_masked_world(names)
        self._convert(names)
        self._arrive(first, mask)
        if second is not None or rest:
            self._arrive(second, rest)
        targets = [t for t in (first, second) if t is not None]
        lowest = f"M{min(targets)}" if targets else "dispatch"
        c.line(f"br label %{start or lowest}")

    def _reset_masked_world(self, live: set[str]) -> None:
        """Begin M afresh, so that nothing of it has to be carried through F's loops.

        All lanes are alive and none waits; registers nobody reads before writing them are
        cleared, since a masked assignment would otherwise keep their old lanes alive.
        """
        c = self.c
        c.line("store i32 -1, ptr %alive")
        if c.file_in_memory:
            return
        c.line("store i32 0, ptr %returned")
        c.line("store i64 0, ptr %ready")
        for block in self.blocks:
            c.line(f"store i32 0, ptr %pend{block.index}")
        for name in sorted(c.analysis.stored - live - c.analysis.invariant):
            if c.is_predicate(name):
                c.line(f"store i32 0, ptr {c.place_as(name, scalar=False)}")
            else:
                kind = f"<32 x i{c.flow.registers[name].bits}>"
                c.line(f"store {kind} zeroinitializer, ptr {c.place_as(name, scalar=False)}")

    def _copy_to_file(self, name: str) -> None:
        """A register that both worlds keep as a vector, where they do not share it."""
        c = self.c
        kind = "i32" if c.is_predicate(name) else f"<32 x i{c.flow.registers[name].bits}>"
        held = c.op(f"load {kind}, ptr {c.place_as(name, scalar=False, masked=False)}")
        c.line(f"store {kind} {held}, ptr {c.place_as(name, scalar=False, masked=True)}")

    def _convert(self, names: set[str]) -> None:
        """Store registers where and as the masked world keeps them."""
        c = self.c
        for name in sorted(names - c.analysis.invariant):
            scalar = (
                name in c.analysis.uniform_predicates
                if c.is_predicate(name)
                else not c.analysis.shapes[name].varying
            )
            if not scalar:
                if c.file_in_memory:
                    self._copy_to_file(name)
                continue
            target = c.place_as(name, scalar=False, masked=True)
            if c.is_predicate(name):
                held = c.op(f"load i1, ptr {c.place_as(name, scalar=True)}")
                c.line(f"store i32 {c.op(f'sext i1 {held} to i32')}, ptr {target}")
                continue
            shape = c.analysis.shapes[name]
            base = c.op(f"load i{shape.bits}, ptr {c.place_as(name, scalar=True)}")
            vector = c.vector(Value(shape, base=base))
            c.line(f"store <32 x i{shape.bits}> {vector}, ptr {target}")

    def _arrive(self, target: int | None, mask: str) -> None:
        """Add lanes to those that wait at a block, or to those that have left."""
        c = self.c
        if target is None:
            if mask == FULL and not c.masked:
                return
            opcode = c.flow.operations[c.index].opcode
            if c.is_kernel or opcode == "exit":
                self._drop(mask)
            else:
                old = c.op("load i32, ptr %returned")
                c.line(f"store i32 {c.op(f'or i32 {old}, {mask}')}, ptr %returned")
                self._drop(mask)
            return
        self._set_pending(target, mask)

    def _drop(self, mask: str) -> None:
        c = self.c
        old = c.op("load i32, ptr %alive")
        kept = c.op(f"and i32 {old}, {c.op(f'xor i32 {mask}, -1')}")
        c.line(f"store i32 {kept}, ptr %alive")

    def _set_pending(self, target: int, mask: str) -> None:
        c = self.c
        old = c.op(f"load i32, ptr %pend{target}")
        c.line(f"store i32 {c.op(f'or i32 {old}, {mask}')}, ptr %pend{target}")
        some = c.op(f"icmp ne i32 {mask}, 0")
        bit = c.op(f"select i1 {some}, i64 {_bit(target)}, i64 0")
        where = self._word(target)
        ready = c.op(f"or i64 {c.op(f'load i64, ptr {where}')}, {bit}")
        c.line(f"store i64 {ready}, ptr {where}")

    def _clear_pending(self, target: int) -> None:
        c = self.c
        c.line(f"store i32 0, ptr %pend{target}")
        where = self._word(target)
        ready = c.op(f"and i64 {c.op(f'load i64, ptr {where}')}, {_signed(~(1 << target % 64))}")
        c.line(f"store i64 {ready}, ptr {where}")

    def _word(self, target: int) -> str:
        if self.small:
            return "%ready"
        return self.c.op(f"getelementptr i64, ptr %words, i64 {target // 64}")

    # ---------------------------------------------------------- waiting and coming back

    def _members(self, waiting: str) -> str:
        """Live lanes that a waiting lane names in its membermask; none when none waits.

        Where lanes name different ones: the first lane's that waits for nobody, else the first's.
        """
        c = self.c
        alive = c.op("load i32, ptr %alive")
        if effects.needs_whole_warp(c.flow.operations[c.index]):
            return alive
        operand = c.instruction.operands[-1]
        value = c.read_sized(operand, PtxType.B32)
        if value.shape.uniform:
            return c.op(f"and i32 {c.base(value)}, {alive}")
        c.declare("llvm.cttz.i32", "declare i32 {}(i32, i1)")
        away = c.op(f"and i32 {alive}, {c.op(f'xor i32 {waiting}, -1')}")
        missing = c.op(f"and <32 x i32> {c.vector(value)}, {c.splat(away, 'i32')}")
        complete = c.op(f"icmp eq <32 x i32> {missing}, zeroinitializer")
        ready = c.op(f"and i32 {c.op(f'bitcast <32 x i1> {complete} to i32')}, {waiting}")
        some = c.op(f"icmp ne i32 {ready}, 0")
        first = c.op(f"select i1 {some}, i32 {ready}, i32 {waiting}")
        leader = c.op(f"call i32 @llvm.cttz.i32(i32 {first}, i1 false)")
        leader = c.op(f"and i32 {leader}, 31")
        named = c.op(f"extractelement <32 x i32> {c.vector(value)}, i32 {leader}")
        self.leaves_groups = True
        return c.op(f"and i32 {named}, {alive}")

    def _wait_for(self, block: Block, needed: str, passing: str) -> None:
        """Go on only when all needed lanes are here; let others run until then.

        ``passing`` lanes, whose guard is false, wait for nobody.
        """
        c = self.c
        here = c.op(f"and i32 {c.mask}, {needed}")
        complete = c.op(f"icmp eq i32 {here}, {needed}")
        acting = needed
        if passing != "0":
            here = c.op(f"and i32 {here}, {c.op(f'xor i32 {passing}, -1')}")
            complete = c.op(f"icmp eq i32 {here}, {needed}")
            acting = c.op(f"or i32 {passing}, {c.op(f'select i1 {complete}, i32 {needed}, i32 0')}")
        some = c.op(f"icmp ne i32 {acting}, 0")
        if passing == "0":
            some = c.op(f"and i1 {complete}, {some}")
        go, park = c.name("go"), c.name("park")
        c.line(f"br i1 {some}, label %{go}, label %{park}")
        c.label(park)
        self._dispatch_above(block.index)
        c.label(go)
        rest = c.op(f"and i32 {c.mask}, {c.op(f'xor i32 {acting}, -1')}")
        self._clear_pending(block.index)
        self._set_pending(block.index, rest)
        c.mask = c.block_mask = acting

    def _write_return(self, block: Block) -> None:
        """M to F, when the warp is whole and what F keeps as scalars is regular."""
        c = self.c
        whole = c.op(f"icmp eq i32 {c.mask}, -1")
        look, stay, enter = c.name("look"), c.name("stay"), c.name("enter")
        c.line(f"br i1 {whole}, label %{look}, label %{stay}")
        c.label(look)
        conditions: list[str] = []
        stores: list[str] = []
        for name in sorted(c.analysis.live_in[block.index]):
            if name not in c.analysis.invariant:
                self._regular(name, conditions, stores)
        if conditions:
            regular = conditions[0]
            for condition in conditions[1:]:
                regular = c.op(f"and i1 {regular}, {condition}")
            c.line(f"br i1 {regular}, label %{enter}, label %{stay}")
        else:
            c.line(f"br label %{enter}")
        c.label(enter)
        for text in stores:
            c.line(text)
        self._clear_pending(block.index)
        c.line(f"br label %F{block.index}")
        c.label(stay)

    def _regular(self, name: str, conditions: list[str], stores: list[str]) -> None:
        """Conditions under which a register has the converged world's shape again."""
        c = self.c
        if c.is_predicate(name):
            if name not in c.analysis.uniform_predicates:
                self._restore(name, stores)
                return
            mask = c.op(f"load i32, ptr {c.place_as(name, scalar=False)}")
            full, none = c.op(f"icmp eq i32 {mask}, -1"), c.op(f"icmp eq i32 {mask}, 0")
            conditions.append(c.op(f"or i1 {full}, {none}"))
            stores.append(f"store i1 {full}, ptr {c.place_as(name, scalar=True)}")
            return
        shape = c.analysis.shapes[name]
        if shape.varying:
            self._restore(name, stores)
            return
        bits = shape.bits
        vector = c.op(f"load <32 x i{bits}>, ptr {c.place_as(name, scalar=False)}")
        first = c.op(f"extractelement <32 x i{bits}> {vector}, i32 0")
        offset = (shape.offsets or (0,))[0]
        base = c.op(f"sub i{bits} {first}, {offset}") if offset else first
        expected = c.vector(Value(shape, base=base))
        same = c.op(f"icmp eq <32 x i{bits}> {vector}, {expected}")
        bits32 = c.op(f"bitcast <32 x i1> {same} to i32")
        conditions.append(c.op(f"icmp eq i32 {bits32}, -1"))
        self._in_range(shape, base, conditions)
        stores.append(f"store i{bits} {base}, ptr {c.place_as(name, scalar=True)}")

    def _restore(self, name: str, stores: list[str]) -> None:
        """A register that both worlds keep as a vector goes back to where F looks."""
        c = self.c
        if c.file_in_memory:
            kind = "i32" if c.is_predicate(name) else f"<32 x i{c.flow.registers[name].bits}>"
            # Volatile: LLVM's search for loads to share takes time in the square of their number.
            held = c.op(f"load volatile {kind}, ptr {c.place_as(name, scalar=False, masked=True)}")
            place = c.place_as(name, scalar=False, masked=False)
            stores.append(f"store {kind} {held}, ptr {place}")

    def _in_range(self, shape: Shape, base: str, conditions: list[str]) -> None:
        """The interval and alignment the converged world counts on."""
        c = self.c
        bits, low, high, align = shape.bits, shape.low, shape.high, shape.align
        least, most = signed_limits(bits)
        if low > least:
            conditions.append(c.op(f"icmp sge i{bits} {base}, {low}"))
        if high < most:
            conditions.append(c.op(f"icmp sle i{bits} {base}, {high}"))
        if 0 < align < bits:
            rest = c.op(f"and i{bits} {base}, {(1 << align) - 1}")
            conditions.append(c.op(f"icmp eq i{bits} {rest}, 0"))

    # ---------------------------------------------------------- dispatch

    def _dispatch_above(self, block: int) -> None:
        """Continue with the lowest pending block above one that waits or only spins."""
        c = self.c
        if self.small:
            ready = c.op("load i64, ptr %ready")
            above = c.op(f"and i64 {ready}, {_signed(-(2 << block)) if block < 63 else 0}")
            c.line(f"store i64 {above}, ptr %above")
        else:
            c.line(f"store i32 {block + 1}, ptr %after")
        c.line("br label %dispatch_above")
        self.uses_above = True

    def _write_dispatch(self) -> None:
        c = self.c
        c.masked = True
        if self.small:
            c.scratch.append("  %above = alloca i64")
        c.label("dispatch")
        self._write_choice("%ready", "0", "none_left")
        c.label("none_left")
        self._write_exit()
        c.label("leave_whole")
        self._write_exit(whole=True)
        if not c.is_kernel:
            c.label("exit_whole")
            c.line("ret i32 0")
        self._write_edges()
        if self.uses_above:
            c.label("dispatch_above")
            self._write_choice("%above", "", "stuck")
            c.label("stuck")
            self._write_stuck()

    def _write_edges(self) -> None:
        """Converged edges of loops that may wait: others get their turn now and then."""
        c = self.c
        for label, target in self.edges.items():
            c.label(label)
            rested = self._spend()
            turn = c.name("turn")
            c.line(f"br i1 {rested}, label %{turn}, label %F{target}, !prof !1")
            c.label(turn)
            c.begin_instruction(self.blocks[target].start)  # a deadlock is told to be here
            self._rest()
            c.line(f"br label %F{target}")

    def _write_choice(self, word: str, first: str, empty: str) -> None:
        """Jump to the lowest block of a set."""
        c = self.c
        cases = " ".join(f"i64 {b.index}, label %M{b.index}" for b in self.blocks)
        nowhere = c.name("nowhere")
        if self.small:
            ready = c.op(f"load i64, ptr {word}")
            none = c.op(f"icmp eq i64 {ready}, 0")
            some = c.name("some")
            c.line(f"br i1 {none}, label %{empty}, label %{some}")
            c.label(some)
            c.declare("llvm.cttz.i64", "declare i64 {}(i64, i1)")
            lowest = c.op(f"call i64 @llvm.cttz.i64(i64 {ready}, i1 true)")
        else:
            start = first or c.op("load i32, ptr %after")
            c.declare("va_h_next", "declare i64 {}(ptr, i32, i32)")
            lowest = c.op(
                f"call i64 @va_h_next(ptr %words, i32 {-(-len(self.blocks) // 64)}, i32 {start})"
            )
            none = c.op(f"icmp slt i64 {lowest}, 0")
            some = c.name("some")
            c.line(f"br i1 {none}, label %{empty}, label %{some}")
            c.label(some)
        c.line(f"switch i64 {lowest}, label %{nowhere} [{cases}]")
        c.label(nowhere)
        c.line("unreachable")

    def _write_exit(self, *, whole: bool = False) -> None:
        c = self.c
        if c.is_kernel:
            c.line("br label %warp_done")
        elif whole:
            c.line("ret i32 -1")
        else:
            c.line(f"ret i32 {c.op('load i32, ptr %returned')}")

    def _write_stuck(self) -> None:
        """All groups wait: for lanes at a like instruction elsewhere, or for ever."""
        c = self.c
        self._write_meetings()
        if c.analysis.spin_edges:
            # Spinning lanes are pending below: nothing waits above them, so they go on.
            spinning = c.name("spinning")
            c.line(f"br label %{spinning}")
            c.label(spinning)
            self._write_spinning()
            return
        self._write_deadlock()

    def _write_meetings(self) -> None:
        """See :mod:`va100.jit.meeting`, which builds on this class."""

    def _write_spinning(self) -> None:
        """Start again from the lowest block, giving up only when no loop of the warp spins."""
        c = self.c
        heads = sorted({target for _, target in c.analysis.spin_edges})
        pending = "0"
        for head in heads:
            lanes = c.op(f"load i32, ptr %pend{head}")
            pending = c.op(f"or i32 {pending}, {lanes}")
        some = c.op(f"icmp ne i32 {pending}, 0")
        dead = c.name("dead")
        c.line(f"br i1 {some}, label %dispatch, label %{dead}")
        c.label(dead)
        self._write_deadlock()

    def _write_deadlock(self) -> None:
        c = self.c
        self._blame_waiting_matrices()
        c.declare("va_h_stuck", "declare void {}(ptr, i32) cold noreturn")
        c.line(f"call void @va_h_stuck(ptr %w, i32 {c.site_base})")
        c.line("unreachable")

    def _blame_waiting_matrices(self) -> None:
        """Lanes at an instruction that needs the whole warp: name it, and who is missing."""
        c = self.c
        for block in self.blocks:
            if block.start == block.end:
                continue
            operation = c.flow.operations[block.start]
            if not effects.needs_whole_warp(operation):
                continue
            c.begin_instruction(block.start)
            waiting = c.op(f"load i32, ptr %pend{block.index}")
            blamed, other = c.name("blamed"), c.name("other")
            c.line(f"br i1 {c.op(f'icmp ne i32 {waiting}, 0')}, label %{blamed}, label %{other}")
            c.label(blamed)
            c.report_missing(waiting, operation.text)
            c.line("unreachable")
            c.label(other)

    def _spend(self) -> str:
        """Take one from the budget; true when it is used up."""
        c = self.c
        left = c.op(f"sub i32 {c.op('load i32, ptr %budget')}, 1")
        c.line(f"store i32 {left}, ptr %budget")
        return c.op(f"icmp sle i32 {left}, 0")

    def _rest(self) -> None:
        c = self.c
        c.line(f"store i32 {SPIN_BUDGET}, ptr %budget")
        c.declare("va_h_spin", "declare void {}(ptr, i32)")
        c.line(f"call void @va_h_spin(ptr %w, i32 {c.site})")


def _bit(block: int) -> int:
    return _signed(1 << block % 64)


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value
