"""``nvidia-smi nvlink``: state, abilities, errors and counters of a GPU's NVLinks."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from va100.errors import NvmlError
from va100.nvml import structs
from va100.nvml.client import INVALID_ARGUMENT, NOT_SUPPORTED
from va100.nvml.readings import Gpu
from va100.nvml.smi.look import Look
from va100.nvml.smi.options import FLAG, OPTIONAL, VALUE, Given, Option, help_text, misuse, parse
from va100.nvml.smi.text import shown

PROGRAM: Final = "nvidia-smi nvlink"
MOST_LINKS: Final = 18
OPTIONS: Final = (
    Option(("-h", "--help"), FLAG, "print this"),
    Option(("-i", "--id"), VALUE, "only these GPUs", "ID,..."),
    Option(("-l", "--link"), VALUE, "only this link", "LINK"),
    Option(("-s", "--status"), FLAG, "speed of each link that is up"),
    Option(("-c", "--capabilities"), FLAG, "what each link can do"),
    Option(("-p", "--pcibusid"), FLAG, "what each link ends in"),
    Option(("-R", "--remotelinkinfo"), FLAG, "what each link ends in, as -p"),
    Option(("-e", "--errorcounters"), FLAG, "errors of each link"),
    Option(("-re", "--reseterrorcounters"), FLAG, "forget errors"),
    Option(("-gt", "--getthroughput"), OPTIONAL, "bytes that passed: d data, r raw", "TYPE"),
)
_CAPABILITIES: Final = (
    (0, "P2P is supported"),
    (1, "Access to system memory supported"),
    (2, "P2P atomics supported"),
    (3, "System memory atomics supported"),
    (4, "SLI is supported"),
    (5, "Link is supported"),
)
_ERRORS: Final = ((0, "Replay Errors"), (1, "Recovery Errors"), (3, "CRC Errors"))
"""Counters of ``nvmlNvLinkErrorCounter_t``: replay, recovery, CRC of flits."""
_SPEED_FIELD: Final = 164
"""MB/s of one link in one direction."""
_GIGABYTES: Final = {1: "20", 2: "25.781", 3: "25"}
"""GB/s by version of the link, where the field is not answered."""
_THROUGHPUT: Final = {"d": (138, 139, "Data"), "r": (140, 141, "Raw")}

Lines = Callable[[Gpu, int], Iterator[str]]


def run(look: Look, words: Sequence[str]) -> int:
    """Do what the verb's options ask."""
    given = parse(words, OPTIONS, PROGRAM)
    if "-h" in given or not given:
        look.write(help_text(f"{PROGRAM} [OPTION [VALUE]]...", OPTIONS))
        return 0
    asked = [name for name in given if name in _ACTIONS]
    if len(asked) != 1 or set(given) - {"-i", "-l", asked[0]}:
        raise misuse("Invalid combination of input arguments.", PROGRAM)
    look.chosen = tuple(filter(None, given.get("-i", "").split(",")))
    lines = _ACTIONS[asked[0]](given)
    for gpu in look.gpus():
        look.line(f"GPU {gpu.index}: {gpu.name} (UUID: {gpu.uuid})")
        for link in _links(gpu, given):
            for line in lines(gpu, link):
                look.line(line)
    return look.status


def links(gpu: Gpu) -> list[int]:
    """Numbers of the links that a GPU has, whether they are up or not."""
    found = []
    for link in range(MOST_LINKS):
        try:
            gpu.number("GetNvLinkState", link)
        except NvmlError as error:
            if error.code not in (NOT_SUPPORTED, INVALID_ARGUMENT):
                raise
            continue
        found.append(link)
    return found


def is_up(gpu: Gpu, link: int) -> bool:
    """Whether a link works."""
    return gpu.number("GetNvLinkState", link) == 1


def remote_bus_id(gpu: Gpu, link: int) -> str:
    """Bus address of what a link ends in."""
    name = "nvmlDeviceGetNvLinkRemotePciInfo_v2"
    pci = gpu.nvml.filled(name, structs.PciInfo, gpu.handle, ctypes.c_uint(link))
    text: bytes = pci.bus_id
    return text.decode()


def _links(gpu: Gpu, given: Given) -> list[int]:
    found = links(gpu)
    if "-l" not in given:
        return found
    text = given["-l"]
    if not text.isdecimal() or int(text) not in found:
        raise misuse(f'"{text}" is no NVLink of GPU {gpu.index}.', PROGRAM)
    return [int(text)]


def _speed(gpu: Gpu, link: int) -> str:
    try:
        speed = int(gpu.field(_SPEED_FIELD, link)) / 1000
    except NvmlError:
        return _GIGABYTES.get(gpu.number("GetNvLinkVersion", link), "25")
    return f"{speed:.3f}".rstrip("0").rstrip(".")


def _status(_given: Given) -> Lines:
    def lines(gpu: Gpu, link: int) -> Iterator[str]:
        speed = f"{_speed(gpu, link)} GB/s" if is_up(gpu, link) else "<inactive>"
        yield f"\t Link {link}: {speed}"

    return lines


def _capabilities(_given: Given) -> Lines:
    def lines(gpu: Gpu, link: int) -> Iterator[str]:
        if not is_up(gpu, link):
            return
        for number, text in _CAPABILITIES:
            has = shown(partial(_capability, gpu, link, number))
            yield f"\t Link {link}, {text}: {has}"

    return lines


def _ends(_given: Given) -> Lines:
    def lines(gpu: Gpu, link: int) -> Iterator[str]:
        if is_up(gpu, link):
            yield f"\t Link {link}: {shown(lambda: remote_bus_id(gpu, link))}"

    return lines


def _errors(_given: Given) -> Lines:
    def lines(gpu: Gpu, link: int) -> Iterator[str]:
        if not is_up(gpu, link):
            return
        for number, text in _ERRORS:
            count = shown(partial(_error_count, gpu, link, number))
            yield f"\t Link {link}: {text}: {count}"
        yield ""

    return lines


def _reset_errors(_given: Given) -> Lines:
    def lines(gpu: Gpu, link: int) -> Iterator[str]:
        gpu.set("ResetNvLinkErrorCounters", link)
        yield f"\t Link {link}: error counters were reset"

    return lines


def _throughput(given: Given) -> Lines:
    kind = given["-gt"] or "d"
    if kind not in _THROUGHPUT:
        raise misuse(f'"{kind}" of option "-gt" is neither d nor r.', PROGRAM)
    sent, received, word = _THROUGHPUT[kind]

    def lines(gpu: Gpu, link: int) -> Iterator[str]:
        for field, direction in ((sent, "Tx"), (received, "Rx")):
            amount = shown(partial(_amount, gpu, link, field))
            yield f"\t Link {link}: {word} {direction}: {amount}"

    return lines


def _capability(gpu: Gpu, link: int, number: int) -> str:
    return "true" if gpu.number("GetNvLinkCapability", link, number) else "false"


def _error_count(gpu: Gpu, link: int, number: int) -> str:
    return str(gpu.long_number("GetNvLinkErrorCounter", link, number))


def _amount(gpu: Gpu, link: int, field: int) -> str:
    return f"{int(gpu.field(field, link))} KiB"


_ACTIONS: Final[Mapping[str, Callable[[Given], Lines]]] = {
    "-s": _status,
    "-c": _capabilities,
    "-p": _ends,
    "-R": _ends,
    "-e": _errors,
    "-re": _reset_errors,
    "-gt": _throughput,
}
