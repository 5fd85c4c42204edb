"""How a model is trained: parallelism, batches, precision, optimiser, recomputation.

Only the choice and whether it is one that can be made; what it costs is in
:mod:`va100.plan.memory` and :mod:`va100.plan.training`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from va100.errors import PlanError
from va100.plan.stacks import MEGATRON_CORE, Attention, Stack
from va100.plan.workload import Transformer


class Recompute(Enum):
    """What of the activations is computed again in the backward pass."""

    NONE = "none"
    SELECTIVE = "selective"
    """The core of attention only."""
    FULL = "full"
    """Every layer; only its input is kept."""


@dataclass(frozen=True, slots=True)
class Precision:
    """Bytes a parameter takes, by use."""

    name: str
    weight_bytes: int
    gradient_bytes: int
    state_bytes: int
    """Optimiser's own of Adam: master weights where they differ, and two moments."""
    activation_bytes: int
    gemm: str
    """Type that the matrix products are done in."""


PRECISIONS: Final[Mapping[str, Precision]] = MappingProxyType(
    {
        "bf16": Precision("bf16", 2, 4, 12, 2, "bf16"),
        "fp16": Precision("fp16", 2, 2, 12, 2, "fp16"),
        "pure-bf16": Precision("pure-bf16", 2, 2, 4, 2, "bf16"),
        "amp-bf16": Precision("amp-bf16", 4, 4, 8, 2, "bf16"),
        "tf32": Precision("tf32", 4, 4, 8, 4, "tf32"),
        "fp32": Precision("fp32", 4, 4, 8, 4, "fp32"),
    }
)
"""Mixed precision as Megatron-LM keeps it (bf16 adds gradients up in fp32), and the others."""

