"""Words that the machine and the performance model share.

A launch's shape, what a kernel needs of an SM, the pipes instructions issue to, and what was
counted while it ran.  No behaviour lives here beyond arithmetic on the words themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

WARP_SIZE: Final = 32
SHARED_UNIT_BYTES: Final = 128
"""A CTA gets shared memory in such units: it may touch all of the last one."""


class Dim3(NamedTuple):
    """An extent or an index in three dimensions, x fastest."""

    x: int = 1
    y: int = 1
    z: int = 1

    @property
    def size(self) -> int:
        """Product of the three extents."""
        return self.x * self.y * self.z

    def __str__(self) -> str:
        """Spell as CUDA programmers do: ``(16, 16, 1)``."""
        return f"({self.x}, {self.y}, {self.z})"


class Pipe(Enum):
    """Where an instruction issues on an SM sub-partition."""

    ALU = "alu"
    FMA = "fma"
    FP16 = "fp16"
    FP64 = "fp64"
    XU = "xu"
    TENSOR = "tensor"
    LSU = "lsu"
    TEX = "tex"
    CONTROL = "control"


OBSERVED_CTAS: Final = 64
"""CTAs of a launch that are observed where a program is profiled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """CTAs whose accesses go through models of the caches."""

    cta_count: int
    alone: bool = False
    """No other CTA runs; they are taken to do the same."""
    l1_cta_bytes: int = 24 * 1024
    """L1 that a resident CTA has for itself."""
    l2_bytes: int = 40 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchConfig:
    """The shape of one launch."""

    grid: Dim3
    block: Dim3
    dynamic_shared_bytes: int = 0
    cooperative: bool = False
    sampling: Sampling | None = None
    """None: what the engine does by itself."""

    @property
    def warps_per_cta(self) -> int:
        """Warps in a CTA, the last one perhaps partial."""
        return -(-self.block.size // WARP_SIZE)


class SourceLine(NamedTuple):
    """A line that instructions came from: of a source file, or of the PTX where none is known."""

    file: str
    """Empty for a line of the PTX."""
    line: int
    text: str = ""
    """Of a line of the PTX, which nobody could read elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelResources:
    """What one thread or one CTA of a kernel needs of an SM."""

    registers_per_thread: int
    static_shared_bytes: int = 0
    local_bytes: int = 0
    max_threads_per_block: int = 1024
    barrier_count: int = 0
    machine_load_count: int | None = None
    """Loads of global memory in its machine code, where that was made; calls are not followed."""
    merged_load_ratio: float = 1.0
    """Those over the loads in PTX: less than 1 where the assembler found some to be the same."""
    registers_estimated: bool = False
    """No assembler gave the registers: they limit how many CTAs an SM holds, but refuse none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What happened while a kernel ran, summed over the grid.

    Instruction counts are per warp issue (as hardware counts them) unless named ``thread_``.
    Bytes are requested by threads; sectors are the 32-byte pieces those requests touched.
    Requests, sectors and wavefronts are of loads and stores together; those of stores are a part.
    ``footprint_bytes`` is how much memory the launch can reach, 0 when unknown; it touches at most
    that much.  ``sampled_fraction`` is the part of the CTAs on which sectors, banks and lines were
    counted; those counts are already scaled to the whole grid.
    """

    cta_count: int = 0
    warp_count: int = 0
    warp_instructions: Mapping[Pipe, float] = field(default_factory=dict)
    opcode_instructions: Mapping[str, float] = field(default_factory=dict)
    opcode_threads: Mapping[str, float] = field(default_factory=dict)
    """Lanes that took part in them; a guard's are in, whether it held or not."""
    thread_instructions: float = 0.0
    global_load_bytes: float = 0.0
    global_store_bytes: float = 0.0
    global_requests: float = 0.0
    global_sectors: float = 0.0
    global_store_requests: float = 0.0
    global_store_sectors: float = 0.0
    footprint_bytes: float = 0.0
    shared_requests: float = 0.0
    shared_wavefronts: float = 0.0
    shared_store_requests: float = 0.0
    shared_store_wavefronts: float = 0.0
    atomic_requests: float = 0.0
    barrier_instructions: float = 0.0
    divergent_branches: float = 0.0
    branches: float = 0.0
    load_waits: float = 0.0
    """Times a warp waits for loads, taken together as :mod:`va100.ptx.waits` says."""
    constant_waits: float = 0.0
    """The same of constant memory at addresses that are reckoned."""
    constant_bytes: float = 0.0
    """Size of the module's constant variables, where the kernel waits for any."""
    sampled_fraction: float = 0.0
    observed_cta_count: float = 0.0
    """CTAs whose accesses went through the caches' models; the counters below are 0 without any."""
    local_sectors: float = 0.0
    l1_lines: float = 0.0
    """128-byte lines that requests asked L1 for."""
    l1_load_sectors: float = 0.0
    l1_hit_sectors: float = 0.0
    l2_sectors: float = 0.0
    l2_store_sectors: float = 0.0
    l2_hit_sectors: float = 0.0
    dram_read_sectors: float = 0.0
    dram_write_sectors: float = 0.0
    sector_error: float = 0.0
    """Standard error that sampling leaves in sectors, as a part of them."""
    wavefront_error: float = 0.0

    @property
    def total_warp_instructions(self) -> float:
        """Warp instructions over all pipes."""
        return sum(self.warp_instructions.values())
