"""The terminal that reports go to."""

from __future__ import annotations

import os
import sys
from typing import Final

_FILE_COLUMNS: Final = 120


def columns() -> int:
    """Width of the terminal behind standard error; a file takes wide lines."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        return _FILE_COLUMNS
