"""Cloud instances that carry A100s: shape, how the GPUs meet, and prices as of a day.

Prices are copies of price lists, never live; whoever shows one shows its date.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from va100.spec.a100 import A100_PCIE_80GB, A100_SXM4_40GB, A100_SXM4_80GB
from va100.spec.model import ChipSpec, CloudInstanceSpec, PriceSpec, Source, cited
from va100.spec.sources import assumed, measured
from va100.units import GB, GBIT, GIB, TB

_SHAPE: Final = (
    "provider name gpu_model gpu_count vcpu_count memory_bytes pcie_generation numa_count gpu_link"
)
_NETWORK: Final = "network_bytes_per_s network"

_AWS_PRICE: Final = measured("AWS-PRICES", "copy of the public price list")
_AZURE_PRICE: Final = assumed("AZURE-PRICES", "third-party copy")
_GCP_PRICE: Final = measured("GCP-PRICES", "copy of the price catalogue")
_OCI_PRICE: Final = measured("OCI-SHAPES", "copy of the price list")
_MARKET_PRICE: Final = assumed(
    "GPU-CATALOG", "third-party comparison; which of the 80 GB cards is a guess where both exist"
)


def _price(usd: float, market: str, region: str, date: str, source: Source) -> PriceSpec:
    return PriceSpec(
        price_usd_per_h=usd,
        market=market,
        region=region,
        date=date,
        sources=cited((source, "price_usd_per_h market region date")),
    )


class _Shape(NamedTuple):
    """An instance's shape as its provider describes it, and who says so."""

    provider: str
    name: str
    gpu: ChipSpec
    gpus: int
    vcpus: int | None
    gibibytes: int | None
    gigabits: float | None
    network: str
    pcie: int | None
    numa: int | None
    link: str
    disk: float | None
    shape: Source
    network_source: Source
    disk_source: Source
    prices: tuple[PriceSpec, ...]


_AWS: Final = measured("AWS-TOPOLOGY", "p4d and p4de topology files and captures")
_NDV4: Final = measured("AZURE-HEALTH", "NDv4 topology")
_NCV4: Final = measured("AZURE-HEALTH", "NCv4 topology")
_MLPERF: Final = measured("MLPERF", "system descriptions from Azure")
_AZURE_SHAPE: Final = assumed("AZURE-PRICES", "third-party copy of the shape")
_GCP: Final = measured("GCP-PRICES", "copy of the machine catalogue")
_OCI: Final = measured("OCI-SHAPES", "copy of the shape list")
_RECALLED: Final = assumed("RECALLED", "not re-read")
_MARKET: Final = assumed("GPU-CATALOG", "third-party comparison; only the GPU and the price known")

_HDR8: Final = "8 x 200 Gbit/s HDR InfiniBand"
_EFA: Final = "4 x 100 Gbit/s EFA"

