"""Templates: what an instance starts with, read from files that a site can add to.

One TOML file a template; its name is the file's.  What is not given stays as in :class:`Template`::

    title = "PyTorch"
    summary = "Python with PyTorch on the rented GPU"
    command = ["sleep", "infinity"]
    ports = [8888]
    [environment]
    OMP_NUM_THREADS = "1"
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from va100.errors import SetupError

SHIPPED: Final = Path(__file__).with_name("shipped_templates")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """What an instance starts with."""

    name: str
    title: str
    summary: str = ""
    image: str = ""
    """Container image, where the driver runs containers."""
    command: tuple[str, ...] = ("sleep", "infinity")
    needs: tuple[str, ...] = ()
    """Python modules that the local driver must find, or the template is told to be missing."""
    ports: tuple[int, ...] = ()
    disk_gib: int = 10
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Files put into the home folder of a new instance."""


_KINDS: Final[Mapping[str, type]] = {
    "title": str,
    "summary": str,
    "image": str,
    "command": list,
    "needs": list,
    "ports": list,
    "disk_gib": int,
    "environment": dict,
    "files": dict,
}


def read_templates(folders: Iterable[Path]) -> dict[str, Template]:
    """Read all templates; a later folder's replace an earlier one's of their name.

    Raises
    ------
    SetupError
        A file that is no template; the message says which and why.
    """
    found: dict[str, Template] = {}
    for folder in folders:
        if not folder.is_dir():
            raise SetupError(f"{folder}: no folder of templates", remedy="name one that exists")
        for path in sorted(folder.glob("*.toml")):
            found[path.stem] = _read(path)
    return found


def _read(path: Path) -> Template:
    try:
        facts = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(path, str(error)) from error
    if not _NAME.fullmatch(path.stem):
        raise _wrong(path, "a template's name is small letters, digits and dashes")
    for key, value in facts.items():
        if key not in _KINDS:
            raise _wrong(path, f"unknown {key!r}; known are {', '.join(_KINDS)}")
        if not isinstance(value, _KINDS[key]):
            raise _wrong(path, f"{key} should be a {_KINDS[key].__name__}")
    if "title" not in facts:
        raise _wrong(path, "title is missing")
    _require_plain(path, facts)
    lists = {key: tuple(value) for key, value in facts.items() if isinstance(value, list)}
    return Template(name=path.stem, **(facts | lists))


def _require_plain(path: Path, facts: Mapping[str, Any]) -> None:
    words = [*facts.get("command", []), *facts.get("needs", [])]
    tables = [*facts.get("environment", {}).values(), *facts.get("files", {}).values()]
    if not all(isinstance(word, str) for word in [*words, *tables]):
        raise _wrong(path, "command, needs, environment and files hold strings")
    if not all(isinstance(port, int) and 0 < port < 65_536 for port in facts.get("ports", [])):
        raise _wrong(path, "ports are numbers from 1 to 65535")
    names = [Path(name) for name in facts.get("files", {})]
    if any(name.is_absolute() or ".." in name.parts for name in names):
        raise _wrong(path, "files stay inside the home folder")


def _wrong(path: Path, problem: str) -> SetupError:
    return SetupError(f"{path}: {problem}", remedy="mend the file; docs/cloud.md has the form")
