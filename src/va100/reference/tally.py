"""Counting what happens while a grid runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from va100.reference.code import Step
from va100.reference.lanes import Lanes
from va100.work import Counters, Pipe

_SECTOR_SHIFT = np.uint64(5)
_BANKS = 32
_BANK_BYTES = 4


@dataclass(slots=True)
class Tally:
    """Running sums of a launch."""

    pipes: Counter[Pipe] = field(default_factory=Counter)
    opcodes: Counter[str] = field(default_factory=Counter)
    threads: Counter[str] = field(default_factory=Counter)
    """Lanes by opcode."""
    sums: Counter[str] = field(default_factory=Counter)
    load_waits: float = 0.0
    constant_waits: float = 0.0
    lines: set[int] = field(default_factory=set)
    """32-byte sectors of global memory ever touched."""

    def count(self, step: Step, bits: int) -> None:
        """Count one warp instruction."""
        operation = step.operation
        self.pipes[operation.form.pipe] += 1
        self.opcodes[operation.text] += 1
        self.threads[operation.text] += bits.bit_count()
        self.sums["thread_instructions"] += bits.bit_count()
        self.load_waits += step.waits
        self.constant_waits += step.constant_waits

    def add(self, name: str, amount: int = 1) -> None:
        """Add to one of :class:`Counters`' sums by field name."""
        self.sums[name] += amount

    def global_access(self, addresses: Lanes, size_bytes: int, *, store: bool) -> None:
        """Count one request to global memory by the executing lanes' addresses."""
        first = addresses >> _SECTOR_SHIFT
        last = (addresses + np.uint64(size_bytes - 1)) >> _SECTOR_SHIFT
        sectors = np.unique(np.concatenate((first, last)))
        self.lines.update(sectors.tolist())
        self.sums["global_requests"] += 1
        self.sums["global_sectors"] += int(sectors.size)
        if store:
            self.sums["global_store_requests"] += 1
            self.sums["global_store_sectors"] += int(sectors.size)
        name = "global_store_bytes" if store else "global_load_bytes"
        self.sums[name] += size_bytes * int(addresses.size)

    def shared_access(self, addresses: Lanes, size_bytes: int, *, store: bool = False) -> None:
        """Count one request to shared memory and the passes its bank conflicts need.

        Wide accesses go in groups of lanes whose bytes fit all banks once.
        """
        count = max(size_bytes // _BANK_BYTES, 1)
        words = (addresses >> np.uint64(2))[:, None] + np.arange(count, dtype=np.uint64)
        group = _BANKS // count
        passes = sum(_turns(words[k : k + group]) for k in range(0, len(words), group))
        self.sums["shared_requests"] += 1
        self.sums["shared_wavefronts"] += int(passes)
        if store:
            self.sums["shared_store_requests"] += 1
            self.sums["shared_store_wavefronts"] += int(passes)

    def shared_rows(self, matrices: Lanes, row_bytes: int) -> None:
        """Count one request for matrices whose rows are read together, one after another.

        Parameters
        ----------
        matrices : (matrices, rows) uint64
        """
        for addresses in matrices:
            self.shared_access(addresses, row_bytes)
        self.sums["shared_requests"] -= len(matrices) - 1

    def counters(self, *, ctas: int, warps: int) -> Counters:
        """The sums as the rest of the program reads them."""
        return Counters(
            cta_count=ctas,
            warp_count=warps,
            warp_instructions={pipe: float(n) for pipe, n in self.pipes.items()},
            opcode_instructions={text: float(n) for text, n in self.opcodes.items()},
            opcode_threads={text: float(n) for text, n in self.threads.items()},
            footprint_bytes=32.0 * len(self.lines),
            sampled_fraction=1.0,
            branches=self._issued("bra", "brx"),
            load_waits=self.load_waits,
            constant_waits=self.constant_waits,
            barrier_instructions=self._issued("bar", "barrier"),
            **{name: float(amount) for name, amount in self.sums.items()},
        )

    def _issued(self, *opcodes: str) -> float:
        """Warp instructions of some opcodes."""
        issued = (n for text, n in self.opcodes.items() if text.partition(".")[0] in opcodes)
        return float(sum(issued))


def _turns(words: Lanes) -> int:
    """Turns of the banks for words asked for together: each bank gives one word a turn."""
    banks = np.unique(words) % np.uint64(_BANKS)
    return int(np.bincount(banks.astype(np.int64)).max(initial=1))
