"""A client's process: started on virtual GPUs, waited for, its end told as a shell would.

Which program it is, and what is reported of it, is the verbs' matter.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Final

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
    with _signals_passed_on() as children:
        try:
            child = subprocess.Popen(  # noqa: S603 -- running the user's program is the point
                started, env=environment.child_environment(settings), stdout=stdout
            )
        except OSError as error:
            raise SetupError(
                f"{started[0]} could not be started: {error.strerror}",
                remedy="give an executable built for this machine",
            ) from error
        children.append(child)
        status = _wait(child)
    if status >= 0:
        return status
    names = {number.value: number.name for number in signal.Signals}
    name = names.get(-status, f"signal {-status}")
    sys.stderr.write(f"va100 {verb}: the program was ended by {name}\n")
    return _SIGNALLED - status


@contextmanager
def _signals_passed_on() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Let children have the signals that would end us; they are put into the list."""
    children: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        del frame
        if not children:
            raise SystemExit(_SIGNALLED + number)
        for child in children:
            child.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
    try:
        yield children
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(child: subprocess.Popen[bytes]) -> int:
    """Wait through interrupts: the terminal sends them to the child as well."""
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            continue
