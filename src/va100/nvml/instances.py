"""MIG's GPU instances and compute instances: kinds, what is there, making, destroying.

What is legal is the library's to say; nothing is planned here (``va100 mig plan`` does that).
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from va100.errors import NvmlError
from va100.nvml import structs
from va100.nvml.client import INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, Nvml
from va100.nvml.readings import Gpu

GPU_PROFILES: Final = 18
COMPUTE_PROFILES: Final = 9
"""Numbers of profiles that NVML may be asked for."""
SHARED_ENGINES: Final = 0
_ABSENT: Final = (NOT_SUPPORTED, INVALID_ARGUMENT, NOT_FOUND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A kind of instance."""

    id: int
    name: str
    slices: int
    instances: int
    multiprocessors: int
    copy_engines: int
    decoders: int
    encoders: int
    jpegs: int
    ofas: int
    memory_mib: int = 0
    p2p: bool = False


Span = tuple[int, int]
"""First slice, and how many."""


class ComputeInstance:
    """A compute instance of a GPU instance."""

    def __init__(self, nvml: Nvml, handle: ctypes.c_void_p) -> None:
        self.nvml = nvml
        self.handle = handle

    @cached_property
    def info(self) -> structs.ComputeInstanceInfo:
        """Number, kind and place."""
        name = "nvmlComputeInstanceGetInfo_v2"
        return self.nvml.filled(name, structs.ComputeInstanceInfo, self.handle)

    @property
    def span(self) -> Span:
        """Its slices within the GPU instance."""
        return self.info.placement.start, self.info.placement.size

    def destroy(self) -> None:
        """Give its slices back."""
        self.nvml.call("nvmlComputeInstanceDestroy", self.handle)


class GpuInstance:
    """A GPU instance."""

    def __init__(self, nvml: Nvml, handle: ctypes.c_void_p) -> None:
        self.nvml = nvml
        self.handle = handle

    @cached_property
    def info(self) -> structs.GpuInstanceInfo:
        """Number, kind and place."""
        return self.nvml.filled("nvmlGpuInstanceGetInfo", structs.GpuInstanceInfo, self.handle)

    @property
    def span(self) -> Span:
        """Its memory slices."""
        return self.info.placement.start, self.info.placement.size

    def destroy(self) -> None:
        """Give its slices back."""
        self.nvml.call("nvmlGpuInstanceDestroy", self.handle)

    @cached_property
    def profiles(self) -> list[Profile]:
        """Kinds of compute instance it takes, smallest first."""
        name = "nvmlGpuInstanceGetComputeInstanceProfileInfoV"
        kind = structs.ComputeInstanceProfile
        found = []
        for number in range(COMPUTE_PROFILES):
            try:
                info = self.nvml.filled(
                    name, kind, self.handle, ctypes.c_uint(number), ctypes.c_uint(SHARED_ENGINES)
                )
            except NvmlError as error:
                if error.code not in _ABSENT:
                    raise
                continue
            found.append(_compute_profile(info))
        return sorted(found, key=lambda profile: (profile.slices, profile.id))

    def remaining(self, profile: Profile) -> int:
        """How many more of a kind there is room for."""
        name = "nvmlGpuInstanceGetComputeInstanceRemainingCapacity"
        return self.nvml.number(name, self.handle, ctypes.c_uint(profile.id))

    def placements(self, profile: Profile) -> list[Span]:
        """Where instances of a kind may lie."""
        name = "nvmlGpuInstanceGetComputeInstancePossiblePlacements"
        number = ctypes.c_uint(profile.id)
        return _spans(_placements(self.nvml, name, self.handle, number))

    def compute_instances(self) -> list[ComputeInstance]:
        """Those there are, smallest kind first."""
        return [
            ComputeInstance(self.nvml, handle)
            for profile in self.profiles
            for handle in _handles(
                self.nvml,
                "nvmlGpuInstanceGetComputeInstances",
                self.handle,
                ctypes.c_uint(profile.id),
            )
        ]

    def create(self, profile: Profile, start: int | None) -> ComputeInstance:
        """Make a compute instance, where it is asked for or where the driver likes."""
        name = "nvmlGpuInstanceCreateComputeInstance"
        arguments = [self.handle, ctypes.c_uint(profile.id)]
        if start is None:
            return ComputeInstance(self.nvml, self.nvml.handle(name, *arguments))
        place = ctypes.byref(structs.Placement(start, _size(self.placements(profile), start)))
        handle = self.nvml.handle(f"{name}WithPlacement", *arguments, place)
        return ComputeInstance(self.nvml, handle)