_STATE_OF: Final[Mapping[str, float]] = MappingProxyType(
    {"adam": 2.0, "adam8bit": 0.5, "momentum": 1.0, "sgd": 0.0}
)
OPTIMIZERS: Final = tuple(_STATE_OF)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions:
    """One way of training.

    ``zero`` is the ZeRO stage: 1 shards the optimiser's state over data-parallel ranks, 2 the
    gradients too, 3 the weights too (as FSDP does).  ``chunks`` is the count of model chunks a
    pipeline stage holds (interleaved schedule above 1).  ``stage_layers`` gives uneven stages.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 0
    micro_batch: int = 1
    global_batch: int = 1
    seq: int = 1024
    recompute: Recompute = Recompute.NONE
    attention: Attention = Attention.FLASH
    sequence_parallel: bool = False
    zero: int = 0
    chunks: int = 1
    precision: str = "bf16"
    optimizer: str = "adam"
    overlap_gradients: bool = False
    stage_layers: tuple[int, ...] = ()
    stack: Stack = MEGATRON_CORE

    @property
    def gpus(self) -> int:
        """GPUs that take part."""
        return self.tp * self.pp * self.dp * self.cp

    @property
    def micro_batches(self) -> int:
        """Micro-batches of one step that each pipeline runs."""
        return self.global_batch // (self.micro_batch * self.dp)

    @property
    def expert_tp(self) -> int:
        """Ranks that share one expert."""
        return self.etp or self.tp

    @property
    def expert_dp(self) -> int:
        """Replicas of one expert's weights."""
        return max(self.tp * self.dp * self.cp // (self.expert_tp * self.ep), 1)

    @property
    def format(self) -> Precision:
        """Bytes and types of the chosen precision."""
        return PRECISIONS[self.precision]

    @property
    def state_bytes(self) -> float:
        """Optimiser's bytes of one parameter."""
        master = self.format.state_bytes - 8 if self.format.state_bytes >= 8 else 0
        moment = 4 if self.format.state_bytes >= 8 else self.format.state_bytes // 2
        return master + moment * _STATE_OF[self.optimizer]

    def layers_of_stages(self, layers: int) -> tuple[int, ...]:
        """Layers of each stage; what does not divide goes to the middle, where no embedding is."""
        if self.stage_layers:
            return self.stage_layers
        base, left = divmod(layers, self.pp)
        start = (self.pp - left + 1) // 2
        return tuple(base + (start <= stage < start + left) for stage in range(self.pp))


def check_options(model: Transformer, options: TrainOptions) -> None:
    """Refuse a choice that no trainer could run.

    Raises
    ------
    PlanError
        The first thing that is wrong, and what would be right.
    """
    for name in ("tp", "pp", "dp", "cp", "ep", "micro_batch", "global_batch", "seq", "chunks"):
        if getattr(options, name) < 1:
            flag = f"--{name.replace('_', '-')}"
            raise PlanError(f"{flag} is {getattr(options, name)}", hint=f"{flag} is 1 or more")
    _check_shares(model, options)
    _check_batches(options)
    _check_stages(model, options)


def _check_shares(model: Transformer, options: TrainOptions) -> None:
    if model.heads % options.tp:
        raise PlanError(
            f"--tp {options.tp} does not divide the model's {model.heads} heads",
            hint=f"take one of {_divisors(model.heads)}",
        )
    if options.ep > 1 and (model.experts is None or model.experts.count % options.ep):
        count = model.experts.count if model.experts else 0
        raise PlanError(
            f"--ep {options.ep} does not divide the model's {count} experts",
            hint=f"take one of {_divisors(count)}" if count else "the model has none: drop --ep",
        )
    if options.ep > 1 and (options.tp * options.dp * options.cp) % (options.expert_tp * options.ep):
        raise PlanError(
            f"--ep {options.ep} x --etp {options.expert_tp} does not divide tp x dp x cp = "
            f"{options.tp * options.dp * options.cp}",
            hint="experts are spread over the ranks of one pipeline stage",
        )
    if options.seq % options.cp:
        raise PlanError(
            f"--cp {options.cp} does not divide --seq {options.seq}", hint="take a divisor"
        )
    if model.positions and options.seq > model.positions:
        raise PlanError(
            f"--seq {options.seq} is beyond the model's {model.positions} learned positions",
            hint="shorten --seq, or raise the positions in the model file",
        )


def _check_batches(options: TrainOptions) -> None:
    share = options.micro_batch * options.dp
    if options.global_batch % share:
        raise PlanError(
            f"--global-batch {options.global_batch} is no multiple of --micro-batch "
            f"{options.micro_batch} x --dp {options.dp} = {share}",
            hint=f"take {max(options.global_batch // share, 1) * share}",
        )
    if options.chunks > 1 and options.pp == 1:
        raise PlanError("--chunks needs a pipeline", hint="give --pp 2 or more, or drop --chunks")
    if options.chunks > 1 and options.micro_batches % options.pp:
        raise PlanError(
            f"the interleaved schedule needs micro-batches ({options.micro_batches}) in multiples "
            f"of --pp {options.pp}",
            hint="change --micro-batch or --global-batch, or drop --chunks",
        )


def _check_stages(model: Transformer, options: TrainOptions) -> None:
    if options.pp > model.layers:
        raise PlanError(
            f"--pp {options.pp} is more than the model's {model.layers} layers",
            hint=f"--pp is at most {model.layers}",
        )
    if options.stage_layers and (
        len(options.stage_layers) != options.pp or sum(options.stage_layers) != model.layers
    ):
        raise PlanError(
            f"--stage-layers {','.join(map(str, options.stage_layers))}: "
            f"{len(options.stage_layers)} stages of {sum(options.stage_layers)} layers",
            hint=f"give {options.pp} counts that add up to {model.layers}",
        )
    if options.chunks > 1 and model.layers % (options.pp * options.chunks):
        raise PlanError(
            f"{model.layers} layers are not divided by --pp {options.pp} x --chunks "
            f"{options.chunks}",
            hint="the interleaved schedule needs equal chunks",
        )
    if options.zero not in (0, 1, 2, 3):
        raise PlanError(f"--zero {options.zero}", hint="the ZeRO stage is 0, 1, 2 or 3")


def _divisors(count: int) -> str:
    return ", ".join(str(n) for n in range(1, min(count, 64) + 1) if count % n == 0)
