"""Start a Python script on virtual GPUs: ``python -m va100.cli.boot SCRIPT [ARGS]``.

The native core is opened first, so that whatever the script imports finds it under the name of
NVIDIA's driver library; then the script runs as if it had been started alone.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import TracebackType
from typing import Final

from va100.gpu.native import companions, library, runtimes

_OURS: Final = frozenset({__file__, runpy.__file__, "<frozen runpy>"})


def main() -> None:
    """Hand over to the script."""
    library()
    companions()
    runtimes()
    sys.excepthook = _tell
    script = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback that begins in the script, as if it had been started alone."""
    while trace is not None and trace.tb_frame.f_code.co_filename in _OURS:
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


if __name__ == "__main__":
    main()
