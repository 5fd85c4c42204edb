"""``nvidia-smi mig``: list, make and destroy GPU instances and compute instances."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from va100.errors import NvmlError
from va100.nvml.client import NOT_FOUND, NOT_SUPPORTED
from va100.nvml.instances import GpuInstance, MigGpu, Profile
from va100.nvml.smi import mig_tables
from va100.nvml.smi.look import Look, Stop
from va100.nvml.smi.mig_tables import InstanceRow, ProfileRow
from va100.nvml.smi.options import (
    FLAG,
    OPTIONAL,
    VALUE,
    Given,
    Option,
    help_text,
    misuse,
    parse,
)

PROGRAM: Final = "nvidia-smi mig"
OPTIONS: Final = (
    Option(("-h", "--help"), FLAG, "print this"),
    Option(("-i", "--id"), VALUE, "only these GPUs", "ID,..."),
    Option(("-gi", "--gpu-instance-id"), VALUE, "only these GPU instances", "ID,..."),
    Option(("-ci", "--compute-instance-id"), VALUE, "only these compute instances", "ID,..."),
    Option(("-lgip", "--list-gpu-instance-profiles"), FLAG, "list kinds of GPU instance"),
    Option(("-lgipp", "--list-gpu-instance-possible-placements"), FLAG, "list where they may lie"),
    Option(
        ("-cgi", "--create-gpu-instance"),
        VALUE,
        "make GPU instances, by number or name, where told",
        "PROFILE[:START],...",
    ),
    Option(("-C", "--default-compute-instance"), FLAG, "with -cgi: and fill each with one"),
    Option(("-dgi", "--destroy-gpu-instance"), FLAG, "destroy GPU instances"),
    Option(("-lgi", "--list-gpu-instances"), FLAG, "list GPU instances"),
    Option(("-lcip", "--list-compute-instance-profiles"), FLAG, "list kinds of compute instance"),
    Option(
        ("-lcipp", "--list-compute-instance-possible-placements"), FLAG, "list where they may lie"
    ),
    Option(
        ("-cci", "--create-compute-instance"),
        OPTIONAL,
        "make compute instances (default: as large as may be)",
        "PROFILE[:START],...",
    ),
    Option(("-dci", "--destroy-compute-instance"), FLAG, "destroy compute instances"),
    Option(("-lci", "--list-compute-instances"), FLAG, "list compute instances"),
)


def run(look: Look, words: Sequence[str]) -> int:
    """Do what the verb's options ask."""
    given = parse(words, OPTIONS, PROGRAM)
    if "-h" in given or not given:
        look.write(help_text(f"{PROGRAM} [OPTION [VALUE]]...", OPTIONS))
        return 0
    asked = [name for name in given if name in _ACTIONS]
    allowed = {"-i", "-gi", "-ci", *asked, *(["-C"] if "-cgi" in given else [])}
    if len(asked) != 1 or set(given) - allowed:
        raise misuse("Invalid combination of input arguments.", PROGRAM)
    look.chosen = tuple(filter(None, given.get("-i", "").split(",")))
    _ACTIONS[asked[0]](look, given)
    return look.status


def _enabled(look: Look) -> list[MigGpu]:
    """GPUs whose MIG mode is on.

    Raises
    ------
    Stop
        None is.
    """
    gpus = look.gpus()
    found = [MigGpu(gpu) for gpu in gpus if gpu.is_mig_enabled]
    if found:
        return found
    if all(_lacks_mig(MigGpu(gpu)) for gpu in gpus):
        raise Stop("No MIG-supported devices found.\n", NOT_FOUND)
    raise Stop("No MIG-enabled devices found.\n", NOT_FOUND)


def _lacks_mig(card: MigGpu) -> bool:
    try:
        return not card.gpu.mig_mode
    except NvmlError as error:
        if error.code != NOT_SUPPORTED:
            raise
        return True


def _numbers(given: Given, name: str) -> set[int] | None:
    """Numbers of instances that are meant; none: all."""
    if name not in given:
        return None
    texts = given[name].split(",")
    for text in texts:
        if not text.isdecimal():
            raise misuse(f'"{text}" of option "{name}" is no number.', PROGRAM)
    return {int(text) for text in texts}


