"""Functions without a body that device code may call, because the machine is them.

What they do is the engines'; which names there are is said here, once.
"""

from __future__ import annotations

from typing import Final

PROVIDED: Final = frozenset({"vprintf", "malloc", "free", "__assertfail", "__va100_launch_grid"})
"""Names that need no definition."""

_FAMILIES: Final = (
    "cudaCG", "__cudaCDP2", "cudaCDP2", "cudaGraphSetConditional", "__nv_tex_surf_handler",
)  # fmt: skip


def is_declared_only(name: str) -> bool:
    """Tell whether a name is of a function that comes with CUDA and not with the program.

    Those that no engine has are refused with the kernel that calls them, not with its module.
    """
    return name in PROVIDED or name.startswith(_FAMILIES)
