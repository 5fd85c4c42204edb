"""Our nvidia-smi run in this process, on a node of the test's own."""

from __future__ import annotations

import re
from typing import NamedTuple

from va100.node import store
from va100.node.kinds import BY_NAME
from va100.nvml.client import Nvml
from va100.nvml.smi import command
from va100.nvml.smi.look import Look

NOW_S = 1_790_000_000.25
_UUID = re.compile(r"(GPU|MIG)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SERIAL = re.compile(r"\b15\d{11}\b")


class Result(NamedTuple):
    """What a command line printed, and its status."""

    status: int
    text: str

    @property
    def lines(self):
        return self.text.splitlines()


class Stopped(Exception):
    """Raised instead of waiting, after so many times."""


class Smi:
    """The tool on a node that is made for it."""

    def __init__(self, monkeypatch, home, kind="hgx-a100-4x40gb", name="box"):
        monkeypatch.setenv("VA100_HOME", str(home))
        monkeypatch.setenv("VA100_NODE", name)
        self.waits = []
        self.most_waits = 0
        store.create_kind(name, BY_NAME[kind])

    def __call__(self, *words, is_terminal=False):
        written = []
        nvml = Nvml()
        look = Look(
            nvml=nvml,
            write=written.append,
            now_s=lambda: NOW_S,
            wait=self._wait,
            is_terminal=is_terminal,
        )
        status = None
        try:
            status = command.run(words, look)
        except Stopped:
            pass
        finally:
            nvml.close()
        return Result(status, "".join(written))

    def _wait(self, pause_s):
        self.waits.append(pause_s)
        if len(self.waits) >= self.most_waits:
            raise Stopped


def anonymous(text):
    """A print without the names that are each node's own."""
    return _SERIAL.sub("1650000000001", _UUID.sub(_zeros, text))


def _zeros(match):
    return f"{match[1]}-00000000-0000-0000-0000-000000000000"
