"""What work runs on: a GPU (or a MIG slice of one), how many stand in a node, how nodes meet.

Names are resolved here; rates of operators and collectives are asked for by the same names in
:mod:`va100.perf`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from va100.errors import PlanError
from va100.spec import mig
from va100.spec.a100 import A100_SXM4_80GB
from va100.spec.clouds import INSTANCES
from va100.spec.model import ChipSpec, CloudInstanceSpec, HeadlineSpec, MmaKind
from va100.spec.names import MODELS, Model, close_names, find_models
from va100.spec.nodes import BY_NAME as NODES_BY_NAME
from va100.spec.nodes import NETWORKS, NodeSpec
from va100.spec.rates import memory_bytes_per_s, nvlink_bytes_per_s, peak_flop_per_s
from va100.units import GBIT, GIB

HDR_NODE_BYTES_PER_S: Final = 8 * 200.0 * GBIT
"""A DGX A100's eight 200 Gbit/s ports, one direction."""
ETHERNET_BYTES_PER_S: Final = 100.0 * GBIT
_BOARD: Final = re.compile(r"(?:hgx|dgx)-(?P<family>[a-z0-9]+)-(?P<count>\d+)x(?P<size>\d+)gb")
_MULTIPLE: Final = re.compile(r"(?P<count>\d+)x-?(?P<gpu>.+)")
_SLICE: Final = re.compile(r"(?P<gpu>.+?):(?P<profile>\d+g\.\d+gb(?:\+me)?)")
_FAMILY_FORM: Final = {
    "v100": "sxm2",
    "a100": "sxm4",
    "a800": "sxm4",
    "h100": "sxm",
    "h200": "sxm",
    "b200": "sxm",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A node type: its GPUs, what each holds, and the network between such nodes."""

    name: str
    chip: str
    """Name that :mod:`va100.perf.operators` takes."""
    node: str
    """Name that :mod:`va100.perf.collectives` takes."""
    gpus_per_node: int
    memory_bytes: int
    """What CUDA can give out, per GPU or slice."""
    memory_bytes_per_s: float
    tensor_flop_per_s: float
    """Dense 16-bit peak of one GPU or slice."""
    network_bytes_per_s: float
    """One node, one direction."""
    power_w: float
    """Limit of one GPU, or the slice's share of it."""
    idle_w: float
    slice_name: str = ""
    provider: str = ""
    link_ratio: float = 1.0
    """Rate of its links over those of ``node``."""
    network: str = ""
    """Between nodes, in place of the node's own: a name of :data:`va100.spec.nodes.NETWORKS`."""

    @property
    def is_slice(self) -> bool:
        """Whether this is a MIG slice rather than a GPU."""
        return bool(self.slice_name)


def on_network(machine: Machine, network: str) -> Machine:
    """The same nodes on another network.

    Raises
    ------
    PlanError
        No such network.
    """
    if network not in NETWORKS:
        raise PlanError(f"no network {network!r}", hint=f"one of {', '.join(NETWORKS)}")
    spec = NETWORKS[network]
    rate = spec.nic_count * spec.nic_bytes_per_s
    return replace(machine, network=network, network_bytes_per_s=rate)


def find_machine(name: str) -> Machine:
    """Machine of a name.

    Boards (``hgx-a100-8x80gb``), GPUs (``a100-pcie-80gb``), several of one in a host
    (``4x-a100-pcie-40gb``), MIG slices (``a100-sxm4-80gb:1g.10gb``), and clouds' instance types
    (``p4d.24xlarge``).

    Raises
    ------
    PlanError
        No such machine, or the name leaves several.
    """
    text = name.strip().lower()
    if text in NODES_BY_NAME:
        return _of_node(NODES_BY_NAME[text])
    for instance in INSTANCES:
        if text in (instance.name.lower(), f"{instance.provider}:{instance.name}".lower()):
            return _of_instance(instance)
    board = _BOARD.fullmatch(text)
    if board is not None:
        form = _FAMILY_FORM.get(board["family"], "")
        model = _one_model(f"{board['family']}-{form}-{board['size']}gb".replace("--", "-"), name)
        return _of_model(name.strip().lower(), model, int(board["count"]), HDR_NODE_BYTES_PER_S)
    cut = _SLICE.fullmatch(text)
    if cut is not None:
        return _of_slice(text, _one_model(cut["gpu"], name), cut["profile"])
    multiple = _MULTIPLE.fullmatch(text)
    if multiple is not None:
        model = _one_model(multiple["gpu"], name)
        return _of_model(text, model, int(multiple["count"]), ETHERNET_BYTES_PER_S)
    model = _one_model(text, name)
    return _of_model(model.name.lower(), model, 1, ETHERNET_BYTES_PER_S)


def _one_model(text: str, asked: str) -> Model:
    found = find_models(text)
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(model.name.lower() for model in found)
        raise PlanError(f"machine {asked!r} may be {names}", hint="name one of them")
    near = close_names(text) or [model.name for model in MODELS]
    raise PlanError(
        f"no machine {asked!r}",
        hint="hgx-a100-8x80gb, hgx-a100-8x40gb, hgx-a100-4x80gb, a GPU such as "
        f"{', '.join(n.lower() for n in near)}, a slice such as a100-sxm4-80gb:1g.10gb, or an "
        "instance type such as p4d.24xlarge (`va100 specs clouds` lists them)",
    )


def _of_model(name: str, model: Model, count: int, network_bytes_per_s: float) -> Machine:
    if count < 1:
        raise PlanError(f"machine {name!r} has {count} GPUs", hint="give at least one")
    return Machine(
        name=name,
        chip=model.name.lower(),
        node=_node_of(model, count),
        gpus_per_node=count,
        memory_bytes=_usable_bytes(model),
        memory_bytes_per_s=_dram(model),
        tensor_flop_per_s=tensor_peak_flop_per_s(model),
        network_bytes_per_s=network_bytes_per_s,
        power_w=float(model.power_default_w),
        idle_w=_idle_w(model),
        link_ratio=_link_ratio(model),
    )


_IDLE_SHARE: Final = 0.12
"""Of the power limit that a GPU of which only headlines are known draws at rest, as an A100."""


def _idle_w(model: Model) -> float:
    if isinstance(model, ChipSpec):
        return model.measured.idle_w
    return _IDLE_SHARE * model.power_default_w


def _of_node(node: NodeSpec) -> Machine:
    network = node.network
    rate = network.nic_count * network.nic_bytes_per_s
    plain = _of_model(node.name, node.chip, node.gpu_count, rate)
    return replace(plain, node=node.name)


def _node_of(model: Model, count: int) -> str:
    """Kind of node that is priced in a machine's place: the like of it with A100s."""
    size = 40 if model.memory_bytes < 60 * GIB else 80
    if model.form_factor.upper().startswith("SXM"):
        return f"hgx-a100-{4 if 1 < count <= 4 else 8}x{size}gb"
    board = 2 if count <= 2 else 4 if count <= 4 else 8
    if isinstance(model, HeadlineSpec) and not model.link_count:
        return "pcie-a100-80gb-x8-unbridged"
    return f"pcie-a100-{size}gb-x{board}"


def _link_ratio(model: Model) -> float:
    """NVLink rate over the A100's; 1 where a stand-in without NVLink is as slow."""
    if isinstance(model, ChipSpec) or not model.nvlink_bytes_per_s:
        return 1.0
    return model.nvlink_bytes_per_s / nvlink_bytes_per_s(A100_SXM4_80GB)


def _of_slice(name: str, model: Model, profile_name: str) -> Machine:
    if not isinstance(model, ChipSpec):
        raise PlanError(
            f"no MIG table for {model.name}", hint="slices are known of the four A100 models"
        )
    profiles = {profile.name: profile for profile in mig.profiles(model)}
    if profile_name not in profiles:
        raise PlanError(
            f"{model.name} has no MIG profile {profile_name}",
            hint=f"it has {', '.join(profiles)}",
        )
    profile = profiles[profile_name]
    share = profile.sm_count / model.sm_count
    memory_share = profile.memory_slice_count / mig.MEMORY_SLICES
    return Machine(
        name=name,
        chip=f"{model.name.lower()}:{profile.name}",
        node=_node_of(model, 1),
        gpus_per_node=1,
        memory_bytes=profile.memory_bytes,
        memory_bytes_per_s=_dram(model) * memory_share,
        tensor_flop_per_s=tensor_peak_flop_per_s(model) * share,
        network_bytes_per_s=ETHERNET_BYTES_PER_S,
        power_w=model.power_default_w * share,
        idle_w=model.measured.idle_w * share,
        slice_name=profile.name,
    )


def _of_instance(instance: CloudInstanceSpec) -> Machine:
    model = _one_model(instance.gpu_model, instance.name)
    network = instance.network_bytes_per_s or ETHERNET_BYTES_PER_S
    known = f"{instance.provider}-{instance.name}".lower().replace("_", "-")
    plain = _of_model(instance.name.lower(), model, instance.gpu_count, network)
    return replace(
        plain,
        name=f"{instance.provider}:{instance.name}".lower(),
        node=known if known in NODES_BY_NAME else plain.node,
        provider=instance.provider,
    )


def _usable_bytes(model: Model) -> int:
    if isinstance(model, ChipSpec):
        return model.memory_cuda_bytes
    return int(model.memory_bytes * _CUDA_SHARE)


_CUDA_SHARE: Final = 0.985
"""Of a card's memory that CUDA gives out, as on A100s; other cards were not read."""


def _dram(model: Model) -> float:
    if isinstance(model, ChipSpec):
        return memory_bytes_per_s(model)
    return model.memory_bytes_per_s


def tensor_peak_flop_per_s(model: Model) -> float:
    """Dense 16-bit tensor peak; of a GPU without bf16, that of fp16."""
    if isinstance(model, ChipSpec):
        return peak_flop_per_s(model, MmaKind.BF16)
    return model.bf16_tensor_flop_per_s or model.fp16_tensor_flop_per_s or 0.0
