"""GPUs to compare an A100 with, as their vendor prints them: dense rates, headlines only."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from va100.spec.model import HeadlineSpec, cited
from va100.spec.sources import assumed, datasheet, derived, measured
from va100.units import GB, GIB, TERA

_RATES: Final = (
    "fp64_flop_per_s fp64_tensor_flop_per_s fp32_flop_per_s tf32_tensor_flop_per_s"
    " fp16_tensor_flop_per_s bf16_tensor_flop_per_s fp8_tensor_flop_per_s"
    " int8_tensor_flop_per_s sparse_ratio"
)
_CARD: Final = "memory_kind memory_bytes memory_bytes_per_s link_count nvlink_bytes_per_s"
_IDENTITY: Final = "name architecture compute_capability form_factor"
_RECALLED: Final = assumed("RECALLED", "not re-read")
_MIG: Final = datasheet("MIG-UG", "supported GPUs")
_OGKM: Final = datasheet("OGKM", "README, table of GPUs")
_DGX_PAGES: Final = datasheet("ML-ENG", "accelerator table, quoting the vendor's product page")
_CATALOG: Final = assumed("GPU-CATALOG", "headline row")

A30: Final = HeadlineSpec(
    name="A30",
    product_name="NVIDIA A30",
    architecture="Ampere",
    compute_capability=(8, 0),
    form_factor="PCIe",
    sm_count=56,
    fp64_flop_per_s=5.2 * TERA,
    fp64_tensor_flop_per_s=10.3 * TERA,
    fp32_flop_per_s=10.3 * TERA,
    tf32_tensor_flop_per_s=82 * TERA,
    fp16_tensor_flop_per_s=165 * TERA,
    bf16_tensor_flop_per_s=165 * TERA,
    fp8_tensor_flop_per_s=0.0,
    int8_tensor_flop_per_s=330 * TERA,
    sparse_ratio=2.0,
    memory_kind="HBM2",
    memory_bytes=24 * GIB,
    memory_bytes_per_s=933 * GB,
    link_count=4,
    nvlink_bytes_per_s=200 * GB,
    power_default_w=165,
    mig_instance_count=4,
    sources=cited(
        (_MIG, "mig_instance_count sm_count product_name"),
        (_RECALLED, f"{_IDENTITY} {_RATES} {_CARD} power_default_w"),
    ),
)

A800_SXM4_80GB: Final = HeadlineSpec(
    name="A800-SXM4-80GB",
    product_name="NVIDIA A800-SXM4-80GB",
    architecture="Ampere",
    compute_capability=(8, 0),
    form_factor="SXM4",
    sm_count=108,
    fp64_flop_per_s=9.7 * TERA,
    fp64_tensor_flop_per_s=19.5 * TERA,
    fp32_flop_per_s=19.5 * TERA,
    tf32_tensor_flop_per_s=156 * TERA,
    fp16_tensor_flop_per_s=312 * TERA,
    bf16_tensor_flop_per_s=312 * TERA,
    fp8_tensor_flop_per_s=0.0,
    int8_tensor_flop_per_s=624 * TERA,
    sparse_ratio=2.0,
    memory_kind="HBM2e",
    memory_bytes=80 * GIB,
    memory_bytes_per_s=2039 * GB,
    link_count=8,
    nvlink_bytes_per_s=400 * GB,
    power_default_w=400,
    mig_instance_count=7,
    sources=cited(
        (_OGKM, f"{_IDENTITY} product_name"),
        (derived("A100-DS", "an A100 but for its links"), f"sm_count {_RATES} power_default_w"),
        (derived("A100-DS", "an A100's memory"), "memory_kind memory_bytes memory_bytes_per_s"),
        (derived("A100-DS", "an A100's instances"), "mig_instance_count"),
        (_RECALLED, "link_count nvlink_bytes_per_s"),
    ),
)

A800_PCIE_80GB: Final = replace(
    A800_SXM4_80GB,
    name="A800-PCIE-80GB",
    product_name="NVIDIA A800 80GB PCIe",
    form_factor="PCIe",
    memory_bytes_per_s=1935 * GB,
    power_default_w=300,
)

V100_SXM2_32GB: Final = HeadlineSpec(
    name="V100-SXM2-32GB",
    product_name="Tesla V100-SXM2-32GB",
    architecture="Volta",
    compute_capability=(7, 0),
    form_factor="SXM2",
    sm_count=80,
    fp64_flop_per_s=7.8 * TERA,
    fp64_tensor_flop_per_s=0.0,
    fp32_flop_per_s=15.7 * TERA,
    tf32_tensor_flop_per_s=0.0,
    fp16_tensor_flop_per_s=125 * TERA,
    bf16_tensor_flop_per_s=0.0,
    fp8_tensor_flop_per_s=0.0,
    int8_tensor_flop_per_s=0.0,
    sparse_ratio=1.0,
    memory_kind="HBM2",
    memory_bytes=32 * GIB,
    memory_bytes_per_s=900 * GB,
    link_count=6,
    nvlink_bytes_per_s=300 * GB,
    power_default_w=300,
    mig_instance_count=0,
    sources=cited(
        (datasheet("A100-WP", "table 4, V100 column"), f"sm_count {_RATES} {_CARD}"),
        (datasheet("V100-DS", "SXM2 column"), f"{_IDENTITY} product_name power_default_w"),
        (measured("SMI-XML", "no MIG mode reported"), "mig_instance_count"),
    ),
)

V100_PCIE_32GB: Final = replace(
    V100_SXM2_32GB,
    name="V100-PCIE-32GB",
    product_name="Tesla V100-PCIE-32GB",
    form_factor="PCIe",
    fp64_flop_per_s=7.0 * TERA,
    fp32_flop_per_s=14.0 * TERA,
    fp16_tensor_flop_per_s=112 * TERA,
    link_count=0,
    nvlink_bytes_per_s=0.0,
    power_default_w=250,
    sources=V100_SXM2_32GB.sources.revised(
        (datasheet("V100-DS", "PCIe column"), f"{_RATES} {_CARD}"),
    ),
)

H100_SXM_80GB: Final = HeadlineSpec(
    name="H100-SXM5-80GB",
    product_name="NVIDIA H100 80GB HBM3",
    architecture="Hopper",
    compute_capability=(9, 0),
    form_factor="SXM5",
    sm_count=132,
    fp64_flop_per_s=34 * TERA,
    fp64_tensor_flop_per_s=67 * TERA,
    fp32_flop_per_s=67 * TERA,
    tf32_tensor_flop_per_s=494.5 * TERA,
    fp16_tensor_flop_per_s=989 * TERA,
    bf16_tensor_flop_per_s=989 * TERA,
    fp8_tensor_flop_per_s=1979 * TERA,
    int8_tensor_flop_per_s=1979 * TERA,
    sparse_ratio=2.0,
    memory_kind="HBM3",
    memory_bytes=80 * GIB,
    memory_bytes_per_s=3350 * GB,
    link_count=18,
    nvlink_bytes_per_s=900 * GB,
    power_default_w=700,
    mig_instance_count=7,
    sources=cited(
        (_DGX_PAGES, f"sm_count {_RATES} {_CARD} power_default_w"),
        (measured("SMI-XML", "H100 capture"), f"{_IDENTITY} product_name"),
        (_MIG, "mig_instance_count"),
    ),
)

H100_PCIE_80GB: Final = replace(
    H100_SXM_80GB,
    name="H100-PCIE-80GB",
    product_name="NVIDIA H100 PCIe",
    form_factor="PCIe",
    sm_count=114,
    fp64_flop_per_s=26 * TERA,
    fp64_tensor_flop_per_s=51 * TERA,
    fp32_flop_per_s=51 * TERA,
    tf32_tensor_flop_per_s=378 * TERA,
    fp16_tensor_flop_per_s=756 * TERA,
    bf16_tensor_flop_per_s=756 * TERA,
    fp8_tensor_flop_per_s=1513 * TERA,
    int8_tensor_flop_per_s=1513 * TERA,
    memory_kind="HBM2e",
    memory_bytes_per_s=2000 * GB,
    link_count=12,
    nvlink_bytes_per_s=600 * GB,
    power_default_w=350,
    sources=H100_SXM_80GB.sources.revised(
        (_RECALLED, f"{_IDENTITY} product_name sm_count power_default_w"),
        (_RECALLED, "link_count nvlink_bytes_per_s"),
    ),
)

H200_SXM_141GB: Final = replace(
    H100_SXM_80GB,
    name="H200-SXM5-141GB",
    product_name="NVIDIA H200",
    memory_kind="HBM3e",
    memory_bytes=141 * GIB,
    memory_bytes_per_s=4800 * GB,
    sources=H100_SXM_80GB.sources.revised((_RECALLED, f"{_IDENTITY} product_name")),
)

B200_SXM_180GB: Final = HeadlineSpec(
    name="B200-SXM-180GB",
    product_name="NVIDIA B200",
    architecture="Blackwell",
    compute_capability=(10, 0),
    form_factor="SXM",
    sm_count=148,
    fp64_flop_per_s=37 * TERA,
    fp64_tensor_flop_per_s=37 * TERA,
    fp32_flop_per_s=80 * TERA,
    tf32_tensor_flop_per_s=1125 * TERA,
    fp16_tensor_flop_per_s=2250 * TERA,
    bf16_tensor_flop_per_s=2250 * TERA,
    fp8_tensor_flop_per_s=4500 * TERA,
    int8_tensor_flop_per_s=4500 * TERA,
    sparse_ratio=2.0,
    memory_kind="HBM3e",
    memory_bytes=180 * GIB,
    memory_bytes_per_s=8000 * GB,
    link_count=18,
    nvlink_bytes_per_s=1800 * GB,
    power_default_w=1000,
    mig_instance_count=7,
    sources=cited(
        (
            _DGX_PAGES,
            "fp32_flop_per_s tf32_tensor_flop_per_s fp16_tensor_flop_per_s"
            " bf16_tensor_flop_per_s fp8_tensor_flop_per_s int8_tensor_flop_per_s sparse_ratio"
            f" {_CARD} power_default_w",
        ),
        (_RECALLED, "sm_count fp64_flop_per_s fp64_tensor_flop_per_s"),
        (measured("SMI-XML", "B200 capture"), f"{_IDENTITY} product_name"),
        (_MIG, "mig_instance_count"),
    ),
)

L40S: Final = HeadlineSpec(
    name="L40S",
    product_name="NVIDIA L40S",
    architecture="Ada",
    compute_capability=(8, 9),
    form_factor="PCIe",
    sm_count=142,
    fp64_flop_per_s=1.4 * TERA,
    fp64_tensor_flop_per_s=0.0,
    fp32_flop_per_s=91.6 * TERA,
    tf32_tensor_flop_per_s=183 * TERA,
    fp16_tensor_flop_per_s=362 * TERA,
    bf16_tensor_flop_per_s=362 * TERA,
    fp8_tensor_flop_per_s=733 * TERA,
    int8_tensor_flop_per_s=733 * TERA,
    sparse_ratio=2.0,
    memory_kind="GDDR6",
    memory_bytes=48 * GIB,
    memory_bytes_per_s=864 * GB,
    link_count=0,
    nvlink_bytes_per_s=0.0,
    power_default_w=350,
    mig_instance_count=0,
    sources=cited(
        (_DGX_PAGES, f"sm_count {_RATES} {_CARD} power_default_w"),
        (measured("SMI-XML", "L40S capture"), f"{_IDENTITY} product_name mig_instance_count"),
    ),
)

L4: Final = HeadlineSpec(
    name="L4",
    product_name="NVIDIA L4",
    architecture="Ada",
    compute_capability=(8, 9),
    form_factor="PCIe",
    sm_count=58,
    fp64_flop_per_s=None,
    fp64_tensor_flop_per_s=0.0,
    fp32_flop_per_s=30.3 * TERA,
    tf32_tensor_flop_per_s=60.5 * TERA,
    fp16_tensor_flop_per_s=121 * TERA,
    bf16_tensor_flop_per_s=121 * TERA,
    fp8_tensor_flop_per_s=242.5 * TERA,
    int8_tensor_flop_per_s=242.5 * TERA,
    sparse_ratio=2.0,
    memory_kind="GDDR6",
    memory_bytes=24 * GIB,
    memory_bytes_per_s=300 * GB,
    link_count=0,
    nvlink_bytes_per_s=0.0,
    power_default_w=72,
    mig_instance_count=0,
    sources=cited(
        (_RECALLED, f"{_IDENTITY} product_name sm_count {_RATES} {_CARD} power_default_w"),
        (derived("MIG-UG", "not among the supported GPUs"), "mig_instance_count"),
    ),
)

RTX_4090: Final = HeadlineSpec(
    name="RTX-4090",
    product_name="NVIDIA GeForce RTX 4090",
    architecture="Ada",
    compute_capability=(8, 9),
    form_factor="PCIe",
    sm_count=128,
    fp64_flop_per_s=1.3 * TERA,
    fp64_tensor_flop_per_s=0.0,
    fp32_flop_per_s=82.6 * TERA,
    tf32_tensor_flop_per_s=82.6 * TERA,
    fp16_tensor_flop_per_s=165.2 * TERA,
    bf16_tensor_flop_per_s=165.2 * TERA,
    fp8_tensor_flop_per_s=330.3 * TERA,
    int8_tensor_flop_per_s=660.6 * TERA,
    sparse_ratio=2.0,
    memory_kind="GDDR6X",
    memory_bytes=24 * GIB,
    memory_bytes_per_s=1008 * GB,
    link_count=0,
    nvlink_bytes_per_s=0.0,
    power_default_w=450,
    mig_instance_count=0,
    sources=cited(
        (datasheet("ADA-WP", "RTX 4090 column, FP32 accumulate"), f"{_IDENTITY} sm_count {_RATES}"),
        (datasheet("ADA-WP", "RTX 4090 column"), f"{_CARD} power_default_w product_name"),
        (_RECALLED, "mig_instance_count"),
    ),
)

A10: Final = HeadlineSpec(
    name="A10",
    product_name="NVIDIA A10",
    architecture="Ampere",
    compute_capability=(8, 6),
    form_factor="PCIe",
    sm_count=72,
    fp64_flop_per_s=None,
    fp64_tensor_flop_per_s=0.0,
    fp32_flop_per_s=31.2 * TERA,
    tf32_tensor_flop_per_s=62.5 * TERA,
    fp16_tensor_flop_per_s=125 * TERA,
    bf16_tensor_flop_per_s=125 * TERA,
    fp8_tensor_flop_per_s=0.0,
    int8_tensor_flop_per_s=250 * TERA,
    sparse_ratio=2.0,
    memory_kind="GDDR6",
    memory_bytes=24 * GIB,
    memory_bytes_per_s=600 * GB,
    link_count=0,
    nvlink_bytes_per_s=0.0,
    power_default_w=150,
    mig_instance_count=0,
    sources=cited(
        (_CATALOG, f"{_IDENTITY} product_name sm_count {_RATES} {_CARD} power_default_w"),
        (derived("MIG-UG", "not among the supported GPUs"), "mig_instance_count"),
    ),
)

T4: Final = HeadlineSpec(
    name="T4",
    product_name="Tesla T4",
    architecture="Turing",
    compute_capability=(7, 5),
    form_factor="PCIe",
    sm_count=40,
    fp64_flop_per_s=None,
    fp64_tensor_flop_per_s=0.0,
    fp32_flop_per_s=8.1 * TERA,
    tf32_tensor_flop_per_s=0.0,
    fp16_tensor_flop_per_s=65 * TERA,
    bf16_tensor_flop_per_s=0.0,
    fp8_tensor_flop_per_s=0.0,
    int8_tensor_flop_per_s=130 * TERA,
    sparse_ratio=1.0,
    memory_kind="GDDR6",
    memory_bytes=16 * GIB,
    memory_bytes_per_s=320 * GB,
    link_count=0,
    nvlink_bytes_per_s=0.0,
    power_default_w=70,
    mig_instance_count=0,
    sources=cited(
        (_CATALOG, f"sm_count {_RATES} {_CARD} power_default_w"),
        (measured("SMI-XML", "T4 capture"), f"{_IDENTITY} product_name mig_instance_count"),
    ),
)

MODELS: Final = (
    A30,
    A800_SXM4_80GB,
    A800_PCIE_80GB,
    V100_SXM2_32GB,
    V100_PCIE_32GB,
    H100_SXM_80GB,
    H100_PCIE_80GB,
    H200_SXM_141GB,
    B200_SXM_180GB,
    L40S,
    L4,
    RTX_4090,
    A10,
    T4,
)
