"""Tables of the ``mig`` verb, column for column as R580 drivers print them; from rows to lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from va100.nvml.instances import Profile, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRow:
    """A kind of instance, where, and how many more there may be."""

    gpu: int
    profile: Profile
    free: int
    gpu_instance: int = 0
    is_whole: bool = False
    """Of compute instances: takes all of its GPU instance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRow:
    """An instance."""

    gpu: int
    name: str
    profile_id: int
    id: int
    span: Span
    gpu_instance: int = 0


def gpu_profiles(rows: Iterable[ProfileRow]) -> Iterator[str]:
    """``-lgip``."""
    edge = _edge(79)
    yield edge
    yield f"| {'GPU instance profiles:':<78}|"
    yield "| GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC  |"
    yield "|                                Free/Total   GiB              CE    JPEG  OFA  |"
    yield f"|{'=' * 79}|"
    for row in rows:
        one = row.profile
        yield (
            f"|{row.gpu:4d}  MIG {one.name:<16}{one.id:2d}{row.free:6d}/{one.instances:<9d}"
            f"{one.memory_mib / 1024:<11.2f}{'Yes' if one.p2p else 'No'}{one.multiprocessors:7d}"
            f"{one.decoders:6d}{one.encoders:6d}   |"
        )
        yield f"|{one.copy_engines:64d}{one.jpegs:6d}{one.ofas:6d}   |"
        yield edge


def gpu_instances(rows: Iterable[InstanceRow]) -> Iterator[str]:
    """``-lgi``."""
    edge = _edge(57)
    yield edge
    yield f"| {'GPU instances:':<56}|"
    yield "| GPU   Name               Profile  Instance   Placement  |"
    yield "|                            ID       ID       Start:Size |"
    yield f"|{'=' * 57}|"
    for row in rows:
        start, size = row.span
        yield (
            f"|{row.gpu:4d}  MIG {row.name:<16}{row.profile_id:4d}{row.id:9d}"
            f"{start:11d}:{size:<6d}|"
        )
        yield edge


def compute_profiles(rows: Iterable[ProfileRow]) -> Iterator[str]:
    """``-lcip``."""
    edge = _edge(86)
    yield edge
    yield f"| {'Compute instance profiles:':<85}|"
    yield (
        "| GPU     GPU       Name             Profile  Instances   Exclusive       Shared       |"
    )
    yield (
        "|       Instance                       ID     Free/Total     SM       DEC   ENC   OFA  |"
    )
    yield (
        "|         ID                                                          CE    JPEG       |"
    )
    yield f"|{'=' * 86}|"
    for row in rows:
        one = row.profile
        mark = "*" if row.is_whole else " "
        yield (
            f"|{row.gpu:4d}{row.gpu_instance:7d}       MIG {one.name:<14}{one.id:4d}{mark}"
            f"{row.free:6d}/{one.instances:<7d}{one.multiprocessors:7d}"
            f"{one.decoders:9d}{one.encoders:6d}{one.ofas:6d}   |"
        )
        yield f"|{one.copy_engines:71d}{one.jpegs:6d}         |"
        yield edge


def compute_instances(rows: Iterable[InstanceRow]) -> Iterator[str]:
    """``-lci``."""
    edge = _edge(68)
    yield edge
    yield f"| {'Compute instances:':<67}|"
    yield "| GPU     GPU       Name             Profile   Instance   Placement  |"
    yield "|       Instance                       ID        ID       Start:Size |"
    yield "|         ID                                                         |"
    yield f"|{'=' * 68}|"
    for row in rows:
        start, size = row.span
        yield (
            f"|{row.gpu:4d}{row.gpu_instance:7d}       MIG {row.name:<14}{row.profile_id:4d}"
            f"{row.id:10d}{start:11d}:{size:<6d}|"
        )
        yield edge


def placements(gpu: int, profile_id: int, spans: Iterable[Span]) -> str:
    """Line of ``-lgipp``."""
    found = list(spans)
    starts = ",".join(str(start) for start, _ in found)
    size = found[0][1] if found else 0
    word = "Placement " if len(found) == 1 else "Placements"
    return f"GPU {gpu:2d} Profile ID {profile_id:2d} {word}: {{{starts}}}:{size}"


def _edge(width: int) -> str:
    return f"+{'-' * width}+"
