"""Row names as people write them."""

import pytest

from va100.spec.claims.labels import divisor_of, label_of, labels_in, says_sparse


class TestLabelOf:
    @pytest.mark.parametrize(
        ("heading", "key"),
        [
            ("FP64", "fp64_flop_per_s"),
            ("Peak FP64", "fp64_flop_per_s"),
            ("Double precision", "fp64_flop_per_s"),
            ("FP64 Tensor Core", "fp64_tensor_flop_per_s"),
            ("Peak FP64 Tensor Core (TFLOPS)", "fp64_tensor_flop_per_s"),
            ("FP32", "fp32_flop_per_s"),
            ("Tensor Float 32 (TF32)", "tf32_tensor_flop_per_s"),
            ("TF32 Tensor Core", "tf32_tensor_flop_per_s"),
            ("BFLOAT16 Tensor Core", "bf16_tensor_flop_per_s"),
            ("FP16 TFLOPS (Tensor)", "fp16_tensor_flop_per_s"),
            ("FP16 Tensor with FP32 Accumulate", "fp16_tensor_flop_per_s"),
            ("FP16 (non-tensor)", "fp16_flop_per_s"),
            ("INT8 Tensor Core", "int8_tensor_flop_per_s"),
            ("TF32 with sparsity", "tf32_tensor_sparse_flop_per_s"),
            ("TF32 without sparsity", "tf32_tensor_flop_per_s"),
            ("FP8", "fp8_tensor_flop_per_s"),
            ("CUDA Cores", "fp32_lane_count"),
            ("FP32 cores", "fp32_lane_count"),
            ("FP64 cores", None),
            ("Tensor Cores", "tensor_core_count"),
            ("SMs", "sm_count"),
            ("GPU Memory", "memory_bytes"),
            ("GPU Memory Bandwidth", "memory_bytes_per_s"),
            ("HBM2e bandwidth", "memory_bytes_per_s"),
            ("\u663e\u5b58\u5e26\u5bbd", "memory_bytes_per_s"),
            ("Memory Interface", "memory_bus_bits"),
            ("Memory clock", "memory_clock_hz"),
            ("L2 Cache Size", "l2_bytes"),
            ("Max TDP", "power_default_w"),
            ("Max Thermal Design Power (TDP)", "power_default_w"),
            ("Multi-Instance GPU", "mig_instance_count"),
            ("MIG", "mig_instance_count"),
            ("NVLink", "nvlink_bytes_per_s"),
            ("PCIe Gen4", "pcie_bytes_per_s"),
            ("Form Factor", "form_factor"),
            ("Release date", "announced"),
            ("Interconnect", None),
            ("Warranty", None),
            ("", None),
        ],
    )
    def test_headings(self, heading, key):
        assert label_of(heading) == key


class TestLabelsIn:
    def test_longest_name_wins(self):
        found = labels_in("FP64 19.5 TFLOPS and FP64 Tensor 156 TFLOPS")
        assert [label.key for label in found] == ["fp64_flop_per_s", "fp64_tensor_flop_per_s"]

    def test_bandwidth_of_the_link_named_before(self):
        found = labels_in("NVLink offers a total bandwidth of 600 GB/s")
        assert [label.key for label in found] == ["nvlink_bytes_per_s"]

    def test_bandwidth_alone_is_memorys(self):
        assert [label.key for label in labels_in("a bandwidth of 2 TB/s")] == ["memory_bytes_per_s"]


def test_sparsity_and_its_denial():
    assert says_sparse("INT8 (sparse)")
    assert not says_sparse("INT8 (no sparsity)")
    assert not says_sparse("INT8")


def test_divisors():
    assert divisor_of("per direction") == "direction"
    assert divisor_of("50 GB/s per link") == "link"
    assert divisor_of("in total") == ""
