"""Headline figures, derived from the structure that the specs store."""

from __future__ import annotations

from va100.spec.model import BoardSpec, ChipSpec, MmaKind, Operation, PcieSpec

OPERATIONS_PER_FMA = 2
"""A multiply-add counts as two operations, as vendors count."""


def peak_flop_per_s(chip: ChipSpec, kind: Operation | MmaKind, *, sparse: bool = False) -> float:
    """Peak operations a second at the boost clock (integer ones too); 0 where absent.

    Parameters
    ----------
    kind : Operation or MmaKind
        ``Operation.FP32_FMA`` and its like on the ordinary pipes, an ``MmaKind`` on tensor cores.
    sparse : bool
        Count a 2:4 sparse product as the dense one it stands for.
    """
    if isinstance(kind, MmaKind):
        per_cycle = chip.sm.mma.fma_per_cycle(kind, sparse=sparse)
    else:
        per_cycle = 0.0 if sparse else float(chip.sm.throughput.per_cycle(kind))
    return per_cycle * OPERATIONS_PER_FMA * chip.sm_count * chip.boost_clock_hz


def memory_bytes_per_s(chip: ChipSpec) -> float:
    """DRAM rate: bus width times two transfers a cycle."""
    return chip.memory_bus_bits / 8 * 2 * chip.memory_clock_hz


def l2_bytes_per_s(chip: ChipSpec) -> float:
    """L2 read rate at the boost clock."""
    return float(chip.l2_read_bytes_per_cycle) * chip.boost_clock_hz


def shared_bytes_per_s(chip: ChipSpec) -> float:
    """Shared-memory rate of all SMs without bank conflicts, at the boost clock."""
    per_sm = chip.sm.shared_bank_count * chip.sm.shared_bank_bytes_per_cycle
    return float(per_sm) * chip.sm_count * chip.boost_clock_hz


def nvlink_bytes_per_s(chip: ChipSpec) -> float:
    """All links of a chip, both directions together, as datasheets print it."""
    return chip.nvlink.link_count * chip.nvlink.link_bytes_per_s * 2


def pcie_bytes_per_s(pcie: PcieSpec) -> float:
    """One direction, after line coding."""
    return pcie.lane_count * pcie.lane_bytes_per_s * pcie.encoding_ratio


def fp32_lane_total(chip: ChipSpec) -> int:
    """Datasheets' "FP32 CUDA cores"."""
    return chip.sm.fma_lane_count * chip.sm_count


def tensor_core_total(chip: ChipSpec) -> int:
    """Tensor cores of the chip."""
    return chip.sm.tensor_core_count * chip.sm_count


def pair_bytes_per_s(board: BoardSpec) -> float:
    """Most that one GPU can send to another, one direction."""
    links = board.links_per_peer_count or board.links_per_gpu_count
    return links * board.link_bytes_per_s


def bisection_bytes_per_s(board: BoardSpec) -> float:
    """Rate between two halves of a board's GPUs, one direction."""
    half = board.gpu_count // 2
    if board.trunks_per_switch_count:
        switches = board.nvswitch_count // board.baseboard_count
        return switches * board.trunks_per_switch_count * board.link_bytes_per_s
    if board.nvswitch_count:
        return half * board.links_per_gpu_count * board.link_bytes_per_s
    return half * half * board.links_per_peer_count * board.link_bytes_per_s
