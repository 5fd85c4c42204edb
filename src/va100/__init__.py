"""A virtual NVIDIA A100: runs unchanged CUDA code on a CPU and predicts its time on the chip.

The public names; nothing else runs here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from va100.profile.arguments import Buffer
    from va100.profile.launch import Launch

__all__ = ["Buffer", "__version__", "enable", "time_kernel"]

__version__ = "0.1.0"


def enable() -> None:
    """Put this process on virtual GPUs, before a CUDA library is imported.

    Raises
    ------
    va100.errors.SetupError
        The native core is not built, or a ``VA100_`` variable holds what it cannot.
    """
    # Only imported when called: see the module's docstring.
    from va100.cli import environment  # noqa: PLC0415
    from va100.config import Settings  # noqa: PLC0415

    environment.enable(Settings.from_environment())


def time_kernel(  # noqa: PLR0913 -- a launch has so many parts
    ptx_or_cu: str | Path,
    kernel: str,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any] = (),
    *,
    chip: str | None = None,
    clocks: float | None = None,
    dynamic_shared_bytes: int = 0,
    warm: bool = False,
    copy_back: bool = False,
    ctas: int | None = None,
    flags: Sequence[str] = (),
) -> Launch:
    """Run one launch and say what an A100 would take for it, and why.

    Parameters
    ----------
    ptx_or_cu : str or Path
        PTX or CUDA C++, as text or as a file; C++ is compiled with ``nvcc``.
    kernel : str
        Its name, mangled or as written; template arguments only where they are needed.
    grid, block : int or up to three of them
    args : sequence
        NumPy arrays, which get device memory with their contents; :class:`Buffer` for memory whose
        contents do not matter; numbers, NumPy scalars or bytes for the rest.
    chip : str, optional
        Model, such as ``sxm80``; ``VA100_MODEL``'s when left out.
    clocks : float, optional
        Clock of the SMs in Hz; the boost clock when left out.
    warm : bool
        L2 holds the data already, as when a kernel is run again and again.
    copy_back : bool
        Writable arrays receive what the kernel wrote.
    ctas : int, optional
        Run only so many CTAs, spread over the grid, and take the others to do the same: quick, for
        kernels whose CTAs do not wait for each other.  All run when left out.
    flags : sequence of str
        More flags for ``nvcc``.

    Returns
    -------
    Launch
        ``time_s``, ``time_s_band``, ``bound``, ``occupancy``, ``counters`` ...; ``record()`` gives
        what ``va100 profile --json`` writes.

    Raises
    ------
    va100.errors.OutOfResources
        The launch does not fit on an SM, and is not run.
    va100.errors.Va100Error
        The source, the launch or the kernel is at fault; the class says how.
    TypeError, ValueError
        The arguments are not the kernel's.
    """
    # Only imported when called: see the module's docstring.
    from va100.cli import time_kernel as call  # noqa: PLC0415
    from va100.profile.timing import Shape  # noqa: PLC0415

    request = call.Request(
        chip=chip, clocks=clocks, warm=warm, copy_back=copy_back, ctas=ctas, flags=tuple(flags)
    )
    shape = Shape(grid=grid, block=block, dynamic_shared_bytes=dynamic_shared_bytes)
    return call.time_kernel(ptx_or_cu, kernel, shape, args, request)


def __getattr__(name: str) -> Any:
    """Import what is asked for by name."""
    if name == "Buffer":
        from va100.profile.arguments import Buffer  # noqa: PLC0415

        return Buffer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
