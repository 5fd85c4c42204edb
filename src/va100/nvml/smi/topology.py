"""``nvidia-smi topo``: how near GPUs and network adapters are to each other and to processors.

What lies between GPUs is asked of NVML.  Network adapters and processors beside them are a node's
and no GPU's: those of a kind of node with a name come from :mod:`va100.spec.nodes`, as the real
tool takes them from the machine.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Final

from va100.errors import NvmlError
from va100.node import store, topology
from va100.node.topology import Place
from va100.nvml.client import NOT_SUPPORTED
from va100.nvml.readings import Gpu
from va100.nvml.smi import nvlink
from va100.nvml.smi.look import Look
from va100.nvml.smi.options import FLAG, VALUE, Option, help_text, misuse, parse
from va100.spec.nodes import BY_NAME, NodeSpec

PROGRAM: Final = "nvidia-smi topo"
OPTIONS: Final = (
    Option(("-h", "--help"), FLAG, "print this"),
    Option(("-m", "--matrix"), FLAG, "what lies between GPUs, network adapters, processors"),
    Option(("-mp", "--matrix_pci"), FLAG, "the same, as if there were no NVLinks"),
    Option(("-p2p", "--p2pstatus"), VALUE, "r, w, n, a or p: what peers may do", "WHAT"),
    Option(("-i", "--id"), VALUE, "refused with a matrix: it is of all GPUs", "ID,..."),
)
LEVELS: Final = {0: "X", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""What two GPUs have in common on PCIe, by ``nvmlGpuTopologyLevel_t``."""
_LEGEND: Final = (
    ("X", "Self"),
    (
        "SYS",
        "Connection traversing PCIe as well as the SMP interconnect between NUMA nodes "
        "(e.g., QPI/UPI)",
    ),
    (
        "NODE",
        "Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within "
        "a NUMA node",
    ),
    ("PHB", "Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)"),
    (
        "PXB",
        "Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)",
    ),
    ("PIX", "Connection traversing at most a single PCIe bridge"),
    ("NV#", "Connection traversing a bonded set of # NVLinks"),
)
_P2P: Final = {"r": 0, "w": 1, "n": 2, "a": 3, "p": 4}
_P2P_STATES: Final = ("OK", "CNS", "GNS", "TNS", "DR", "NS", "NS")
_UNDERLINED, _PLAIN = "\x1b[4m", "\x1b[0m"


def run(look: Look, words: Sequence[str]) -> int:
    """Do what the verb's options ask."""
    given = parse(words, OPTIONS, PROGRAM)
    if "-h" in given or not given:
        look.write(help_text(f"{PROGRAM} [OPTION [VALUE]]...", OPTIONS))
        return 0
    if len(given) != 1 or "-i" in given:
        raise misuse("Invalid combination of input arguments.", PROGRAM)
    if "-p2p" in given:
        return _peers(look, given["-p2p"])
    return _matrix(look, with_links="-m" in given)


def _matrix(look: Look, *, with_links: bool) -> int:
    gpus = look.gpus()
    node = _known_node(len(gpus))
    places = topology.places(node) if node else ()
    nics = [place for place in places if place.gpu is None]
    names = [f"GPU{gpu.index}" for gpu in gpus] + [nic.name for nic in nics]
    titles = "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    # Escapes would hide the first GPU from scripts that look for its name.
    look.line(f"\t{_UNDERLINED}{titles}{_PLAIN}" if look.is_terminal else f"\t{titles}")
    for gpu in gpus:
        cells = [relation(gpu, other, with_links=with_links) for other in gpus]
        if node:
            cells += [topology.relation(node, places[gpu.index], nic) for nic in nics]
        look.line(_line(f"GPU{gpu.index}", cells, f"{_cpus(node, gpu)}\t{_numa(gpu)}\t\tN/A"))
    for nic in nics:
        others: list[Place] = [places[gpu.index] for gpu in gpus] + nics
        cells = [topology.relation(node, nic, other) for other in others] if node else []
        look.line(_line(nic.name, cells, "\t\t\t"))
    look.line("\nLegend:\n")
    for word, text in _LEGEND:
        look.line(f"  {word:<4} = {text}")
    if node and nics:
        look.line("\nNIC Legend:\n")
        for nic, spec in zip(nics, node.nics, strict=True):
            look.line(f"  {nic.name}: {spec.name}")
    look.line()
    return look.status


