"""The debugger inside the program that is debugged: where commands come from, how it ends.

Standard input is shared with the program, as any debugger on a terminal does.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from va100.debug.commands import Prompt
from va100.debug.core import Core
from va100.debug.debugger import Stop
from va100.errors import SetupError

TERMINAL: Final = "terminal"
"""Where commands come from when no file is named."""


class Session:
    """The debugger of this process."""

    def __init__(self, commands: str) -> None:
        self._lines = _lines(commands)
        self._is_terminal = commands == TERMINAL and sys.stdin is not None and sys.stdin.isatty()
        if self._is_terminal:
            with contextlib.suppress(ImportError):  # history, where this Python can edit lines
                import readline  # noqa: F401, PLC0415
        self.prompt = Prompt(self._read, sys.stdout, _leave)
        self._listen()

    def begin(self) -> None:
        """Take commands before the first launch."""
        self.prompt.begin()

    def look(self, core: Core) -> None:
        """Take commands about a core dump."""
        moment, lane = core.focus()
        self.prompt.look(Stop(moment, lane, core.fault, is_dead=True))

    def finish(self) -> None:
        """At the program's end."""
        self.prompt.finish()

    def _read(self, prompt: str) -> str | None:
        _flush_program()
        if self._is_terminal:
            try:
                return input(prompt)
            except EOFError:
                return "quit"
        line = next(self._lines, None)
        if line is None:
            return None
        self.prompt.say(prompt + line)
        return line

    def _listen(self) -> None:
        """Let an interrupt stop the kernel under watch, where this thread may say so."""

        def interrupt(number: int, frame: object) -> None:
            del number, frame
            debugger = self.prompt.debugger
            if debugger.interrupted or not debugger.is_watching:
                raise KeyboardInterrupt
            debugger.interrupted = True

        with contextlib.suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGINT, interrupt)


def _lines(commands: str) -> Iterator[str]:
    if commands == TERMINAL:
        return (line.rstrip("\n") for line in sys.stdin or ())
    try:
        return iter(Path(commands).read_text("utf-8").splitlines())
    except OSError as error:
        raise SetupError(
            f"{commands}: {error.strerror}", remedy="name a file of commands that can be read"
        ) from error


def _flush_program() -> None:
    """Show what the program has printed before the debugger says something."""
    ctypes.CDLL(None).fflush(None)


def _leave() -> None:
    """End the program at once: it stands in the middle of a launch."""
    sys.stdout.flush()
    sys.stderr.flush()
    _flush_program()
    os._exit(0)
