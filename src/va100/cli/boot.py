"""Start a Python script on virtual GPUs: ``python -m va100.cli.boot SCRIPT [ARGS]``.

The native core is opened first, so that whatever the script imports finds it under the name of
NVIDIA's driver library; then the script runs as if it had been started alone.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from va100.gpu.native import library


def main() -> None:
    """Hand over to the script."""
    library()
    script = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