def relation(gpu: Gpu, other: Gpu, *, with_links: bool = True) -> str:
    """How near two GPUs are, as the matrix spells it."""
    if gpu.index == other.index:
        return "X"
    count = _links_between(gpu, other) if with_links else 0
    if count:
        return f"NV{count}"
    name = "nvmlDeviceGetTopologyCommonAncestor"
    return LEVELS.get(gpu.nvml.number(name, gpu.handle, other.handle), "SYS")


def _links_between(gpu: Gpu, other: Gpu) -> int:
    """Links that work and end in the other GPU, or in a switch that the other is at, too.

    None where NVML says that the two do not talk over them, as with a GPU that was taken out of the
    fabric for one of its links.
    """
    if _p2p_state(gpu, other, _P2P["n"]) != "OK":
        return 0
    mine, theirs = _ends(gpu), _ends(other)
    direct = mine.count(other.bus_id)
    if direct:
        return direct
    return sum(min(mine.count(end), theirs.count(end)) for end in set(mine) & set(theirs))


def _ends(gpu: Gpu) -> list[str]:
    try:
        return [
            nvlink.remote_bus_id(gpu, link) for link in nvlink.links(gpu) if nvlink.is_up(gpu, link)
        ]
    except NvmlError as error:
        if error.code != NOT_SUPPORTED:
            raise
        return []


def _known_node(gpu_count: int) -> NodeSpec | None:
    """The node's kind, where it has a name and all its GPUs are seen."""
    node = BY_NAME.get(store.describe()["kind"])
    return node if node and node.gpu_count == gpu_count else None


def _line(name: str, cells: Sequence[str], rest: str) -> str:
    spelled = [" X " if cell == "X" else cell for cell in cells]
    return "\t".join([name, *spelled, rest])


def _cpus(node: NodeSpec | None, gpu: Gpu) -> str:
    if node:
        return topology.cpu_affinity(node, gpu.index)
    words = (ctypes.c_ulong * 16)()
    gpu.nvml.call("nvmlDeviceGetCpuAffinity", gpu.handle, ctypes.c_uint(len(words)), words)
    return spans([cpu for cpu in range(64 * len(words)) if words[cpu // 64] >> cpu % 64 & 1])


def _numa(gpu: Gpu) -> str:
    words = (ctypes.c_ulong * 2)()
    gpu.nvml.call(
        "nvmlDeviceGetMemoryAffinity", gpu.handle, ctypes.c_uint(2), words, ctypes.c_uint(0)
    )
    return spans([numa for numa in range(128) if words[numa // 64] >> numa % 64 & 1])


def spans(numbers: Sequence[int]) -> str:
    """Write ascending numbers as ``0-3,8``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)


def _peers(look: Look, what: str) -> int:
    index = _P2P.get(what)
    if index is None:
        raise misuse(f'"{what}" of option "-p2p" is none of {", ".join(_P2P)}.', PROGRAM)
    gpus = look.gpus()
    titles = "".join(f"\tGPU{gpu.index}" for gpu in gpus)
    look.line(f" {titles}\t")
    for gpu in gpus:
        cells = ["X" if gpu.index == o.index else _p2p_state(gpu, o, index) for o in gpus]
        look.line(f" GPU{gpu.index}\t" + "\t".join(cells) + "\t")
    look.line("\nLegend:\n")
    for word, text in (
        ("X", "Self"),
        ("OK", "Status Ok"),
        ("CNS", "Chipset not supported"),
        ("GNS", "GPU not supported"),
        ("TNS", "Topology not supported"),
        ("NS", "Not supported"),
        ("DR", "Disabled by regkey"),
        ("U", "Unknown"),
    ):
        look.line(f"  {word:<4} = {text}")
    return look.status


def _p2p_state(gpu: Gpu, other: Gpu, index: int) -> str:
    name = "nvmlDeviceGetP2PStatus"
    state = gpu.nvml.number(name, gpu.handle, other.handle, ctypes.c_uint(index))
    return _P2P_STATES[state] if state < len(_P2P_STATES) else "U"
