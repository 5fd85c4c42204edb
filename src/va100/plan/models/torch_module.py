"""A PyTorch module to a :class:`~va100.plan.program.Program`, seen through operator dispatch.

The module and its inputs are on the meta device, so nothing is computed and nothing allocated.
Needs the extra ``torch``; only this module knows it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from va100.errors import PlanError, SetupError
from va100.plan.program import Convolution, Program, Step

_VIEWS = frozenset(
    "view _unsafe_view t transpose permute expand slice select unsqueeze squeeze alias detach "
    "as_strided split split_with_sizes unbind _reshape_alias narrow lift_fresh "
    "empty empty_like new_empty new_empty_strided".split()
)
_PRODUCTS = frozenset(("mm", "bmm", "addmm", "baddbmm"))
_CORES = ("_scaled_dot_product", "_flash_attention", "_efficient_attention")


def capture(module: Any, *inputs: Any, training: bool = False, name: str = "") -> Program:
    """Run a module on meta tensors and list what it ran.

    Parameters
    ----------
    module : torch.nn.Module
        On the meta device.
    inputs
        Tensors on the meta device, or other values.
    training : bool
        Run the backward pass of the sum of what it puts out as well.

    Raises
    ------
    SetupError
        PyTorch is not installed.
    PlanError
        A parameter or input is not on the meta device, or an operator cannot run there.
    """
    torch, mode_class = _torch()
    tensors = [*module.parameters(), *module.buffers(), *inputs]
    real = [t for t in tensors if isinstance(t, torch.Tensor) and t.device.type != "meta"]
    if real:
        raise PlanError(
            f"a tensor of {tuple(real[0].shape)} is on {real[0].device}",
            hint="make the module under `with torch.device('meta')`, or move it there",
        )
    seen = _Seen(torch)
    with mode_class(seen.take):
        try:
            out = module(*inputs)
            if training:
                seen.backward = True
                sum(t.sum() for t in _tensors(torch, out)).backward()
        except (NotImplementedError, RuntimeError) as error:
            raise PlanError(
                f"{type(module).__name__} does not run on the meta device: {error}",
                hint="an operator of it needs real data: give its shapes in YAML instead",
            ) from error
    params = sum(p.numel() for p in module.parameters())
    kept = seen.forward_bytes if training else 2 * seen.largest_bytes
    return Program(
        name=name or type(module).__name__,
        steps=tuple(seen.steps),
        params=params,
        param_bytes=sum(p.numel() * p.element_size() for p in module.parameters()),
        saved_bytes=kept,
    )


def _torch() -> tuple[Any, Any]:
    try:
        import torch  # noqa: PLC0415
        from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC0415
    except ImportError as error:
        raise SetupError(
            "reading PyTorch modules needs PyTorch", remedy="pip install 'va100[torch]'"
        ) from error

    class Listing(TorchDispatchMode):  # type: ignore[misc]
        """Hands every operator that runs to a function."""

        def __init__(self, take: Any) -> None:
            super().__init__()
            self._take = take

        def __torch_dispatch__(
            self, function: Any, _types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = function(*args, **(kwargs or {}))
            self._take(function, args, kwargs or {}, result)
            return result

    return torch, Listing


def _tensors(torch: Any, value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in _tensors(torch, part)]
    return []


class _Seen:
    """Operators seen so far."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.steps: list[Step] = []
        self.backward = False
        self.forward_bytes = 0
        self.largest_bytes = 0

    def take(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> None:
        """Note one operator."""
        name = str(function.name()).partition("::")[2].partition(".")[0]
        if name in _VIEWS:
            return
        outs = _tensors(self._torch, result)
        ins = _tensors(self._torch, [*args, *kwargs.values()])
        written = sum(t.numel() * t.element_size() for t in outs)
        if not outs or not written:
            return
        if not self.backward:
            self.forward_bytes += written
        self.largest_bytes = max(self.largest_bytes, written)
        self.steps += self._steps(name, ins, outs, args)

    def _steps(self, name: str, ins: list[Any], outs: list[Any], args: Sequence[Any]) -> list[Step]:
        each = outs[0].element_size()
        if name in _PRODUCTS:
            left, right = ins[-2], ins[-1]
            batch = left.shape[0] if left.dim() == 3 else 1
            shape = (left.shape[-2], right.shape[-1], left.shape[-1], batch)
            return [self._step(name, each, gemm=tuple(int(n) for n in shape))]
        if name in ("convolution", "convolution_backward"):
            return self._convolutions(name, ins, args)
        if any(core in name for core in _CORES):
            return self._attention(name, ins)
        read = sum(t.numel() * t.element_size() for t in ins)
        written = sum(t.numel() * t.element_size() for t in outs)
        return [self._step(name, each, read_bytes=int(read), written_bytes=int(written))]

    def _step(self, name: str, each: int, **fields: Any) -> Step:
        return Step(name=name, value_bytes=each, backward=self.backward, **fields)

    def _attention(self, name: str, ins: list[Any]) -> list[Step]:
        """Queries times keys, and weights times values; twice and a half as much backward."""
        first = 1 if "backward" in name else 0
        query, key = ins[first], ins[first + 1]
        rows, head = int(query.shape[-2]), int(query.shape[-1])
        batch, keys = int(math.prod(query.shape[:-2])), int(key.shape[-2])
        each = query.element_size()
        pair = [(rows, keys, head, batch), (rows, head, keys, batch)]
        shapes = pair * 2 + pair[:1] if "backward" in name else pair
        return [self._step(name, each, gemm=shape) for shape in shapes]

    def _convolutions(self, name: str, ins: list[Any], args: Sequence[Any]) -> list[Step]:
        backward = name == "convolution_backward"
        image, weight = (ins[1], ins[2]) if backward else (ins[0], ins[1])
        stride = args[4 if backward else 3][0]
        groups = int(args[9 if backward else 8])
        each = image.element_size()
        if image.dim() != 4:
            taps = math.prod(weight.shape[1:])
            outs = math.prod(image.shape[2:]) // stride ** (image.dim() - 2)
            shape = (int(image.shape[0] * outs), int(weight.shape[0]), int(taps), 1)
            return [self._step(name, each, gemm=shape)] * (2 if backward else 1)
        convolution = Convolution(
            batch=int(image.shape[0]), cin=int(image.shape[1]), cout=int(weight.shape[0]),
            height=int(image.shape[2]), width=int(image.shape[3]), ksize=int(weight.shape[2]),
            stride=int(stride), groups=groups,
        )  # fmt: skip
        return [self._step(name, each, convolution=convolution)] * (2 if backward else 1)