def _gpu_instances(look: Look, given: Given) -> list[tuple[MigGpu, GpuInstance]]:
    """GPU instances that are meant.

    Raises
    ------
    Stop
        There is none.
    """
    meant = _numbers(given, "-gi")
    found = [
        (card, instance)
        for card in _enabled(look)
        for instance in card.gpu_instances()
        if meant is None or instance.info.id in meant
    ]
    if not found:
        raise Stop("No GPU instances found: Not Found\n", NOT_FOUND)
    return found


def _write(look: Look, lines: Iterator[str]) -> None:
    for line in lines:
        look.line(line)


def _list_gpu_profiles(look: Look, _given: Given) -> None:
    rows = [
        ProfileRow(gpu=card.gpu.index, profile=profile, free=card.remaining(profile))
        for card in _enabled(look)
        for profile in card.profiles
    ]
    _write(look, mig_tables.gpu_profiles(rows))


def _list_gpu_placements(look: Look, _given: Given) -> None:
    for card in _enabled(look):
        for profile in card.profiles:
            spans = card.placements(profile)
            look.line(mig_tables.placements(card.gpu.index, profile.id, spans))


def _list_gpu_instances(look: Look, given: Given) -> None:
    rows = [
        InstanceRow(
            gpu=card.gpu.index,
            name=_gpu_profile(card, instance).name,
            profile_id=instance.info.profile_id,
            id=instance.info.id,
            span=instance.span,
        )
        for card, instance in _gpu_instances(look, given)
    ]
    _write(look, mig_tables.gpu_instances(rows))


def _list_compute_profiles(look: Look, given: Given) -> None:
    rows = [
        ProfileRow(
            gpu=card.gpu.index,
            gpu_instance=instance.info.id,
            profile=profile,
            free=instance.remaining(profile),
            is_whole=profile == _whole(instance),
        )
        for card, instance in _gpu_instances(look, given)
        for profile in instance.profiles
    ]
    _write(look, mig_tables.compute_profiles(rows))


def _list_compute_placements(look: Look, given: Given) -> None:
    for card, instance in _gpu_instances(look, given):
        for profile in instance.profiles:
            line = mig_tables.placements(card.gpu.index, profile.id, instance.placements(profile))
            where = f"GPU {card.gpu.index:2d} "
            look.line(f"{where}GPU instance ID {instance.info.id:2d} {line.removeprefix(where)}")


def _list_compute_instances(look: Look, given: Given) -> None:
    meant = _numbers(given, "-ci")
    rows = [
        InstanceRow(
            gpu=card.gpu.index,
            gpu_instance=instance.info.id,
            name=_named(instance.profiles, compute.info.profile_id).name,
            profile_id=compute.info.profile_id,
            id=compute.info.id,
            span=compute.span,
        )
        for card, instance in _gpu_instances(look, given)
        for compute in instance.compute_instances()
        if meant is None or compute.info.id in meant
    ]
    if not rows:
        raise Stop("No compute instances found: Not Found\n", NOT_FOUND)
    _write(look, mig_tables.compute_instances(rows))


def _create_gpu_instances(look: Look, given: Given) -> None:
    wishes = [_wish(text, "-cgi") for text in given["-cgi"].split(",")]
    for card in _enabled(look):
        for wanted, start in wishes:
            profile = _find(card.profiles, wanted, f"GPU {card.gpu.index:2d}", "-lgip")
            instance = _create_gpu_instance(look, card, profile, start)
            if "-C" in given:
                _create_compute_instance(look, card, instance, _whole(instance), None)


def _create_gpu_instance(
    look: Look, card: MigGpu, profile: Profile, start: int | None
) -> GpuInstance:
    try:
        instance = card.create(profile, start)
    except NvmlError as error:
        raise Stop(
            f"Unable to create a GPU instance on GPU {card.gpu.index:2d} using profile "
            f"{profile.id}: {error.text}\nFailed to create GPU instances: {error.text}\n",
            error.code,
        ) from None
    look.line(
        f"Successfully created GPU instance ID {instance.info.id:2d} on GPU {card.gpu.index:2d} "
        f"using profile MIG {profile.name} (ID {profile.id:2d})"
    )
    return instance


