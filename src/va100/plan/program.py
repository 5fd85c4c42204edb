"""A model as the list of operators it was seen to run, whatever it is; and what that takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from va100.errors import PlanError
from va100.perf.operators import conv
from va100.plan.kernels import NOTHING, Cost, Gemm, product, stream
from va100.plan.machine import Machine
from va100.plan.training import longer_s, place_of
from va100.plan.vision import CONTEXT_BYTES, RUNTIMES, Runtime

SHORT: dict[int, str] = {1: "int8", 2: "fp16", 4: "fp32", 8: "fp64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """Shape of a two-dimensional convolution."""

    batch: int
    cin: int
    cout: int
    height: int
    width: int
    ksize: int
    stride: int
    groups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One operator that ran: a product, a convolution, or a pass through memory."""

    name: str
    gemm: tuple[int, int, int, int] | None = None
    """Rows, columns, depth, batch."""
    convolution: Convolution | None = None
    read_bytes: int = 0
    written_bytes: int = 0
    value_bytes: int = 4
    backward: bool = False

    @property
    def flop_count(self) -> float:
        """Multiply-adds times two."""
        if self.gemm is not None:
            m, n, k, batch = self.gemm
            return 2.0 * m * n * k * batch
        if self.convolution is not None:
            c = self.convolution
            outs = -(-c.height // c.stride) * -(-c.width // c.stride)
            return 2.0 * c.batch * c.cout * outs * c.cin / c.groups * c.ksize**2
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Operators in order, with what the model holds."""

    name: str
    steps: tuple[Step, ...]
    params: int
    param_bytes: int
    saved_bytes: int
    """Results alive at the end of the forward pass, or the largest two without a backward one."""

    @property
    def flop_count(self) -> float:
        """Work of all steps."""
        return sum(step.flop_count for step in self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramEstimate:
    """What a program takes on one GPU."""

    program: Program
    machine: Machine
    fits: bool
    time_s: float
    forward_s: float
    backward_s: float
    launch_s: float
    band: tuple[float, float]
    peak_bytes: int
    energy_j: float
    by_operator: tuple[tuple[str, float], ...]
    """Seconds by operator's name, longest first."""


def estimate_program(
    program: Program,
    machine: Machine,
    *,
    tf32: bool = True,
    graphs: bool = False,
    runtime: Runtime = RUNTIMES["framework"],
) -> ProgramEstimate:
    """Price every operator.

    Raises
    ------
    PlanError
        The GPU lacks a type that the program multiplies in.
    """
    costs = [_cost(step, machine.chip, tf32=tf32) for step in program.steps]
    forward = _sum([c for c, s in zip(costs, program.steps, strict=True) if not s.backward])
    backward = _sum([c for c, s in zip(costs, program.steps, strict=True) if s.backward])
    whole = forward + backward
    host_s = 0.0 if graphs else whole.kernels * runtime.host_kernel_s
    time_s = longer_s(whole.time_s, host_s, 6.0)
    by_name: dict[str, float] = {}
    for step, cost in zip(program.steps, costs, strict=True):
        by_name[step.name] = by_name.get(step.name, 0.0) + cost.time_s
    states = 4 if backward.kernels else 1
    peak = program.param_bytes * states + program.saved_bytes + CONTEXT_BYTES
    waiting = (time_s - whole.time_s) * place_of(machine).waiting_w
    within = runtime.within_ratio
    share = time_s / max(whole.time_s, 1e-30)
    return ProgramEstimate(
        program=program,
        machine=machine,
        fits=peak <= machine.memory_bytes,
        time_s=time_s,
        forward_s=forward.time_s * share,
        backward_s=backward.time_s * share,
        launch_s=time_s - whole.time_s,
        band=(time_s / (1 + within), time_s / (1 - within)),
        peak_bytes=peak,
        energy_j=whole.energy_j + waiting,
        by_operator=tuple(sorted(by_name.items(), key=lambda item: (-item[1], item[0]))),
    )


def _sum(costs: Sequence[Cost]) -> Cost:
    total = NOTHING
    for cost in costs:
        total = total + cost
    return total


def _cost(step: Step, chip: str, *, tf32: bool) -> Cost:
    dtype = SHORT.get(step.value_bytes, "fp32")
    if dtype == "fp32" and tf32:
        dtype = "tf32"
    if step.gemm is not None:
        m, n, k, batch = step.gemm
        return product(Gemm(m, n, k, batch, dtype, chip))
    if step.convolution is None:
        return stream(step.read_bytes, step.written_bytes, chip)
    c = step.convolution
    try:
        found = conv.estimate(
            c.batch, c.cin, c.cout, c.height, c.width,
            ksize=c.ksize, stride=c.stride, groups=c.groups, dtype=dtype, chip=chip,
        )  # fmt: skip
    except ValueError as error:
        raise PlanError(str(error), hint="choose another precision or machine") from error
    return Cost(found.time_s, found.energy_j, step.flop_count, 1)
