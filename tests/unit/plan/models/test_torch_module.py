"""Modules of PyTorch on the meta device: work and parameters as reckoned by hand."""

from __future__ import annotations

import pytest

from va100.errors import PlanError
from va100.plan.machine import find_machine
from va100.plan.models.torch_module import capture
from va100.plan.program import estimate_program

torch = pytest.importorskip("torch", reason="needs the extra va100[torch]")
GPU = find_machine("a100-sxm4-80gb")


def mlp(width=1024, layers=4, dtype=None):
    with torch.device("meta"):
        parts = [torch.nn.Linear(width, width, dtype=dtype) for _ in range(layers)]
        mixed = [part for linear in parts for part in (linear, torch.nn.GELU())]
        return torch.nn.Sequential(*mixed)


class TestCapture:
    def test_products_of_both_passes(self):
        rows, width, layers = 512, 1024, 4
        inputs = torch.empty(rows, width, device="meta")
        forward = capture(mlp(width, layers), inputs)
        assert forward.flop_count == 2 * rows * width**2 * layers
        assert forward.params == layers * width * (width + 1)
        both = capture(mlp(width, layers), inputs, training=True)
        # The first layer's inputs need no gradient.
        assert both.flop_count == forward.flop_count * 3 - 2 * rows * width**2
        assert both.saved_bytes > forward.saved_bytes

    def test_a_transformer_layer_has_its_published_work(self):
        seq, width = 256, 512
        with torch.device("meta"):
            layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True)
        layer.train()
        program = capture(layer, torch.empty(2, seq, width, device="meta"))
        tokens = 2 * seq
        expected = 24 * tokens * width**2 + 4 * tokens * seq * width
        assert program.flop_count == pytest.approx(expected, rel=0.01)

    def test_convolutions(self):
        with torch.device("meta"):
            module = torch.nn.Conv2d(64, 128, 3, stride=2, padding=1)
        program = capture(module, torch.empty(8, 64, 56, 56, device="meta"), training=True)
        forward = 2 * 8 * 128 * 28 * 28 * 64 * 9
        assert program.flop_count == 3 * forward

    def test_a_real_tensor_is_refused(self):
        with pytest.raises(PlanError, match="is on cpu"):
            capture(torch.nn.Linear(4, 4), torch.empty(1, 4, device="meta"))

    def test_what_needs_data_is_refused(self):
        class Chooses(torch.nn.Module):
            def forward(self, x):
                return x if x.sum().item() > 0 else -x

        with pytest.raises(PlanError, match="does not run on the meta device"):
            capture(Chooses(), torch.empty(4, device="meta"))


class TestEstimate:
    def test_time_memory_and_where_it_goes(self):
        program = capture(
            mlp(4096, 8, torch.bfloat16),
            torch.empty(8192, 4096, device="meta", dtype=torch.bfloat16),
            training=True,
        )
        found = estimate_program(program, GPU, graphs=True)
        assert program.flop_count / found.time_s < GPU.tensor_flop_per_s
        assert program.flop_count / found.time_s > 0.5 * GPU.tensor_flop_per_s
        assert found.forward_s < found.backward_s
        assert found.by_operator[0][0] in ("addmm", "mm")
        assert found.fits

    def test_graphs_save_launches(self):
        program = capture(mlp(64, 50), torch.empty(8, 64, device="meta"))
        plain, graphs = (estimate_program(program, GPU, graphs=g) for g in (False, True))
        assert graphs.time_s < 0.5 * plain.time_s
