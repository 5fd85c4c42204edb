"""Training software as a handful of constants: what a framework adds to what the chip does.

Each was fitted to a stated part of published runs (``docs/planning.md`` says which and how far
off the others are); nothing here depends on a model's shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from va100.units import MB, MS, US


class Attention(Enum):
    """How the core of attention is computed."""

    FLASH = "flash"
    """One kernel; no matrix of scores in memory."""
    UNFUSED = "unfused"
    """Two batched products around a fused softmax; scores are kept for the backward pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One training framework.

    Attributes
    ----------
    workspace_bytes : int
        cuBLAS and other workspaces and small buffers: the same for all models.
    gate_values : int
        Values of a gated MLP kept per unit of its width: three where gate and product are one
        kernel, four where they are not.
    product_ratio, stream_ratio, score_ratio : float
        Time of a product, of a streaming kernel, of one over attention's scores, inside a step
        over the same alone: heat, power, other layouts, dropout's random numbers.
    host_kernel_s, host_collective_s : float
        Host time to issue one kernel, one collective: a pass that the chip would do sooner waits
        for it.
    overlap_exponent : float
        Norm in which a pass's host and chip times are added: high is the longer of both.
    checkpoint_s : float
        What recomputing a layer adds beside its kernels: random states are fetched and set, which
        waits for the chip.
    tensor_parallel_ratio : float
        Time of a layer's collectives inside a step over the same alone.
    gradient_exposed_ratio : float
        Part of the data-parallel exchange that no backward pass hides, where the stack overlaps.
    straggler_ratio : float
        Deviation of GPUs' speeds: all wait for the slowest, which of many is slower.
    step_s : float
        Once a step: the optimiser's host work, loss scaling, data.
    within_ratio : float
        Error that nine of ten measured steps stayed within, of those not fitted to.

    A ratio of streams below one says that the stack fuses: epilogues of products take biases and
    activations, so fewer passes go through memory than :mod:`va100.plan.layers` lists.
    """

    name: str
    text: str
    attention: Attention
    workspace_bytes: int
    gate_values: int
    product_ratio: float
    stream_ratio: float
    score_ratio: float
    host_kernel_s: float
    host_collective_s: float
    overlap_exponent: float
    checkpoint_s: float
    tensor_parallel_ratio: float
    gradient_exposed_ratio: float
    step_s: float
    straggler_ratio: float
    overlaps_gradients: bool
    within_ratio: float


MEGATRON_LM: Final = Stack(
    name="megatron-lm",
    text="Megatron-LM and Megatron-DeepSpeed as of 2021 and 2022, fused kernels, fp16",
    attention=Attention.UNFUSED,
    workspace_bytes=90 * MB,
    gate_values=4,
    product_ratio=0.932,
    stream_ratio=1.0,
    score_ratio=1.4,
    host_kernel_s=65 * US,
    host_collective_s=40 * US,
    overlap_exponent=4.2,
    checkpoint_s=0.164 * MS,
    tensor_parallel_ratio=1.0,
    gradient_exposed_ratio=1.0,
    step_s=4.7 * MS,
    straggler_ratio=0.025,
    overlaps_gradients=False,
    within_ratio=0.16,
)
MEGATRON_CORE: Final = Stack(
    name="megatron-core",
    text="Megatron-Core with Transformer Engine, flash attention; constants between the other two",
    attention=Attention.FLASH,
    workspace_bytes=30 * MB,
    gate_values=3,
    product_ratio=1.0,
    stream_ratio=0.75,
    score_ratio=1.5,
    host_kernel_s=25 * US,
    host_collective_s=30 * US,
    overlap_exponent=3.5,
    checkpoint_s=0.1 * MS,
    tensor_parallel_ratio=1.0,
    gradient_exposed_ratio=0.25,
    step_s=10 * MS,
    straggler_ratio=0.02,
    overlaps_gradients=True,
    within_ratio=0.25,
)
FSDP: Final = Stack(
    name="fsdp",
    text="PyTorch FSDP as llm-foundry uses it, flash attention",
    attention=Attention.FLASH,
    workspace_bytes=30 * MB,
    gate_values=3,
    product_ratio=1.092,
    stream_ratio=0.503,
    score_ratio=1.523,
    host_kernel_s=12 * US,
    host_collective_s=20 * US,
    overlap_exponent=4.0,
    checkpoint_s=0.0,
    tensor_parallel_ratio=1.0,
    gradient_exposed_ratio=0.231,
    step_s=52 * MS,
    straggler_ratio=0.02,
    overlaps_gradients=True,
    within_ratio=0.08,
)
STACKS: Final[Mapping[str, Stack]] = MappingProxyType(
    {stack.name: stack for stack in (MEGATRON_LM, MEGATRON_CORE, FSDP)}
)
