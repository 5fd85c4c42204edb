"""An ONNX file to a :class:`~va100.plan.program.Program`: inference, with shapes inferred.

Needs the extra ``onnx``; only this module knows it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from va100.errors import PlanError, SetupError
from va100.plan.program import Convolution, Program, Step

_NOTHING = frozenset(
    "Constant Identity Reshape Squeeze Unsqueeze Flatten Shape Cast ConstantOfShape Dropout".split()
)
Shape = tuple[int, ...]


def read_onnx(path: Path, sizes: Mapping[str, int] | None = None) -> Program:
    """Operators of a file.

    Parameters
    ----------
    sizes : mapping
        Values of named dimensions, such as ``batch``; unnamed and unmentioned ones are 1.

    Raises
    ------
    SetupError
        The package ``onnx`` is not installed.
    PlanError
        The file cannot be read, or the shape of an operator's operand stays unknown.
    """
    onnx = _onnx()
    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:
        raise PlanError(f"{path}: no ONNX file: {error}", hint="give an .onnx file") from error
    _name_dimensions(model, sizes or {})
    inferred = onnx.shape_inference.infer_shapes(model)
    graph = _Graph(onnx, inferred.graph, str(path))
    steps = [step for node in inferred.graph.node for step in graph.steps(node)]
    largest = max((math.prod(shape) * each for shape, each in graph.values()), default=0)
    return Program(
        name=path.stem,
        steps=tuple(steps),
        params=graph.params,
        param_bytes=graph.param_bytes,
        saved_bytes=2 * largest,
    )


def _onnx() -> Any:
    try:
        import onnx  # noqa: PLC0415
        import onnx.shape_inference  # noqa: PLC0415
    except ImportError as error:
        raise SetupError(
            "reading ONNX files needs onnx", remedy="pip install 'va100[onnx]'"
        ) from error
    return onnx


def _name_dimensions(model: Any, sizes: Mapping[str, int]) -> None:
    for value in model.graph.input:
        for dimension in value.type.tensor_type.shape.dim:
            if not dimension.dim_value:
                dimension.dim_value = int(sizes.get(dimension.dim_param, 1))


class _Graph:
    """Shapes and types of a graph's values."""

    def __init__(self, onnx: Any, graph: Any, where: str) -> None:
        self._where = where
        self._shapes: dict[str, tuple[Shape, int]] = {}
        self.params = self.param_bytes = 0
        for value in (*graph.input, *graph.value_info, *graph.output):
            kind = value.type.tensor_type
            shape = tuple(int(d.dim_value) or 1 for d in kind.shape.dim)
            self._shapes[value.name] = (shape, _bytes_of(onnx, kind.elem_type))
        for tensor in graph.initializer:
            shape, each = tuple(tensor.dims), _bytes_of(onnx, tensor.data_type)
            self._shapes[tensor.name] = (shape, each)
            self.params += math.prod(shape)
            self.param_bytes += math.prod(shape) * each

    def values(self) -> Sequence[tuple[Shape, int]]:
        """Shapes and bytes of all values."""
        return list(self._shapes.values())

    def steps(self, node: Any) -> list[Step]:
        """What one node runs."""
        if node.op_type in _NOTHING:
            return []
        if node.op_type in ("MatMul", "Gemm"):
            return [self._product(node)]
        if node.op_type == "Conv":
            return [self._convolution(node)]
        known = self._shapes
        read = sum(math.prod(s) * e for s, e in (known[n] for n in node.input if n in known))
        written = sum(math.prod(s) * e for s, e in (known[n] for n in node.output if n in known))
        if not written:
            return []
        return [Step(name=node.op_type, read_bytes=int(read), written_bytes=int(written))]

    def _of(self, node: Any, index: int) -> tuple[Shape, int]:
        name = node.input[index]
        if name not in self._shapes:
            raise PlanError(
                f"{self._where}: {node.op_type} {node.name!r}: the shape of {name!r} is unknown",
                hint="export with fixed shapes, or run onnx's shape inference first",
            )
        return self._shapes[name]

    def _product(self, node: Any) -> Step:
        (left, each), (right, _) = self._of(node, 0), self._of(node, 1)
        flags = {a.name: a.i for a in node.attribute}
        if flags.get("transA"):
            left = (*left[:-2], left[-1], left[-2])
        if flags.get("transB"):
            right = (*right[:-2], right[-1], right[-2])
        if len(right) < 2:
            right = (*right, 1)
        if len(left) < 2:
            left = (1, *left)
        shared = len(right) == 2
        rows = math.prod(left[:-1]) if shared else left[-2]
        batch = 1 if shared else max(math.prod(left[:-2]), math.prod(right[:-2]))
        return Step(name=node.op_type, gemm=(rows, right[-1], left[-1], batch), value_bytes=each)

    def _convolution(self, node: Any) -> Step:
        (image, each), (weight, _) = self._of(node, 0), self._of(node, 1)
        given: dict[str, Any] = {a.name: list(a.ints) or a.i for a in node.attribute}
        stride = int((given.get("strides") or [1])[0])
        groups = int(given.get("group") or 1)
        if len(image) != 4:
            outs = math.prod(image[2:]) // stride ** (len(image) - 2)
            shape = (image[0] * outs, weight[0], math.prod(weight[1:]), 1)
            return Step(name="Conv", gemm=shape, value_bytes=each)
        convolution = Convolution(
            batch=image[0], cin=image[1], cout=weight[0], height=image[2], width=image[3],
            ksize=weight[2], stride=stride, groups=groups,
        )  # fmt: skip
        return Step(name="Conv", convolution=convolution, value_bytes=each)


def _bytes_of(onnx: Any, kind: int) -> int:
    types = onnx.TensorProto
    sizes = {
        types.FLOAT: 4, types.FLOAT16: 2, types.BFLOAT16: 2, types.DOUBLE: 8, types.INT8: 1,
        types.UINT8: 1, types.INT32: 4, types.INT64: 8, types.BOOL: 1,
    }  # fmt: skip
    return int(sizes.get(kind, 4))
