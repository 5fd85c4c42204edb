"""Write, or with ``--check`` compare, every file that follows from the tables.

Run from anywhere: ``python tools/driver_tables/generate.py [--check]``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "src")]

from driver_tables import coverage_page, native_source, python_source, runtime_source  # noqa: E402
from driver_tables.table import HERE, Row, read_rows  # noqa: E402


def driver_rows() -> tuple[Row, ...]:
    """The driver's rows."""
    return read_rows(HERE / "driver.table", returns="CUresult")


def runtime_rows() -> tuple[Row, ...]:
    """The runtime's rows."""
    return read_rows(HERE / "runtime.table", returns="cudaError_t")


def outputs() -> dict[Path, str]:
    """Every generated file and its text."""
    driver, runtime = driver_rows(), runtime_rows()
    errors = native_source.read_errors(HERE / "errors.table")
    native = ROOT / "native" / "generated"
    return {
        native / "driver_api.h": native_source.driver_header(driver),
        native / "driver_abi.h": native_source.driver_abi(driver),
        native / "driver_exports.cpp": native_source.driver_exports(driver),
        native / "driver_procs.cpp": native_source.driver_procs(driver),
        native / "driver_errors.cpp": native_source.error_table(errors, runtime=False),
        native / "driver_models.cpp": native_source.device_models(driver),
        native / "runtime_api.h": runtime_source.header(runtime),
        native / "runtime_exports.cpp": runtime_source.exports(runtime),
        native / "runtime_errors.cpp": native_source.error_table(errors, runtime=True),
        ROOT / "src" / "va100" / "driver" / "signatures.py": python_source.signatures(driver),
        ROOT / "docs" / "driver-coverage.md": coverage_page.page(driver, runtime),
    }


def stale() -> list[Path]:
    """Generated files whose text on disk is not what the tables give."""
    return [
        path for path, text in outputs().items() if not path.exists() or path.read_text() != text
    ]


def main(arguments: list[str]) -> int:
    """Entry point."""
    if "--check" in arguments:
        for path in stale():
            print(f"stale: {path.relative_to(ROOT)}", file=sys.stderr)
        return 1 if stale() else 0
    for path in stale():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(outputs()[path])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
