"""Compiled objects on disk, so that a program starts fast the second time.

Entries are named by a hash of everything the machine code depends on; they are written whole
under another name and then renamed, so that a reader never sees half of one.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import va100.ptx
from va100.gpu.native import LIBRARY_NAME, NATIVE_DIR

_MAGIC = b"va100obj1\n"


@dataclass(frozen=True, slots=True)
class ObjectCache:
    """A folder of compiled objects; ``None`` keeps nothing."""

    folder: Path | None

    def get(self, key: str) -> bytes | None:
        """The object, or ``None`` when there is none or it is damaged."""
        if self.folder is None:
            return None
        try:
            data = self._path(key).read_bytes()
        except OSError:
            return None
        digest, body = data[len(_MAGIC) : len(_MAGIC) + 32], data[len(_MAGIC) + 32 :]
        if not data.startswith(_MAGIC) or hashlib.sha256(body).digest() != digest:
            return None
        return body

    def put(self, key: str, data: bytes) -> None:
        """Keep an object; a full or read-only disk only costs the next start its speed."""
        if self.folder is None:
            return
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(_MAGIC + hashlib.sha256(data).digest() + data)
            os.replace(file.name, path)
        except OSError:
            return

    def _path(self, key: str) -> Path:
        if self.folder is None:
            raise ValueError("this cache keeps nothing")
        return self.folder / key[:2] / f"{key[2:]}.o"


@functools.cache
def generation() -> str:
    """What tells this compiler from another: its own files, the front end's and the native core's.

    By size and time of change, so that no start has to read them all.
    """
    folders = (Path(__file__).parent, Path(va100.ptx.__file__).parent)
    files = sorted(f for folder in folders for f in folder.rglob("*.py"))
    stamps = []
    for file in (*files, NATIVE_DIR / LIBRARY_NAME):
        facts = file.stat()
        stamps.append(f"{file.name} {facts.st_size} {facts.st_mtime_ns}")
    return key_of(*stamps)


def key_of(*parts: str | bytes) -> str:
    """Hash of everything an object depends on."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()
