"""One PTX function as LLVM text: the converged world, the masked world, and the ways between.

Every block is written twice.  ``F`` blocks run while all 32 lanes are together; ``M`` blocks run
for a group of lanes, lowest block first, so that lanes which parted meet again at the first
place they can.  Pending lanes of a block are bits of an ``i32``; a warp leaves F where a branch
splits it and comes back where it is whole and its registers are regular again.
"""

from __future__ import annotations

from dataclasses import replace

from va100.jit import abi, clock
from va100.jit.access import address_value, outside_window, span_allowed
from va100.jit.analysis import Block
from va100.jit.block_counts import BlockCounts
from va100.jit.calls import load_words, store_words
from va100.jit.context import FULL, Context
from va100.jit.emit import Predicate, Value
from va100.jit.groups import CheckGroup
from va100.jit.lattice import signed_limits
from va100.jit.lowerings import Lowering, lowering_of
from va100.jit.meeting import write_meetings
from va100.jit.pure import select
from va100.jit.shapes import register_parameters
from va100.jit.transfer import needs_guard
from va100.jit.worlds import SPIN_BUDGET, Worlds
from va100.ptx import effects
from va100.ptx.isa.form import Operation
from va100.ptx.program import Address, Immediate, Register, Symbol
from va100.ptx.types import Space


