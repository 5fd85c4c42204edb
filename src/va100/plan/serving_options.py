"""How a model is served: parallelism, numbers, memory for the cache, batching, engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from va100.errors import PlanError
from va100.plan.workload import Transformer
from va100.units import MS, US


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """How weights of the layers are held, and what type their products are done in."""

    name: str
    weight_bits: float
    gemm: str


WEIGHTS: Final[Mapping[str, WeightFormat]] = MappingProxyType(
    {
        "bf16": WeightFormat("bf16", 16, "bf16"),
        "fp16": WeightFormat("fp16", 16, "fp16"),
        "w8a8": WeightFormat("w8a8", 8, "int8"),
        "w8a16": WeightFormat("w8a16", 8, "w8a16"),
        "w4a16": WeightFormat("w4a16", 4.25, "w4a16"),
        "fp8": WeightFormat("fp8", 8, "fp8"),
    }
)
"""By name; four-bit weights with a 16-bit scale and zero for each 128.  The embedding and the
output matrix stay 16 bits wide."""
CACHE_BYTES: Final[Mapping[str, int]] = MappingProxyType({"bf16": 2, "fp16": 2, "int8": 1})


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One serving engine as a handful of constants, fitted as ``docs/planning.md`` says.

    Attributes
    ----------
    product_ratio, stream_ratio, attention_ratio, exchange_ratio : float
        Time inside a step over the same alone.
    exchange_s : float
        What a collective adds between two kernels beside its own time.
    prefill_host_s, decode_host_s : float
        Host time of a step that the chip waits for: scheduling, inputs, sampling.
    request_host_s : float
        The same, for each sequence of a step.
    kernel_s : float
        Host time to issue one kernel of a prefill; decode steps are replayed graphs.
    within_ratio : float
        Error that nine of ten measured requests stayed within.
    """

    name: str
    text: str
    product_ratio: float
    stream_ratio: float
    attention_ratio: float
    exchange_ratio: float
    exchange_s: float
    prefill_host_s: float
    decode_host_s: float
    request_host_s: float
    kernel_s: float
    within_ratio: float


ENGINES: Final[Mapping[str, Engine]] = MappingProxyType(
    {
        engine.name: engine
        for engine in (
            Engine(
                name="vllm",
                text="vLLM as of 2024, CUDA graphs for decode",
                product_ratio=1.0,
                stream_ratio=1.0,
                attention_ratio=1.0,
                exchange_ratio=1.0,
                exchange_s=0.0,
                prefill_host_s=5 * MS,
                decode_host_s=1 * MS,
                request_host_s=85 * US,
                kernel_s=6 * US,
                within_ratio=0.21,
            ),
            Engine(
                name="vllm-server",
                text="vLLM 0.5 of 2024 behind its HTTP server, every token streamed",
                product_ratio=1.0,
                stream_ratio=1.0,
                attention_ratio=1.0,
                exchange_ratio=1.0,
                exchange_s=40 * US,
                prefill_host_s=8 * MS,
                decode_host_s=5 * MS,
                request_host_s=350 * US,
                kernel_s=6 * US,
                within_ratio=0.35,
            ),
            Engine(
                name="fastertransformer",
                text="FasterTransformer 5: native, no graphs, no batching of what comes later",
                product_ratio=1.03,
                stream_ratio=0.8,
                attention_ratio=1.0,
                exchange_ratio=1.0,
                exchange_s=28 * US,
                prefill_host_s=0.5 * MS,
                decode_host_s=0.1 * MS,
                request_host_s=1 * US,
                kernel_s=4 * US,
                within_ratio=0.17,
            ),
            Engine(
                name="tensorrt-llm",
                text="TensorRT-LLM as of 2024, native scheduler",
                product_ratio=1.0,
                stream_ratio=0.8,
                attention_ratio=1.0,
                exchange_ratio=1.0,
                exchange_s=0.0,
                prefill_host_s=1 * MS,
                decode_host_s=0.5 * MS,
                request_host_s=25 * US,
                kernel_s=3 * US,
                within_ratio=0.57,
            ),
        )
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """One way of serving.

    ``batch`` sequences of ``prompt`` tokens come together and get ``output`` tokens each.
    ``chunk`` bounds the tokens of one step (0: prompts are not cut).
    """

    tp: int = 1
    pp: int = 1
    batch: int = 1
    prompt: int = 1024
    output: int = 256
    weights: str = "bf16"
    cache: str = "bf16"
    memory_share: float = 0.9
    chunk: int = 8192
    most_sequences: int = 256
    block: int = 16
    max_context: int = 0
    stage_layers: tuple[int, ...] = ()
    engine: Engine = ENGINES["vllm"]
    graphs: bool = True

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.tp * self.pp

    @property
    def format(self) -> WeightFormat:
        """How weights are held."""
        return WEIGHTS[self.weights]

    @property
    def dtype(self) -> str:
        """Type of activations."""
        return "fp16" if self.weights == "fp16" else "bf16"

    def layers_of_stages(self, layers: int) -> tuple[int, ...]:
        """Layers of each stage; what does not divide goes to the first ones but the last."""
        if self.stage_layers:
            return self.stage_layers
        base, left = divmod(layers, self.pp)
        return tuple(base + (stage < left) for stage in range(self.pp))


def check_serving(model: Transformer, options: ServeOptions) -> None:
    """Refuse a choice that no engine could run.

    Raises
    ------
    PlanError
        The first thing that is wrong, and what would be right.
    """
    if not model.causal:
        raise PlanError(
            f"{model.name} is an encoder: it generates nothing",
            hint="`va100 plan vision --model` prices one pass of it",
        )
    if model.heads % options.tp:
        raise PlanError(
            f"--tp {options.tp} does not divide the model's {model.heads} heads",
            hint="take a divisor",
        )
    if options.pp > model.layers:
        raise PlanError(
            f"--pp {options.pp} is more than the model's {model.layers} layers",
            hint=f"--pp is at most {model.layers}",
        )
    if options.stage_layers and (
        len(options.stage_layers) != options.pp or sum(options.stage_layers) != model.layers
    ):
        raise PlanError(
            f"--stage-layers: {len(options.stage_layers)} stages of {sum(options.stage_layers)}",
            hint=f"give {options.pp} counts that add up to {model.layers}",
        )
    wanted = options.prompt + options.output
    limit = options.max_context or model.max_context
    if limit and wanted > limit:
        raise PlanError(
            f"--prompt {options.prompt} + --output {options.output} = {wanted} tokens, but the "
            f"model takes {limit}",
            hint="shorten them, or raise --max-context if the model's positions can be stretched",
        )
