"""``nvidia-smi -L``: one line a GPU, one a MIG device.

Scripts cut these lines at single spaces, so their columns are part of the contract.
"""

from __future__ import annotations

from va100.nvml.smi.look import Look


def run(look: Look) -> int:
    """Print the list."""
    for gpu in look.gpus():
        look.line(f"GPU {gpu.index}: {gpu.name} (UUID: {gpu.uuid})")
        for device in gpu.mig_devices:
            look.line(f"  MIG {device.profile:<11} Device {device.index:2d}: (UUID: {device.uuid})")
    return look.status
