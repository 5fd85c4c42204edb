"""ONNX files: work as reckoned by hand, and refusals."""

from __future__ import annotations

import pytest

from va100.errors import PlanError
from va100.plan.machine import find_machine
from va100.plan.models.onnx_file import read_onnx
from va100.plan.program import estimate_program

onnx = pytest.importorskip("onnx", reason="needs the extra va100[onnx]")
GPU = find_machine("a100-sxm4-80gb")


def small_net(path):
    """A convolution, an activation, and a product, with a named batch."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    def weights(name, *shape):
        return numpy_helper.from_array(np.zeros(shape, np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w2"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 64, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 10])],
        [weights("w1", 16, 3, 3, 3), weights("w2", 10, 16)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, str(path))
    return path


class TestReadOnnx:
    def test_work_and_parameters(self, tmp_path):
        program = read_onnx(small_net(tmp_path / "n.onnx"), {"batch": 4})
        assert program.params == 16 * 27 + 160
        assert program.flop_count == 2 * 4 * 16 * 32 * 32 * 27 + 2 * 4 * 16 * 10
        names = [step.name for step in program.steps]
        assert names == ["Conv", "Relu", "GlobalAveragePool", "Gemm"]

    def test_a_larger_batch_takes_longer(self, tmp_path):
        path = small_net(tmp_path / "n.onnx")
        one, many = (
            estimate_program(read_onnx(path, {"batch": b}), GPU, graphs=True) for b in (1, 4096)
        )
        assert one.time_s < many.time_s
        assert one.peak_bytes < many.peak_bytes

    def test_what_is_no_onnx_file(self, tmp_path):
        path = tmp_path / "n.onnx"
        path.write_bytes(b"\xff\xff not a protobuf")
        with pytest.raises(PlanError, match=r"n\.onnx"):
            read_onnx(path)
        with pytest.raises(PlanError, match="no ONNX file"):
            read_onnx(tmp_path / "missing.onnx")
