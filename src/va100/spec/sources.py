"""The documents that facts come from: their keys, and short ways to cite them.

``docs/sources.md`` says where each can be found; a test keeps the two lists equal.
"""

from __future__ import annotations

from typing import Final

from va100.spec.model import Confidence, Source

TITLES: Final = {
    "A100-WP": "NVIDIA A100 Tensor Core GPU Architecture, white paper",
    "A100-DS": "NVIDIA A100 datasheet",
    "CUDA-PG": "CUDA C++ Programming Guide 13.1",
    "CUDA-PG-11": "CUDA C++ Programming Guide, editions with the throughput table",
    "CUDA-HEADERS": "Headers of the CUDA runtime 12.9",
    "NVML-HEADER": "NVML header",
    "OGKM": "NVIDIA open GPU kernel modules 595.45.04",
    "XLA-SPECS": "OpenXLA GPU target descriptions",
    "DEVICEQUERY": "Dumps of deviceQuery on A100s",
    "SMI-XML": "Captures of nvidia-smi -q -x",
    "MIG-UG": "NVIDIA Multi-Instance GPU User Guide",
    "MIG-TEXT": "Transcripts of nvidia-smi mig",
    "FM-UG": "NVIDIA Fabric Manager User Guide",
    "GPU-BENCHES": "gpu-benches, raw results on A100s",
    "MT4G": "mt4g, A100-PCIE-40GB report",
    "KTUNER-ENERGY": "Kernel Tuner tutorial, energy data, A100-PCIE-40GB",
    "AICONFIG": "aiconfigurator, A100-SXM4-80GB measurements",
    "VIDUR": "Vidur, network profiles of A100 nodes",
    "VTRAIN": "vTrain, all-reduce tables of an A100 node",
    "NCCL": "NVIDIA NCCL, topology and tuning sources",
    "GPU-INSPECTOR": "GPUInspector, figures of a DGX A100",
    "SUPERBENCH": "SuperBench, copy bandwidth log",
    "K8S-MOCK": "NVIDIA k8s-test-infra, profiles of simulated GPUs",
    "GPU-POWER": "GPU_Power_Benchmark, overall results",
    "AMPERE-MICRO": "Demystifying the Nvidia Ampere Architecture through Microbenchmarking",
    "MLPERF": "MLPerf system descriptions and results",
    "ML-ENG": "Machine Learning Engineering, accelerator pages",
    "GPU-DB": "Third-party table of GPU clocks and dates",
    "KLOCKWOOD": "Glenn Lockwood's notes on the A100",
    "V100-DS": "NVIDIA V100 datasheet and white paper",
    "ADA-WP": "NVIDIA Ada GPU Architecture, white paper",
    "GPU-CATALOG": "Third-party catalogues of GPU headline figures",
    "AZURE-HEALTH": "Azure HPC health checks and VM topologies",
    "AWS-TOPOLOGY": "AWS p4d and p4de topologies",
    "AWS-PRICES": "Copies of the AWS price list",
    "AZURE-PRICES": "Copies of Azure prices",
    "GCP-PRICES": "Copies of Google Cloud prices",
    "OCI-SHAPES": "Copies of Oracle Cloud shapes and prices",
    "RECALLED": "Stated from general knowledge; no document was read",
}
"""Key to title."""


def datasheet(key: str, where: str) -> Source:
    """Cite what a vendor printed."""
    return Source(key=key, where=where, confidence=Confidence.DATASHEET)


def measured(key: str, where: str) -> Source:
    """Cite a reading of a real machine."""
    return Source(key=key, where=where, confidence=Confidence.MEASURED)


def derived(key: str, where: str) -> Source:
    """Cite the document a number was reckoned from; ``where`` says how."""
    return Source(key=key, where=where, confidence=Confidence.DERIVED)


def assumed(key: str, where: str) -> Source:
    """Cite a third party alone, or nothing but recollection."""
    return Source(key=key, where=where, confidence=Confidence.ASSUMED)
