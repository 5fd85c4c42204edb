"""What JAX needs to be told so that XLA, its compiler, hands PTX to virtual GPUs.

All of it is environment: JAX takes the plugin under a name of ours, since under the name cuda it
looks for NVIDIA's device files; XLA starts the ptxas that it finds in ``PATH``, which is ours, and
is kept from what has no PTX.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PLATFORM: Final = "va100"
_FLAGS: Final = (
    "--xla_gpu_enable_libnvptxcompiler=false --xla_gpu_enable_libnvjitlink=false "
    "--xla_gpu_autotune_level=0 --xla_gpu_experimental_autotune_backends=TRITON"
)
"""No compiler but ptxas; matrix products by kernels of XLA's own instead of cuBLAS."""


@functools.cache
def plugin() -> Path | None:
    """Find JAX's CUDA plugin among the installed packages."""
    for entry in sys.path:
        for found in sorted(Path(entry or ".", "jax_plugins").glob("xla_cuda*/xla_cuda_plugin.so")):
            return found.absolute()
    return None


def foreign_assembler() -> Path | None:
    """NVIDIA's ptxas among the installed packages, which XLA takes before any in ``PATH``."""
    found = plugin()
    if found is None:
        return None
    packages = found.parents[2]
    return next(iter(sorted(packages.glob("nvidia/c*/bin/ptxas"))), None)


def additions(inherited: Mapping[str, str]) -> dict[str, str]:
    """Variables to set where JAX's CUDA plugin is installed; what is set already stays in force."""
    found = plugin()
    if found is None:
        return {}
    return {
        "PJRT_NAMES_AND_LIBRARY_PATHS": _joined(
            f"{PLATFORM}:{found}", inherited.get("PJRT_NAMES_AND_LIBRARY_PATHS", ""), ","
        ),
        "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
        "XLA_FLAGS": _joined(_FLAGS, inherited.get("XLA_FLAGS", ""), " "),
    }


def _joined(ours: str, others: str, separator: str) -> str:
    """Put ours first, once: of flags the last one holds."""
    if ours in others:
        return others
    return separator.join([ours, others]) if others else ours