_ROWS: Final = (
    _Shape(
        "AWS",
        "p4d.24xlarge",
        A100_SXM4_40GB,
        8,
        96,
        1152,
        400,
        _EFA,
        3,
        2,
        "nvswitch",
        8 * TB,
        _AWS,
        _AWS,
        _AWS,
        (
            _price(21.957642, "on-demand", "us-east-1", "2026-09-25", _AWS_PRICE),
            _price(32.7726, "on-demand", "us-east-1", "before 2025-06", _AWS_PRICE),
            _price(16.30, "spot", "us-east-1", "by 2026-11", assumed("AWS-PRICES", "approximate")),
        ),
    ),
    _Shape(
        "AWS",
        "p4de.24xlarge",
        A100_SXM4_80GB,
        8,
        96,
        1152,
        400,
        _EFA,
        3,
        2,
        "nvswitch",
        8 * TB,
        _AWS,
        _AWS,
        _AWS,
        (
            _price(27.44705, "on-demand", "us-east-1", "2026-03-04", _AWS_PRICE),
            _price(40.9657, "on-demand", "us-east-1", "before 2026-03", _AWS_PRICE),
        ),
    ),
    _Shape(
        "Azure",
        "ND96asr_v4",
        A100_SXM4_40GB,
        8,
        96,
        900,
        1600,
        _HDR8,
        4,
        4,
        "nvswitch",
        6.4 * TB,
        _NDV4,
        _NDV4,
        _AZURE_SHAPE,
        (_price(27.20, "on-demand", "eastus", "before 2026", _AZURE_PRICE),),
    ),
    _Shape(
        "Azure",
        "ND96amsr_A100_v4",
        A100_SXM4_80GB,
        8,
        96,
        1900,
        1600,
        _HDR8,
        4,
        4,
        "nvswitch",
        8 * TB,
        _NDV4,
        _NDV4,
        _MLPERF,
        (
            _price(32.77, "on-demand", "eastus", "before 2026", _AZURE_PRICE),
            _price(40.96, "on-demand", "uksouth", "2026", _AZURE_PRICE),
            _price(12.89, "spot", "uksouth", "2026", _AZURE_PRICE),
        ),
    ),
    _Shape(
        "Azure",
        "NC24ads_A100_v4",
        A100_PCIE_80GB,
        1,
        24,
        220,
        20,
        "20 Gbit/s Ethernet",
        4,
        1,
        "none",
        960 * GB,
        _NCV4,
        _AZURE_SHAPE,
        _AZURE_SHAPE,
        (
            _price(3.673, "on-demand", "eastus", "2026", _AZURE_PRICE),
            _price(0.679, "spot", "eastus", "2026", _AZURE_PRICE),
        ),
    ),
    _Shape(
        "Azure",
        "NC48ads_A100_v4",
        A100_PCIE_80GB,
        2,
        48,
        440,
        40,
        "40 Gbit/s Ethernet",
        4,
        2,
        "bridge",
        1920 * GB,
        _NCV4,
        _AZURE_SHAPE,
        _AZURE_SHAPE,
        (
            _price(7.346, "on-demand", "eastus", "2026", _AZURE_PRICE),
            _price(1.358, "spot", "eastus", "2026", _AZURE_PRICE),
        ),
    ),
    _Shape(
        "Azure",
        "NC96ads_A100_v4",
        A100_PCIE_80GB,
        4,
        96,
        880,
        80,
        "80 Gbit/s Ethernet",
        4,
        4,
        "bridge",
        3500 * GB,
        _NCV4,
        _AZURE_SHAPE,
        _MLPERF,
        (_price(14.692, "on-demand", "eastus", "2026", _AZURE_PRICE),),
    ),
    *(
        _Shape(
            "GCP",
            name,
            gpu,
            gpus,
            vcpus,
            ram,
            gigabits,
            f"{gigabits} Gbit/s Ethernet",
            None,
            None,
            "nvswitch" if gpus > 1 else "none",
            disk,
            _GCP,
            _RECALLED,
            _RECALLED,
            (
                _price(usd, "on-demand", "us-central1", "2026-09", _GCP_PRICE),
                *(
                    (_price(spot, "spot", "us-central1", "2026-09", _GCP_PRICE),)
                    if spot is not None
                    else ()
                ),
            ),
        )
        for name, gpu, gpus, vcpus, ram, gigabits, disk, usd, spot in (
            ("a2-highgpu-1g", A100_SXM4_40GB, 1, 12, 85, 24, 3 * TB, 3.673385, 2.20401),
            ("a2-highgpu-2g", A100_SXM4_40GB, 2, 24, 170, 32, 3 * TB, 7.346767, None),
            ("a2-highgpu-4g", A100_SXM4_40GB, 4, 48, 340, 50, 3 * TB, 14.693534, None),
            ("a2-highgpu-8g", A100_SXM4_40GB, 8, 96, 680, 100, 3 * TB, 29.38708, 17.63208),
            ("a2-megagpu-16g", A100_SXM4_40GB, 16, 96, 1360, 100, None, 55.7395, None),
            ("a2-ultragpu-1g", A100_SXM4_80GB, 1, 12, 170, 24, 375 * GB, 5.068798, 3.0412),
            ("a2-ultragpu-2g", A100_SXM4_80GB, 2, 24, 340, 32, 750 * GB, 10.1376, 6.0824),
            ("a2-ultragpu-4g", A100_SXM4_80GB, 4, 48, 680, 50, 1500 * GB, 20.2752, 12.1648),
            ("a2-ultragpu-8g", A100_SXM4_80GB, 8, 96, 1360, 100, 3000 * GB, 40.5504, 24.3296),
        )
    ),
    _Shape(
        "Oracle",
        "BM.GPU4.8",
        A100_SXM4_40GB,
        8,
        128,
        2048,
        1600,
        "16 x 100 Gbit/s RoCE",
        None,
        None,
        "nvswitch",
        27.2 * TB,
        _OCI,
        _OCI,
        _RECALLED,
        (_price(24.4, "on-demand", "any", "by 2026-11", _OCI_PRICE),),
    ),
    _Shape(
        "Oracle",
        "BM.GPU.A100-v2.8",
        A100_SXM4_80GB,
        8,
        256,
        2048,
        1600,
        "16 x 100 Gbit/s RoCE",
        None,
        None,
        "nvswitch",
        27.2 * TB,
        _OCI,
        _OCI,
        _RECALLED,
        (_price(32.0, "on-demand", "any", "by 2026-11", _OCI_PRICE),),
    ),
    *(
        _Shape(
            provider,
            name,
            gpu,
            gpus,
            None,
            None,
            None,
            "unknown",
            None,
            None,
            link,
            None,
            _MARKET,
            _MARKET,
            _MARKET,
            (_price(usd, "on-demand", "any", "2026", _MARKET_PRICE),),
        )
        for provider, name, gpu, gpus, link, usd in (
            ("Lambda", "1x A100 SXM 40 GB", A100_SXM4_40GB, 1, "unknown", 1.99),
            ("Lambda", "1x A100 SXM 80 GB", A100_SXM4_80GB, 1, "unknown", 2.79),
            ("CoreWeave", "8x A100 SXM 80 GB", A100_SXM4_80GB, 8, "nvswitch", 21.60),
            ("RunPod", "1x A100 PCIe 80 GB", A100_PCIE_80GB, 1, "none", 1.39),
            ("RunPod", "1x A100 SXM 80 GB", A100_SXM4_80GB, 1, "unknown", 1.49),
        )
    ),
)


def _instance(row: _Shape) -> CloudInstanceSpec:
    gigabits = row.gigabits
    return CloudInstanceSpec(
        provider=row.provider,
        name=row.name,
        gpu_model=row.gpu.name,
        gpu_count=row.gpus,
        vcpu_count=row.vcpus,
        memory_bytes=None if row.gibibytes is None else row.gibibytes * GIB,
        network_bytes_per_s=None if gigabits is None else float(gigabits * GBIT),
        network=row.network,
        pcie_generation=row.pcie,
        numa_count=row.numa,
        gpu_link=row.link,
        disk_bytes=None if row.disk is None else int(row.disk),
        prices=row.prices,
        sources=cited(
            (row.shape, _SHAPE), (row.network_source, _NETWORK), (row.disk_source, "disk_bytes")
        ),
    )


INSTANCES: Final = tuple(_instance(row) for row in _ROWS)
