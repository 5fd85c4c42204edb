"""A virtual NVIDIA A100: runs unchanged CUDA code on a CPU and predicts its time on the chip.

The public names; nothing else runs here.
"""

__all__ = ["__version__", "enable"]

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
