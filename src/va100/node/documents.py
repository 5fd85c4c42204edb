"""Files that users write, YAML or JSON, read into plain values; what they mean is elsewhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from va100.errors import SetupError

LARGEST_FILE_BYTES: Final = 1 << 20
STANDARD_INPUT: Final = "-"


def read_document(path: Path, example: str) -> Any:
    """Read a file; ``-`` is the standard input.

    Parameters
    ----------
    example : str
        What such a file looks like, for messages.

    Raises
    ------
    SetupError
        It cannot be read, or is neither YAML nor JSON.
    """
    text = _text(path, example)
    if path.suffix == ".json":
        try:
            return json.loads(text)
        except ValueError as error:
            raise malformed(path, str(error), example) from error
    try:
        # Only for those who write YAML.
        import yaml  # noqa: PLC0415
    except ImportError as error:
        raise SetupError(
            f"{path}: PyYAML is not installed", remedy="pip install pyyaml, or write JSON"
        ) from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise malformed(path, " ".join(str(error).split()), example) from error


def malformed(path: Path, problem: str, example: str) -> SetupError:
    """What is wrong with a file, and how to write it."""
    return SetupError(f"{path}: {problem}", remedy=f"write it as {example}")


def _text(path: Path, example: str) -> str:
    if str(path) == STANDARD_INPUT:
        return sys.stdin.read(LARGEST_FILE_BYTES)
    try:
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise malformed(path, f"it is longer than {LARGEST_FILE_BYTES} bytes", example)
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{path}: {error}", remedy="name a file that can be read") from error
