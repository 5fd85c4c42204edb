"""MIG profiles of the 40 GB and 80 GB A100s; the rules of placing them are elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from va100.spec.model import ChipSpec, MigComputeProfileSpec, MigProfileSpec, Spec, cited
from va100.spec.sources import datasheet, derived, measured
from va100.units import MIB

SM_PER_SLICE: Final = 14
L2_PER_MEMORY_SLICE_BYTES: Final = 5 * MIB
MEMORY_SLICES: Final = 8
COMPUTE_SLICES: Final = 7


class _Row(NamedTuple):
    """One geometry, and what it is called and holds with either size of memory."""

    name_40: str
    mebibytes_40: int
    name_80: str
    mebibytes_80: int
    profile: int
    nvml: int
    instances: int
    compute: int
    memory: int
    copy: int
    nvdec: int
    nvjpeg: int
    ofa: int
    starts: tuple[int, ...]


_ALL: Final = (0, 1, 2, 3, 4, 5, 6)
_ROWS: Final = (
    _Row("1g.5gb", 4864, "1g.10gb", 9728, 19, 0, 7, 1, 1, 1, 0, 0, 0, _ALL),
    _Row("1g.5gb+me", 4864, "1g.10gb+me", 9728, 20, 7, 1, 1, 1, 1, 1, 1, 1, _ALL),
    _Row("1g.10gb", 9856, "1g.20gb", 19968, 15, 9, 4, 1, 2, 1, 1, 0, 0, (0, 2, 4, 6)),
    _Row("2g.10gb", 9856, "2g.20gb", 19968, 14, 1, 3, 2, 2, 2, 1, 0, 0, (0, 2, 4)),
    _Row("3g.20gb", 19968, "3g.40gb", 40192, 9, 2, 2, 3, 4, 3, 2, 0, 0, (0, 4)),
    _Row("4g.20gb", 19968, "4g.40gb", 40192, 5, 3, 1, 4, 4, 4, 2, 0, 0, (0,)),
    _Row("7g.40gb", 40192, "7g.80gb", 80896, 0, 4, 1, 7, 8, 7, 5, 1, 1, (0,)),
)

_GUIDE: Final = datasheet("MIG-UG", "A100 MIG profiles and placements")
_TEXT: Final = measured("MIG-TEXT", "nvidia-smi mig -lgip and -lgipp")


def _profile(row: _Row, name: str, mebibytes: int) -> MigProfileSpec:
    return MigProfileSpec(
        name=name,
        profile_id=row.profile,
        nvml_id=row.nvml,
        instance_count=row.instances,
        memory_bytes=mebibytes * MIB,
        sm_count=row.compute * SM_PER_SLICE,
        compute_slice_count=row.compute,
        memory_slice_count=row.memory,
        l2_bytes=row.memory * L2_PER_MEMORY_SLICE_BYTES,
        copy_engine_count=row.copy,
        nvdec_count=row.nvdec,
        nvjpeg_count=row.nvjpeg,
        ofa_count=row.ofa,
        nvenc_count=0,
        placement_starts=row.starts,
        media_extensions=name.endswith("+me"),
        sources=cited(
            (
                _GUIDE,
                "name instance_count memory_bytes sm_count compute_slice_count"
                " memory_slice_count media_extensions nvenc_count",
            ),
            (
                _TEXT,
                "profile_id copy_engine_count nvdec_count nvjpeg_count ofa_count placement_starts",
            ),
            (datasheet("NVML-HEADER", "GPU-instance profile numbers"), "nvml_id"),
            (derived("DEVICEQUERY", "5 MiB in a 1g.10gb instance"), "l2_bytes"),
        ),
    )


PROFILES_40GB: Final = tuple(_profile(row, row.name_40, row.mebibytes_40) for row in _ROWS)
PROFILES_80GB: Final = tuple(_profile(row, row.name_80, row.mebibytes_80) for row in _ROWS)


def profiles(chip: ChipSpec) -> tuple[MigProfileSpec, ...]:
    """GPU-instance profiles a chip offers, smallest first; none without MIG.

    Raises
    ------
    ValueError
        The chip has MIG, but its table is not known here.
    """
    if not chip.mig_instance_count:
        return ()
    if chip.chip != "GA100" or chip.memory_bytes not in _BY_MEMORY:
        raise ValueError(f"no MIG table for {chip.name}")
    return _BY_MEMORY[chip.memory_bytes]


def profile_named(chip: ChipSpec, name: str) -> MigProfileSpec:
    """Find a profile by its name, in letters of either case.

    Raises
    ------
    ValueError
        The chip does not offer it; the message names what it offers.
    """
    offered = {profile.name: profile for profile in profiles(chip)}
    found = offered.get(name.lower())
    if found is None:
        raise ValueError(f"{chip.name} has no MIG profile {name!r}; it has {', '.join(offered)}")
    return found


_BY_MEMORY: Final[Mapping[int, tuple[MigProfileSpec, ...]]] = MappingProxyType(
    {40 * 1024 * MIB: PROFILES_40GB, 80 * 1024 * MIB: PROFILES_80GB}
)


def _compute(
    name: str, profile: int, nvml: int, slices: int, gpu_instances: tuple[int, ...]
) -> MigComputeProfileSpec:
    return MigComputeProfileSpec(
        name=name,
        profile_id=profile,
        nvml_id=nvml,
        compute_slice_count=slices,
        gpu_instance_slices_count=gpu_instances,
        sources=cited(
            (_TEXT, "name profile_id"),
            (datasheet("NVML-HEADER", "compute-instance profile numbers"), "nvml_id"),
            (_GUIDE, "compute_slice_count gpu_instance_slices_count"),
        ),
    )


COMPUTE_PROFILES: Final = (
    _compute("1c", 0, 0, 1, (1, 2, 3, 4, 7)),
    _compute("2c", 1, 1, 2, (2, 3, 4, 7)),
    _compute("3c", 2, 2, 3, (3, 7)),
    _compute("4c", 3, 3, 4, (4, 7)),
    _compute("7c", 4, 4, 7, (7,)),
)
"""Compute-instance profiles; ``n`` of them fit while their slices fit the GPU instance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigSharingSpec(Spec):
    """What an instance loses to six busy ones beside it, beyond its share of clocks and power."""

    compute_ratio: float
    """Added to the time of work that computes."""
    memory_ratio: float
    """Added to the time of work that waits for memory."""


SHARING: Final = MigSharingSpec(
    compute_ratio=246.289 / 242.269 - 1,
    memory_ratio=40424.0 / 37579.6 - 1,
    sources=cited(
        (
            measured(
                "MLPERF",
                "inference 2.0, Offline: one 1g.10gb instance alone, and among six that run all"
                " other benchmarks; bert-99.9 for what computes, dlrm-99.9 for memory",
            ),
            "compute_ratio memory_ratio",
        ),
    ),
)
