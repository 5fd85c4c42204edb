"""One PTX function as LLVM text: the converged world, the masked world, and the ways between.

Every block is written twice.  ``F`` blocks run while all 32 lanes are together; ``M`` blocks run
for a group of lanes, lowest block first, so that lanes which parted meet again at the first
place they can.  Pending lanes of a block are bits of an ``i32``; a warp leaves F where a branch
splits it and comes back where it is whole and its registers are regular again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from va100.jit import abi, effects
from va100.jit.access import address_value, outside_memory, outside_window
from va100.jit.analysis import Block
from va100.jit.calls import lower_call
from va100.jit.context import FULL, Context
from va100.jit.emit import Predicate, Value
from va100.jit.groups import CheckGroup
from va100.jit.lattice import signed_limits
from va100.jit.lower.atomic import lower_atomic
from va100.jit.lower.compare import lower_compare
from va100.jit.lower.control import lower_barrier, lower_control
from va100.jit.lower.convert import lower_convert
from va100.jit.lower.floating import lower_floating
from va100.jit.lower.half import lower_half
from va100.jit.lower.integer import lower_integer
from va100.jit.lower.memory import lower_memory
from va100.jit.lower.move import lower_move
from va100.jit.lower.warp import lower_warp
from va100.jit.transfer import needs_guard
from va100.ptx.isa.form import Family, Operation
from va100.ptx.program import Address, Immediate, Register, Symbol
from va100.ptx.types import PtxType, Space

Lowering = Callable[[Context, Operation], None]

SPIN_BUDGET: Final = 256
"""Turns of a loop that may wait before other lanes and warps get theirs."""
COUNTERS_PER_BLOCK: Final = 3
"""Converged executions, masked executions, active lanes of masked executions."""


def _refuse_family(c: Context, op: Operation) -> None:
    """Families parsed and verified, executed by a later version."""
    raise c.refuse("this instruction family is not executed yet")


LOWERINGS: Final[Mapping[Family, Lowering]] = {
    Family.INTEGER: lower_integer,
    Family.LOGIC: lower_integer,
    Family.FLOATING: lower_floating,
    Family.HALF: lower_half,
    Family.COMPARE: lower_compare,
    Family.MOVE: lower_move,
    Family.CONVERT: lower_convert,
    Family.MEMORY: lower_memory,
    Family.ATOMIC: lower_atomic,
    Family.CONTROL: lower_control,
    Family.BARRIER: lower_barrier,
    Family.WARP: lower_warp,
    Family.ASYNC: _refuse_family,
    Family.VIDEO: _refuse_family,
    Family.MATRIX: _refuse_family,
    Family.TEXTURE: _refuse_family,
    Family.STACK: _refuse_family,
}


class FunctionWriter:
    """Writes one function; :meth:`text` gives it whole."""

    def __init__(
        self, context: Context, symbol: str, counter_base: int, *, counted: bool = True
    ) -> None:
        self.c = context
        self.counted = counted
        self.symbol = symbol
        self.counter_base = counter_base
        self.blocks = context.analysis.blocks
        self.small = len(self.blocks) <= 64
        self.edges: dict[str, int] = {}
        self.uses_above = False

    # ---------------------------------------------------------- the whole function

    def text(self) -> str:
        """LLVM text of the function."""
        c = self.c
        for block in self.blocks:
            self._write_converged(block)
        for block in self.blocks:
            self._write_masked(block)
        self._write_dispatch()
        body = c.lines
        c.lines = []
        self._write_entry()
        entry, c.lines = c.lines, []
        if c.is_kernel:
            head = f"define void @{self.symbol}(ptr noundef %w) #0 {{"
        else:
            head = (
                f"define internal i32 @{self.symbol}(ptr noundef %w, i32 %group, ptr %argv, "
                "i64 %frame) #0 {"
            )
        lines = [head, "entry:", *c.scratch, *c.storage_lines, *entry, *body, "}"]
        return "\n".join(lines)

    def _write_entry(self) -> None:
        c = self.c
        count = len(self.blocks)
        c.line("%alive = alloca i32")
        c.line("%returned = alloca i32")
        c.line("%budget = alloca i32")
        c.line(f"store i32 {SPIN_BUDGET}, ptr %budget")
        c.line("store i32 0, ptr %returned")
        if self.small:
            c.line("%ready = alloca i64")
            c.line("store i64 0, ptr %ready")
        else:
            c.line(f"%words = alloca [{-(-count // 64)} x i64], align 8")
            c.line(f"store [{-(-count // 64)} x i64] zeroinitializer, ptr %words")
            c.line("%after = alloca i32")
        if c.file_in_memory:
            self._write_file()
        for block in self.blocks:
            if c.file_in_memory:
                c.line(f"%pend{block.index} = getelementptr i32, ptr %waiting, i64 {block.index}")
            else:
                c.line(f"%pend{block.index} = alloca i32")
            c.line(f"store i32 0, ptr %pend{block.index}")
        for name in c.call_entry_lines:
            c.line(name)
        group = c.field(abi.LIVE, "i32") if c.is_kernel else "%group"
        c.line(f"store i32 {group}, ptr %alive")
        whole = c.op(f"icmp eq i32 {group}, -1")
        c.line(f"br i1 {whole}, label %F0, label %part, !prof !2")
        c.label("part")
        self._set_pending(0, group)
        c.line("br label %M0")

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

    # ---------------------------------------------------------- converged blocks

    def _write_converged(self, block: Block) -> None:
        c = self.c
        c.masked, c.mask, c.block_mask, c.env = False, None, None, {}
        c.mask_may_be_empty = False
        c.label(f"F{block.index}")
        if block.start in c.analysis.guarded:
            self._write_overflow_guard(block)
        if block.start in c.analysis.groups:
            self._write_group_check(block, c.analysis.groups[block.start])
        self._count(block, 0, None)
        self._write_body(block)

    def _write_overflow_guard(self, block: Block) -> None:
        """Leave F when a 32-bit sum wraps, which an affine 64-bit address could not express."""
        c = self.c
        c.begin_instruction(block.start)
        operation = c.flow.operations[block.start]
        kind = operation.types[-1]
        least, most = signed_limits(kind.bits)
        bad: list[str] = []
        for operand in c.instruction.operands[1:3]:
            if not isinstance(operand, (Register, Immediate)):
                continue
            value = c.read_sized(operand, kind)
            if not value.shape.affine or not needs_guard(operation, (value.shape,) * 2):
                continue
            offsets = value.shape.offsets or (0,)
            low, high = least - min(offsets), most - max(offsets)
            if not kind.is_signed:
                low = 0
            base = c.base(value)
            if low > least:
                bad.append(c.op(f"icmp slt i{kind.bits} {base}, {low}"))
            if high < most:
                bad.append(c.op(f"icmp sgt i{kind.bits} {base}, {high}"))
        if not bad:
            return
        wrapped = bad[0]
        for other in bad[1:]:
            wrapped = c.op(f"or i1 {wrapped}, {other}")
        self._leave_if(wrapped, block)

    def _write_group_check(self, block: Block, group: CheckGroup) -> None:
        """Look at a whole group of accesses; M will find out which of them is wrong."""
        c = self.c
        c.begin_instruction(block.start)
        value = address_value(c, Address(Register(group.register), 0), group.space)
        offsets = value.shape.offsets or (0,)
        known = c.analysis.shapes[group.register].offsets or (0,)
        shift = min(offsets) - min(known)  # a window address counts from its smallest lane
        base = c.base(value)
        low = c.op(f"add i64 {base}, {group.low + shift}")
        span = group.high - group.low
        if group.space is Space.SHARED:
            rest = c.op(f"add i64 {base}, {shift}") if shift else base
            bad = outside_window(c, low, span, 1)
            if group.align > 1:
                odd = c.op(f"and i64 {rest}, {group.align - 1}")
                bad = c.op(f"or i1 {bad}, {c.op(f'icmp ne i64 {odd}, 0')}")
        else:
            bad = outside_memory(c, low, span, base, group.align)
        self._leave_if(bad, block)

    def _leave_if(self, condition: str, block: Block) -> None:
        c = self.c
        leave, stay = c.name("leave"), c.name("stay")
        c.line(f"br i1 {condition}, label %{leave}, label %{stay}, !prof !1")
        c.label(leave)
        self._leave(block.index, FULL, None, "")
        c.label(stay)

    def _write_body(self, block: Block) -> None:
        c = self.c
        for index in range(block.start, block.end):
            c.begin_instruction(index)
            operation = c.flow.operations[index]
            if operation.opcode in effects.TERMINATORS:
                self._write_terminator(block, operation)
                return
            self._write_instruction(operation)
        last = c.flow.operations[block.end - 1] if block.end > block.start else None
        if last is not None and last.opcode == "call":
            self._after_call(block)
        else:
            self._go(block, block.successors[0] if block.successors else None)

    def _after_call(self, block: Block) -> None:
        """Go on with the lanes that the callee gave back."""
        c = self.c
        target = block.successors[0] if block.successors else None
        back, called = c.returned, self.called_lanes
        if back == called:
            self._go(block, target)
            return
        if c.mask is None:
            whole = c.op(f"icmp eq i32 {back}, {called}")
            fewer = c.name("fewer")
            c.line(f"br i1 {whole}, label %{self._edge(block, target)}, label %{fewer}, !prof !2")
            c.label(fewer)
            idle = c.op(f"xor i32 {called}, -1")
            here = c.op(f"or i32 {back}, {idle}")
            self._drop(c.op(f"xor i32 {here}, -1"))
            if target is None:
                self._arrive(None, here)
                c.line("br label %dispatch")
            else:
                self._leave(target, here, None, "")
            return
        lost = c.op(f"and i32 {called}, {c.op(f'xor i32 {back}, -1')}")
        self._drop(lost)
        here = c.op(f"and i32 {c.block_mask}, {c.op(f'xor i32 {lost}, -1')}")
        self._arrive(target, here)
        c.line("br label %dispatch")

    called_lanes = FULL

    def _write_instruction(self, operation: Operation) -> None:
        c = self.c
        outer, outer_empty = c.mask, c.mask_may_be_empty
        lower = lower_call if operation.opcode == "call" else LOWERINGS[operation.form.family]
        self.called_lanes = c.lanes
        if c.instruction.guard is None:
            lower(c, operation)
            return
        guard = self._guard()
        if guard.uniform and c.mask is None and operation.opcode != "call":
            self._under_branch(guard.scalar, lower, operation)
            return
        mask = c.mask_of(guard)
        c.mask = mask if outer is None else c.op(f"and i32 {outer}, {mask}")
        c.mask_may_be_empty = True
        self.called_lanes = c.lanes
        lower(c, operation)
        c.mask, c.mask_may_be_empty = outer, outer_empty

    def _under_branch(self, condition: str, lower: Lowering, operation: Operation) -> None:
        """A uniformly guarded instruction of the converged world is jumped over."""
        c = self.c
        for name in effects.writes(c.instruction, operation):
            c.env.pop(name, None)
        before = dict(c.env)
        run, done = c.name("run"), c.name("skip")
        c.line(f"br i1 {condition}, label %{run}, label %{done}")
        c.label(run)
        c.env = {k: _bare(v) for k, v in c.env.items()}
        lower(c, operation)
        c.line(f"br label %{done}")
        c.label(done)
        written = set(effects.writes(c.instruction, operation))
        if effects.sets_carry(operation):
            written.add(effects.CARRY)
        c.env = {k: v for k, v in before.items() if k not in written}

    def _guard(self) -> Predicate:
        c = self.c
        guard = c.instruction.guard
        if guard is None:
            return Predicate(scalar="true")
        predicate = c.predicate_register(guard.register)
        return c.negated(predicate) if guard.negated else predicate

    # ---------------------------------------------------------- terminators

    def _write_terminator(self, block: Block, operation: Operation) -> None:
        if operation.opcode == "brx":
            self._write_indexed_branch(block)
        elif operation.opcode == "bra":
            self._write_branch(block, *self._branch_targets(block))
        else:
            following = block.successors[0] if block.successors else None
            self._write_branch(block, None, following)

    def _branch_targets(self, block: Block) -> tuple[int | None, int | None]:
        if self.c.instruction.guard is None or len(block.successors) < 2:
            return block.successors[0], None
        return block.successors[0], block.successors[1]

    def _write_branch(self, block: Block, taken: int | None, following: int | None) -> None:
        """``taken`` is ``None`` for ``ret``/``exit``."""
        c = self.c
        if c.instruction.guard is None:
            self._go(block, taken)
            return
        guard = self._guard()
        if c.mask is None:
            self._branch_converged(block, guard, taken, following)
        else:
            self._branch_masked(block, c.mask_of(guard), taken, following)

    def _branch_converged(
        self, block: Block, guard: Predicate, taken: int | None, following: int | None
    ) -> None:
        c = self.c
        yes, no = self._edge(block, taken), self._edge(block, following)
        if guard.uniform:
            c.line(f"br i1 {guard.scalar}, label %{yes}, label %{no}")
            return
        if guard.all_true and not guard.mask and not guard.vector:
            some, mixed = c.name("some"), c.name("mixed")
            c.line(f"br i1 {guard.all_true}, label %{yes}, label %{some}")
            c.label(some)
            c.line(f"br i1 {guard.all_false}, label %{no}, label %{mixed}, !prof !2")
            c.label(mixed)
        mask = c.mask_of(guard)
        split = c.name("split")
        c.line(f"switch i32 {mask}, label %{split} [i32 -1, label %{yes} i32 0, label %{no}]")
        c.label(split)
        self._leave(taken, mask, following, c.op(f"xor i32 {mask}, -1"))

    def _branch_masked(
        self, block: Block, guard: str, taken: int | None, following: int | None
    ) -> None:
        c = self.c
        lanes = c.block_mask or FULL
        yes = c.op(f"and i32 {lanes}, {guard}")
        no = c.op(f"and i32 {lanes}, {c.op(f'xor i32 {guard}, -1')}")
        self._arrive(taken, yes)
        self._arrive(following, no)
        edges = [(t, m) for t, m in ((taken, yes), (following, no)) if t is not None]
        for target, mask in edges:
            if target <= block.index:
                self._loop_back(block, target, mask)
                return
        for target, mask in edges:
            if target == block.index + 1:
                some = c.op(f"icmp ne i32 {mask}, 0")
                c.line(f"br i1 {some}, label %M{target}, label %dispatch")
                return
        c.line("br label %dispatch")

    def _loop_back(self, block: Block, target: int, mask: str) -> None:
        """Lanes going back run first: the lowest block does; unless they only wait."""
        c = self.c
        spins = (block.index, target) in c.analysis.spin_edges
        some = c.op(f"icmp ne i32 {mask}, 0")
        again = c.name("again")
        c.line(f"br i1 {some}, label %{again}, label %dispatch")
        c.label(again)
        if not spins:
            c.line(f"br label %M{target}")
            return
        c.needs_fibers = True
        rested = self._spend()
        turn = c.name("turn")
        c.line(f"br i1 {rested}, label %{turn}, label %M{target}, !prof !1")
        c.label(turn)
        self._rest()
        self._dispatch_above(target)

    def _spend(self) -> str:
        """Take one from the budget; true when it is used up."""
        c = self.c
        left = c.op(f"sub i32 {c.op('load i32, ptr %budget')}, 1")
        c.line(f"store i32 {left}, ptr %budget")
        return c.op(f"icmp sle i32 {left}, 0")

    def _rest(self) -> None:
        c = self.c
        c.line(f"store i32 {SPIN_BUDGET}, ptr %budget")
        c.declare("va_h_spin", "declare void {}(ptr)")
        c.line("call void @va_h_spin(ptr %w)")

    def _write_indexed_branch(self, block: Block) -> None:
        """``brx.idx``: each lane's index picks its target."""
        c = self.c
        index = c.read(c.instruction.operands[0], 32)
        targets = self._indexed_targets()
        if c.mask is None and index.shape.uniform and c.instruction.guard is None:
            cases = " ".join(
                f"i32 {k}, label %{self._edge(block, t)}" for k, t in enumerate(targets[:-1])
            )
            c.line(
                f"switch i32 {c.base(index)}, label %{self._edge(block, targets[-1])} [{cases}]"
            )
            return
        if c.instruction.guard is not None:
            raise c.refuse("a guarded brx.idx is not executed")
        vector = c.vector(index)
        if c.mask is None:
            live = set().union(*(c.analysis.live_in[t] for t in targets))
            self._reset_masked_world(live)
            self._convert(live)
        lanes = c.block_mask or FULL
        rest = lanes
        for k, target in enumerate(targets):
            if k < len(targets) - 1:
                same = c.op(f"icmp eq <32 x i32> {vector}, splat (i32 {k})")
                hit = c.op(f"and i32 {c.op(f'bitcast <32 x i1> {same} to i32')}, {rest}")
                rest = c.op(f"and i32 {rest}, {c.op(f'xor i32 {hit}, -1')}")
            else:
                hit = rest
            self._arrive(target, hit)
        c.line("br label %dispatch")

    def _indexed_targets(self) -> list[int]:
        """Blocks of the target list in its order."""
        c = self.c
        listed = c.instruction.operands[1]
        name = listed.name if isinstance(listed, Symbol) else ""
        labels = c.flow.target_lists[name].targets
        return [c.analysis.first_piece[c.flow.labels[label]] for label in labels]

    def _go(self, block: Block, target: int | None) -> None:
        """An unconditional edge; ``None`` leaves the function."""
        c = self.c
        if not c.masked:
            c.line(f"br label %{self._edge(block, target)}")
            return
        lanes = c.block_mask or FULL
        self._arrive(target, lanes)
        if target is None or target > block.index + 1:
            c.line("br label %dispatch")
        elif target == block.index + 1:
            c.line(f"br label %M{target}")
        else:
            self._loop_back(block, target, lanes)

    def _edge(self, block: Block, target: int | None) -> str:
        """Label of a converged edge; edges of waiting loops pass by a turn-taking block."""
        if target is None:
            opcode = self.c.flow.operations[self.c.index].opcode
            return "leave_whole" if opcode == "ret" or self.c.is_kernel else "exit_whole"
        if (block.index, target) not in self.c.analysis.spin_edges:
            return f"F{target}"
        self.c.needs_fibers = True
        label = f"spin{block.index}_{target}"
        self.edges[label] = target
        return label

    # ---------------------------------------------------------- between the worlds

    def _leave(self, first: int | None, mask: str, second: int | None, rest: str) -> None:
        """F to M: registers take their vector form, lanes wait at their blocks."""
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
        c.line(f"br label %M{min(targets)}" if targets else "br label %dispatch")

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

    # ---------------------------------------------------------- masked blocks

    def _write_masked(self, block: Block) -> None:
        c = self.c
        c.masked, c.env = True, {}
        c.mask_may_be_empty = False
        c.label(f"M{block.index}")
        c.mask = c.block_mask = c.op(f"load i32, ptr %pend{block.index}")
        if block.index in c.analysis.reentry:
            self._write_return(block)
        first = c.flow.operations[block.start] if block.start < block.end else None
        if first is not None and effects.is_barrier(first) and not c.is_arrive(first):
            self._wait_for(block, c.op("load i32, ptr %alive"))
        elif first is not None and effects.is_warp_sync(first):
            c.begin_instruction(block.start)
            self._wait_for(block, self._members(first))
        else:
            self._clear_pending(block.index)
        self._count(block, 1, c.mask)
        self._write_body(block)

    def _members(self, operation: Operation) -> str:
        """Live lanes the first waiting lane names in its membermask."""
        c = self.c
        operand = c.instruction.operands[-1]
        alive = c.op("load i32, ptr %alive")
        value = c.read_sized(operand, PtxType.B32)
        if value.shape.uniform:
            return c.op(f"and i32 {c.base(value)}, {alive}")
        c.declare("llvm.cttz.i32", "declare i32 {}(i32, i1)")
        leader = c.op(f"call i32 @llvm.cttz.i32(i32 {c.mask}, i1 false)")
        named = c.op(f"extractelement <32 x i32> {c.vector(value)}, i32 {leader}")
        return c.op(f"and i32 {named}, {alive}")

    def _wait_for(self, block: Block, needed: str) -> None:
        """Go on only when all needed lanes are here; let others run until then."""
        c = self.c
        here = c.op(f"and i32 {c.mask}, {needed}")
        complete = c.op(f"icmp eq i32 {here}, {needed}")
        some = c.op(f"icmp ne i32 {needed}, 0")
        go, park = c.name("go"), c.name("park")
        c.line(f"br i1 {c.op(f'and i1 {complete}, {some}')}, label %{go}, label %{park}")
        c.label(park)
        self._dispatch_above(block.index)
        c.label(go)
        rest = c.op(f"and i32 {c.mask}, {c.op(f'xor i32 {needed}, -1')}")
        self._clear_pending(block.index)
        self._set_pending(block.index, rest)
        c.mask = c.block_mask = needed

    def _write_return(self, block: Block) -> None:
        """M to F, when the warp is whole and what F keeps as scalars is regular."""
        c = self.c
        whole = c.op(f"icmp eq i32 {c.mask}, -1")
        look, stay, enter = c.name("look"), c.name("stay"), c.name("enter")
        c.line(f"br i1 {whole}, label %{look}, label %{stay}")
        c.label(look)
        conditions, stores = [], []
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
            held = c.op(f"load {kind}, ptr {c.place_as(name, scalar=False, masked=True)}")
            place = c.place_as(name, scalar=False, masked=False)
            stores.append(f"store {kind} {held}, ptr {place}")

    def _in_range(self, shape: object, base: str, conditions: list[str]) -> None:
        """The interval and alignment the converged world counts on."""
        c = self.c
        bits, low, high, align = shape.bits, shape.low, shape.high, shape.align  # type: ignore[attr-defined]
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
        for label, target in self.edges.items():
            c.label(label)
            rested = self._spend()
            turn = c.name("turn")
            c.line(f"br i1 {rested}, label %{turn}, label %F{target}, !prof !1")
            c.label(turn)
            self._rest()
            c.line(f"br label %F{target}")
        if self.uses_above:
            c.label("dispatch_above")
            self._write_choice("%above", "", "stuck")
            c.label("stuck")
            self._write_stuck()

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
            c.line("ret void")
        elif whole:
            c.line("ret i32 -1")
        else:
            c.line(f"ret i32 {c.op('load i32, ptr %returned')}")

    def _write_stuck(self) -> None:
        """All groups wait: either for lanes of another call or for ever."""
        c = self.c
        if c.analysis.spin_edges:
            # Spinning lanes are pending below: nothing waits above them, so they go on.
            spinning = c.name("spinning")
            c.line(f"br label %{spinning}")
            c.label(spinning)
            self._write_spinning()
            return
        self._write_deadlock()

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
        c.declare("va_h_stuck", "declare void {}(ptr, i32) cold noreturn")
        c.line(f"call void @va_h_stuck(ptr %w, i32 {c.site_base})")
        c.line("unreachable")

    # ---------------------------------------------------------- counters

    def _count(self, block: Block, slot: int, mask: str | None) -> None:
        c = self.c
        if not self.counted:
            return
        base = (self.counter_base + block.index) * COUNTERS_PER_BLOCK
        table = c.field(abi.COUNTERS, "ptr")
        self._increment(table, base + slot, "1")
        if mask is not None:
            c.declare("llvm.ctpop.i32", "declare i32 {}(i32)")
            lanes = c.op(f"call i32 @llvm.ctpop.i32(i32 {mask})")
            self._increment(table, base + 2, c.op(f"zext i32 {lanes} to i64"))

    def _increment(self, table: str, index: int, amount: str) -> None:
        c = self.c
        where = c.op(f"getelementptr i64, ptr {table}, i64 {index}")
        old = c.op(f"load i64, ptr {where}")
        c.line(f"store i64 {c.op(f'add i64 {old}, {amount}')}, ptr {where}")


def _bit(block: int) -> int:
    return _signed(1 << block % 64)


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _bare(held: Value | Predicate) -> Value | Predicate:
    """A copy whose cached forms may be extended without being seen outside a branch."""
    return replace(held)