def _create_compute_instances(look: Look, given: Given) -> None:
    wishes = [_wish(text, "-cci") for text in given["-cci"].split(",")] if given["-cci"] else []
    for card, instance in _gpu_instances(look, given):
        where = f"GPU {card.gpu.index:2d} GPU instance ID {instance.info.id:2d}"
        for wanted, start in wishes:
            profile = _find(instance.profiles, wanted, where, "-lcip")
            _create_compute_instance(look, card, instance, profile, start)
        if not wishes:
            _create_compute_instance(look, card, instance, _whole(instance), None)


def _create_compute_instance(
    look: Look, card: MigGpu, instance: GpuInstance, profile: Profile, start: int | None
) -> None:
    where = f"GPU {card.gpu.index:2d} GPU instance ID {instance.info.id:2d}"
    try:
        compute = instance.create(profile, start)
    except NvmlError as error:
        raise Stop(
            f"Unable to create a compute instance on {where} using profile {profile.id}: "
            f"{error.text}\nFailed to create compute instances: {error.text}\n",
            error.code,
        ) from None
    look.line(
        f"Successfully created compute instance ID {compute.info.id:2d} on {where} "
        f"using profile MIG {profile.name} (ID {profile.id:2d})"
    )


def _destroy_gpu_instances(look: Look, given: Given) -> None:
    for card, instance in _gpu_instances(look, given):
        what = f"GPU instance ID {instance.info.id:2d} from GPU {card.gpu.index:2d}"
        _destroy(look, instance.destroy, what, "GPU instances")


def _destroy_compute_instances(look: Look, given: Given) -> None:
    meant = _numbers(given, "-ci")
    any_found = False
    for card, instance in _gpu_instances(look, given):
        where = f"GPU {card.gpu.index:2d} GPU instance ID {instance.info.id:2d}"
        for compute in instance.compute_instances():
            if meant is None or compute.info.id in meant:
                any_found = True
                what = f"compute instance ID {compute.info.id:2d} from {where}"
                _destroy(look, compute.destroy, what, "compute instances")
    if not any_found:
        raise Stop("No compute instances found: Not Found\n", NOT_FOUND)


def _destroy(look: Look, act: Callable[[], None], what: str, kind: str) -> None:
    try:
        act()
    except NvmlError as error:
        raise Stop(
            f"Unable to destroy {what}: {error.text}\nFailed to destroy {kind}: {error.text}\n",
            error.code,
        ) from None
    look.line(f"Successfully destroyed {what}")


def _wish(text: str, option: str) -> tuple[str, int | None]:
    """A profile's number or name, and where its instance is to begin."""
    wanted, colon, start = text.strip().partition(":")
    if not wanted or (colon and not start.isdecimal()):
        raise misuse(f'"{text}" of option "{option}" is no PROFILE[:START].', PROGRAM)
    return wanted, int(start) if colon else None


def _find(profiles: Sequence[Profile], wanted: str, where: str, listing: str) -> Profile:
    for profile in profiles:
        if wanted.removeprefix("MIG ") in (profile.name, str(profile.id)):
            return profile
    raise misuse(f'No profile "{wanted}" on {where}; "mig {listing}" lists them.', PROGRAM)


def _named(profiles: Sequence[Profile], profile_id: int) -> Profile:
    return next(profile for profile in profiles if profile.id == profile_id)


def _gpu_profile(card: MigGpu, instance: GpuInstance) -> Profile:
    return _named(card.profiles, instance.info.profile_id)


def _whole(instance: GpuInstance) -> Profile:
    """The kind of compute instance that takes all of a GPU instance."""
    return max(instance.profiles, key=lambda profile: profile.slices)


_ACTIONS: Final[Mapping[str, Callable[[Look, Given], None]]] = {
    "-lgip": _list_gpu_profiles,
    "-lgipp": _list_gpu_placements,
    "-cgi": _create_gpu_instances,
    "-dgi": _destroy_gpu_instances,
    "-lgi": _list_gpu_instances,
    "-lcip": _list_compute_profiles,
    "-lcipp": _list_compute_placements,
    "-cci": _create_compute_instances,
    "-dci": _destroy_compute_instances,
    "-lci": _list_compute_instances,
}