class MigGpu:
    """A GPU, as MIG divides it."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.nvml = gpu.nvml

    @cached_property
    def profiles(self) -> list[Profile]:
        """Kinds of GPU instance, smallest first, in the order tools list them."""
        name = "nvmlDeviceGetGpuInstanceProfileInfoV"
        found = []
        for number in range(GPU_PROFILES):
            try:
                info = self.nvml.filled(
                    name, structs.GpuInstanceProfile, self.gpu.handle, ctypes.c_uint(number)
                )
            except NvmlError as error:
                if error.code not in _ABSENT:
                    raise
                continue
            found.append(_gpu_profile(info))
        return sorted(found, key=lambda profile: profile.slices)

    def remaining(self, profile: Profile) -> int:
        """How many more of a kind there is room for."""
        return self.gpu.number("GetGpuInstanceRemainingCapacity", profile.id)

    def placements(self, profile: Profile) -> list[Span]:
        """Where instances of a kind may lie, whatever lies there now."""
        name = "nvmlDeviceGetGpuInstancePossiblePlacements_v2"
        number = ctypes.c_uint(profile.id)
        return _spans(_placements(self.nvml, name, self.gpu.handle, number))

    def gpu_instances(self) -> list[GpuInstance]:
        """Those there are, smallest kind first."""
        return [
            GpuInstance(self.nvml, handle)
            for profile in self.profiles
            for handle in _handles(
                self.nvml,
                "nvmlDeviceGetGpuInstances",
                self.gpu.handle,
                ctypes.c_uint(profile.id),
            )
        ]

    def create(self, profile: Profile, start: int | None) -> GpuInstance:
        """Make a GPU instance, where it is asked for or where the driver likes."""
        name = "nvmlDeviceCreateGpuInstance"
        arguments = [self.gpu.handle, ctypes.c_uint(profile.id)]
        if start is None:
            return GpuInstance(self.nvml, self.nvml.handle(name, *arguments))
        place = ctypes.byref(structs.Placement(start, _size(self.placements(profile), start)))
        return GpuInstance(self.nvml, self.nvml.handle(f"{name}WithPlacement", *arguments, place))


def _gpu_profile(info: structs.GpuInstanceProfile) -> Profile:
    return Profile(
        id=info.id,
        name=_plain(info.name),
        slices=info.slices,
        instances=info.instances,
        multiprocessors=info.multiprocessors,
        copy_engines=info.copy_engines,
        decoders=info.decoders,
        encoders=info.encoders,
        jpegs=info.jpegs,
        ofas=info.ofas,
        memory_mib=info.memory_mib,
        p2p=bool(info.p2p),
    )


def _compute_profile(info: structs.ComputeInstanceProfile) -> Profile:
    return Profile(
        id=info.id,
        name=_plain(info.name),
        slices=info.slices,
        instances=info.instances,
        multiprocessors=info.multiprocessors,
        copy_engines=info.copy_engines,
        decoders=info.decoders,
        encoders=info.encoders,
        jpegs=info.jpegs,
        ofas=info.ofas,
    )


def _plain(name: bytes) -> str:
    """A profile's name without the ``MIG`` that the library puts before it."""
    return name.decode().removeprefix("MIG ")


def _handles(
    nvml: Nvml, name: str, handle: ctypes.c_void_p, profile: ctypes.c_uint
) -> list[ctypes.c_void_p]:
    found = (ctypes.c_void_p * 64)()
    count = ctypes.c_uint(len(found))
    nvml.call(name, handle, profile, found, ctypes.byref(count))
    return [ctypes.c_void_p(one) for one in found[: count.value]]


def _placements(
    nvml: Nvml, name: str, handle: ctypes.c_void_p, profile: ctypes.c_uint
) -> list[structs.Placement]:
    found = (structs.Placement * 64)()
    count = ctypes.c_uint(len(found))
    nvml.call(name, handle, profile, found, ctypes.byref(count))
    return list(found[: count.value])


def _spans(placements: list[structs.Placement]) -> list[Span]:
    return [(one.start, one.size) for one in placements]


def _size(spans: list[Span], start: int) -> int:
    """How many slices an instance takes that begins there; its usual size where none may."""
    sizes = dict(spans)
    return sizes.get(start, spans[0][1] if spans else 1)