class FunctionWriter(Worlds):
    """Writes one function; :meth:`text` gives it whole."""

    def __init__(
        self, context: Context, symbol: str, counter_base: int, *, counted: bool = True
    ) -> None:
        super().__init__(context)
        self.symbol = symbol
        self.counts = BlockCounts(context, counter_base, counted=counted)

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
            head = f"define void @{self.symbol}(ptr noundef %w0, i32 %count) #0 {{"
        else:
            head = (
                f"define internal i32 @{self.symbol}(ptr noundef %w, i32 %group, ptr %argv, "
                "i64 %frame) #0 {"
            )
        lines = [head, "entry:", *c.scratch, *c.storage_lines, *entry, *body, "}"]
        return "\n".join(lines)

    def _write_entry(self) -> None:
        """What is set up once, then the start of a warp; a kernel runs ``count`` of them."""
        c = self.c
        self._touch_parameters()
        self.counts.begin()
        self._write_masked_state()
        if c.allocates:
            c.line("%stack.end = alloca <32 x i64>, align 64")
        for name in c.call_entry_lines:
            c.line(name)
        if c.is_kernel:
            c.lines += c.field_lines
            c.line("br label %cta")
            c.label("cta")
            c.lines += c.cta_lines
            c.line("br label %warp")
        else:
            self._write_stack_check()
        self._write_warp_start()

    def _write_stack_check(self) -> None:
        """Recursion ends in a fault of the kernel, never in one of the process."""
        c = self.c
        c.line("%probe = alloca i8")
        limit = c.field(abi.STACK_LIMIT, "i64")
        c.lines += c.field_lines
        deep = c.op(f"icmp ult i64 {c.op('ptrtoint ptr %probe to i64')}, {limit}")
        c.line(f"br i1 {deep}, label %overflow, label %warp, !prof !1")
        c.label("overflow")
        c.declare("va_h_stack", "declare void {}(ptr, i32, i32) cold noreturn")
        c.line(f"call void @va_h_stack(ptr %w, i32 {c.site_base}, i32 %group)")
        c.line("unreachable")

    def _touch_parameters(self) -> None:
        """Register parameters need their places before places are laid out."""
        c = self.c
        for variable in register_parameters(c.flow.function.params):
            if variable.name in c.analysis.stored:
                for masked in (False, True):
                    c.place_as(variable.name, scalar=False, masked=masked)

    def _write_warp_start(self) -> None:
        c = self.c
        c.label("warp")
        if c.is_kernel:
            c.line("%i = phi i32 [0, %cta], [%next, %warp_done]")
            step = c.op("zext i32 %i to i64")
            step = c.op(f"mul i64 {step}, {abi.WARP_STRIDE}")
            c.line(f"%w = getelementptr i8, ptr %w0, i64 {step}")
            if c.timed:
                clock.start(c)
        c.lines += c.storage_start
        if c.allocates:
            first = "0" if c.is_kernel else "%frame"
            end = c.splat(c.op(f"add i64 {first}, {c.frame_bytes}"), "i64")
            c.line(f"store <32 x i64> {end}, ptr %stack.end, align 64")
        self._take_parameters()
        c.line(f"store i32 {SPIN_BUDGET}, ptr %budget")
        c.line("store i32 0, ptr %returned")
        if self.small:
            c.line("store i64 0, ptr %ready")
        else:
            c.line(f"store [{-(-len(self.blocks) // 64)} x i64] zeroinitializer, ptr %words")
        for block in self.blocks:
            c.line(f"store i32 0, ptr %pend{block.index}")
        group = c.field(abi.LIVE, "i32") if c.is_kernel else "%group"
        c.line(f"store i32 {group}, ptr %alive")
        whole = c.op(f"icmp eq i32 {group}, -1")
        c.line(f"br i1 {whole}, label %F0, label %part, !prof !2")
        c.label("part")
        self.counts.exception(self.blocks[0])
        self._set_pending(0, group)
        c.line("br label %M0")
        if c.is_kernel:
            c.label("warp_done")
            c.line("%next = add i32 %i, 1")
            more = c.op("icmp ult i32 %next, %count")
            c.line(f"br i1 {more}, label %warp, label %cta_done")
            c.label("cta_done")
            self._write_cta_end()

    def _write_cta_end(self) -> None:
        """On to the next CTA of the row, or back to the scheduler."""
        c = self.c
        self.counts.turn()
        left = c.op(f"load i64, ptr {self._at(abi.MORE)}")
        c.line(f"br i1 {c.op(f'icmp eq i64 {left}, 0')}, label %finish, label %next_cta")
        c.label("next_cta")
        c.line(f"store i64 {c.op(f'sub i64 {left}, 1')}, ptr {self._at(abi.MORE)}")
        for place in (abi.CTAID, abi.SMID):
            old = c.op(f"load i32, ptr {self._at(place)}")
            c.line(f"store i32 {c.op(f'add i32 {old}, 1')}, ptr {self._at(place)}")
        c.line("br label %cta")
        c.label("finish")
        self.counts.flush()
        c.line("ret void")

    def _at(self, offset: int) -> str:
        return self.c.op(f"getelementptr i8, ptr %w0, i64 {offset}")

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
        self.counts.enter(block, 0, None)
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
                low = max(0, -min(offsets))
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
            bad = self._outside_memory(group, low, (group.low + shift) % group.align)
        self._leave_if(bad, block)

    def _outside_memory(self, group: CheckGroup, low: str, odd: int) -> str:
        """Whether a group's span leaves memory; it begins `odd` bytes past an aligned place."""
        c = self.c
        start = c.op(f"sub i64 {low}, {odd}") if odd else low
        # Allocations begin at aligned places: what is aligned down does not leave one.
        span = group.high - group.low + odd
        return c.op(f"xor i1 {span_allowed(c, start, span, group.align, write=group.write)}, true")

    def _leave_if(self, condition: str, block: Block) -> None:
        c = self.c
        leave, stay = c.name("leave"), c.name("stay")
        c.line(f"br i1 {condition}, label %{leave}, label %{stay}, !prof !1")
        c.label(leave)
        self.counts.exception(block)
        # Past the way back into F, which would only fail the check again.
        past = f"S{block.index}" if block.index in c.analysis.reentry else ""
        self._leave(block.index, FULL, None, "", past)
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
        lower = lowering_of(c, operation)
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
            if operation.opcode == "ret":
                self._give_results()
            following = block.successors[0] if block.successors else None
            self._write_branch(block, None, following)

    def _give_results(self) -> None:
        """Results of the ``.reg`` kind go where the caller looks for them."""
        c = self.c
        for variable in register_parameters(c.flow.function.returns):
            value = c.clean(c.read(Register(variable.name), 32))
            words = c.call_words[variable.name]
            lanes = c.lanes
            if c.instruction.guard is not None:
                guard = c.mask_of(self._guard())
                lanes = guard if lanes == FULL else c.op(f"and i32 {lanes}, {guard}")
            if lanes != FULL:
                old = load_words(c, words, value.shape.bits)
                chosen = Predicate(mask=lanes)
                value = select(c, chosen, value, old, value.shape.bits)
            store_words(c, words, value)

    def _take_parameters(self) -> None:
        """Parameters of the ``.reg`` kind become registers."""
        c = self.c
        for variable in register_parameters(c.flow.function.params):
            bits = variable.type.bits
            if variable.name not in c.flow.registers or variable.name not in c.analysis.stored:
                continue
            vector = c.vector(load_words(c, c.call_words[variable.name], bits))
            for masked in (False, True):
                place = c.place_as(variable.name, scalar=False, masked=masked)
                c.line(f"store <32 x i{bits}> {vector}, ptr {place}")

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
            if target == block.index + 1 and not self.leaves_groups:
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

    def _write_indexed_branch(self, block: Block) -> None:
        """``brx.idx``: each lane's index picks its target."""
        c = self.c
        index = c.read(c.instruction.operands[0], 32)
        targets = self._indexed_targets()
        if c.mask is None and index.shape.uniform and c.instruction.guard is None:
            cases = " ".join(
                f"i32 {k}, label %{self._edge(block, t)}" for k, t in enumerate(targets[:-1])
            )
            c.line(f"switch i32 {c.base(index)}, label %{self._edge(block, targets[-1])} [{cases}]")
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
        if target is None or target > block.index + (not self.leaves_groups):
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

    # ---------------------------------------------------------- masked blocks

    def _write_masked(self, block: Block) -> None:
        c = self.c
        c.masked, c.env = True, {}
        c.mask_may_be_empty = self.leaves_groups = False
        self._write_masked_start(block)
        first = c.flow.operations[block.start] if block.start < block.end else None
        if first is not None and effects.is_barrier(first) and not c.is_arrive(first):
            self._wait_for(block, c.op("load i32, ptr %alive"), "0")
        elif first is not None and effects.is_warp_sync(first):
            c.begin_instruction(block.start)
            passing = self._passing()
            waiting = c.op(f"and i32 {c.mask}, {c.op(f'xor i32 {passing}, -1')}")
            self._wait_for(block, self._members(waiting), passing)
        else:
            self._clear_pending(block.index)
        self.counts.enter(block, 1, c.mask)
        self._write_body(block)

    def _write_masked_start(self, block: Block) -> None:
        """The label, the lanes that are here, and the way back into F."""
        c = self.c
        c.label(f"M{block.index}")
        c.mask = c.block_mask = c.op(f"load i32, ptr %pend{block.index}")
        if block.index in c.analysis.reentry:
            self._write_return(block)
            c.line(f"br label %S{block.index}")
            c.label(f"S{block.index}")
            c.mask = c.block_mask = c.op(f"load i32, ptr %pend{block.index}")

    def _passing(self) -> str:
        """Lanes at a ``*.sync`` whose guard is false: they do not take part."""
        c = self.c
        if c.instruction.guard is None:
            return "0"
        acting = c.mask_of(self._guard())
        return c.op(f"and i32 {c.mask}, {c.op(f'xor i32 {acting}, -1')}")

    def _write_meetings(self) -> None:
        write_meetings(self, self.counts.enter)


def _bare(held: Value | Predicate) -> Value | Predicate:
    """A copy whose cached forms may be extended without being seen outside a branch."""
    return replace(held)
