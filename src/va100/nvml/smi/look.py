"""What a command is given: the library, the GPUs it is about, clock, waiting, where output goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from va100.errors import NvmlError
from va100.nvml.client import Nvml
from va100.nvml.readings import Gpu, gpus


class Stop(Exception):
    """End with a message on the output and a status."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


@dataclass(slots=True, kw_only=True)
class Look:
    """One run of the tool."""

    nvml: Nvml
    write: Callable[[str], object]
    now_s: Callable[[], float]
    """Seconds since 1970."""
    wait: Callable[[float], object]
    is_terminal: bool = False
    chosen: Sequence[str] = ()
    """What ``-i`` names; empty: all."""
    status: int = 0

    def line(self, text: str = "") -> None:
        """Write a line."""
        self.write(f"{text}\n")

    def into_file(self, name: str, act: Callable[[Callable[[], object]], int]) -> int:
        """Let a file have what is written meanwhile.

        Parameters
        ----------
        act : callable
            Is given what sees to it that readers of the file find all so far.

        Raises
        ------
        Stop
            The file cannot be written.
        """
        before = self.write
        try:
            with Path(name).open("w", encoding="utf-8") as file:
                self.write = file.write
                return act(file.flush)
        except OSError as error:
            raise Stop(f"Failed to open {name} for writing: {error.strerror}\n", 255) from None
        finally:
            self.write = before

    def gpus(self) -> list[Gpu]:
        """Look at the chosen GPUs afresh.

        Raises
        ------
        Stop
            One that was chosen is not there, or there is none.
        """
        found = list(self._reachable())
        if not self.chosen:
            if not found and not self.status:
                raise Stop("No devices were found\n", 6)
            return found
        picked = [gpu for gpu in found if any(_means(name, gpu) for name in self.chosen)]
        for name in self.chosen:
            if not any(_means(name, gpu) for gpu in picked):
                raise Stop("No devices were found\n", 6)
        return picked

    def _reachable(self) -> Iterator[Gpu]:
        for index, gpu in enumerate(gpus(self.nvml)):
            if isinstance(gpu, NvmlError):
                self.line(
                    f"Unable to determine the device handle for GPU{index}: {gpu.text}.  "
                    "Reboot the system to recover this GPU"
                )
                self.status = gpu.code
            else:
                yield gpu


def _means(name: str, gpu: Gpu) -> bool:
    """Whether ``-i`` names a GPU: by index, UUID, serial number or bus address."""
    if name.isdecimal() and len(name) < 4:
        return int(name) == gpu.index
    wanted = name.lower()
    if wanted.startswith(("gpu-", "mig-")):
        return wanted == gpu.uuid.lower()
    bus = gpu.bus_id.lower()
    if wanted in (bus, bus[4:], bus[9:]):
        return True
    return name == gpu.text("GetSerial")
