"""Files that the cloud writes into a tenant's home, whatever that tenant has put there.

A home is its tenant's: a name in it may be a link to anywhere.  So each folder on the way is opened
as a folder and no link is followed.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path, PurePosixPath
from typing import Final

from va100.errors import SetupError

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def write_below(home: Path, name: str, text: str, *, anew: bool = False, mode: int = 0o644) -> None:
    """Write a file in a home; one that is there stays, unless it is to be written anew.

    Raises
    ------
    SetupError
        A folder on the way, or the file, is something else in this home.
    """
    *folders, last = PurePosixPath(name).parts
    here = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, mode=0o700 if mode == 0o600 else 0o755, dir_fd=here)
            below = os.open(folder, _FOLDER, dir_fd=here)
            os.close(here)
            here = below
        try:
            file = os.open(last, _FILE | (os.O_TRUNC if anew else os.O_EXCL), mode, dir_fd=here)
        except FileExistsError:
            return
        with open(file, "w", encoding="utf-8") as target:
            target.write(text)
    except OSError as error:
        raise SetupError(
            f"{name} cannot be written in its home: {error.strerror}",
            remedy="see what is there under that name",
        ) from error
    finally:
        os.close(here)
