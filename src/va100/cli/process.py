"""A client's process: started on virtual GPUs, waited for, its end told as a shell would.

Which program it is, and what is reported of it, is the verbs' matter.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, Final, Self

from va100.cli import environment
from va100.config import Settings
from va100.errors import SetupError

_SIGNALLED: Final = 128
_PASSED_ON: Final = (signal.SIGTERM, signal.SIGHUP)


def execute(
    started: Sequence[str], settings: Settings, *, verb: str, output_is_json: bool = False
) -> int:
    """Run a command to its end, however it ends; its status as a shell would report it."""
    sys.stdout.flush()
    stdout = sys.stderr if output_is_json else None
    with _SignalsPassedOn() as signals:
        try:
            child = subprocess.Popen(  # noqa: S603 -- running the user's program is the point
                started, env=environment.child_environment(settings), stdout=stdout
            )
        except OSError as error:
            raise SetupError(
                f"{started[0]} could not be started: {error.strerror}",
                remedy="give an executable built for this machine",
            ) from error
        signals.go_to(child)
        status = _wait(child)
    if status >= 0:
        return status
    names = {number.value: number.name for number in signal.Signals}
    name = names.get(-status, f"signal {-status}")
    sys.stderr.write(f"va100 {verb}: the program was ended by {name}\n")
    return _SIGNALLED - status


class _SignalsPassedOn:
    """Lets a child have the signals that would end us, those too that come while it starts."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._pass_on) for number in _PASSED_ON}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def go_to(self, child: subprocess.Popen[bytes]) -> None:
        """Say who is to have them."""
        self._child = child
        for number in self._early:
            child.send_signal(number)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self._child is None:
            self._early.append(number)
        else:
            self._child.send_signal(number)


def _wait(child: subprocess.Popen[bytes]) -> int:
    """Wait through interrupts: the terminal sends them to the child as well."""
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            continue
