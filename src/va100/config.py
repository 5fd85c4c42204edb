"""Settings: the one reader of the environment.

Everything below this module is handed what it needs; everything above asks :class:`Settings`.
The native core reads the same variables by itself, since it also runs where no Python does.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from va100.errors import NodeError, SetupError
from va100.gpu.native import NVCC_DIR, PTXAS
from va100.node import store
from va100.node.kinds import BY_NAME
from va100.spec.model import ChipSpec
from va100.spec.names import close_names, find_models
from va100.work import OBSERVED_CTAS

DEFAULT_MODEL: Final = "A100-SXM4-80GB"
MOST_GPUS: Final = 16
MOST_WORKERS: Final = 4096
MOST_SHUFFLE: Final = 1 << 30
MOST_OBSERVED: Final = 1 << 30
ENGINES: Final = ("jit", "reference")
STRICT_WARP: Final = "strict-warp"
KEEP_CONTEXT: Final = "keep-context"
ONLY_CHILD_OF: Final = "child-of-"
CHECK_MANNERS: Final = (STRICT_WARP, KEEP_CONTEXT)
CHECK_TOOLS: Final = ("memcheck", "initcheck", "synccheck", "racecheck", *CHECK_MANNERS)
"""What ``VA100_CHECK`` may name: tools, and manners of checking.

``strict-warp`` makes races of what only shuffles and votes order, ``keep-context`` lets a fault end
its kernel alone.  ``child-of-NUMBER`` restricts all to processes that the numbered one started.
"""

_WHEEL_PROGRAM: Final = Path("nvidia", "cu13", "bin")
VARIABLES: Final[Mapping[str, str]] = {
    "VA100_MODEL": "A100 model of every virtual GPU",
    "VA100_GPUS": "count of virtual GPUs, 1 to 16",
    "VA100_NODE": "node whose cards they are instead: `va100 node`",
    "VA100_WORKERS": "CPU threads that run CTAs; 0: one a core",
    "VA100_SHUFFLE": "seed of another order of CTAs and warps; 0: as they are numbered",
    "VA100_ENGINE": "jit, or reference for the slow oracle",
    "VA100_REPORT": "file that a program's launches are written to at its exit",
    "VA100_PROFILE": "1: every counter and source line of each launch is written there, too",
    "VA100_CALIBRATION": "file of va100 calibrate, by whose factors times are predicted",
    "VA100_OBSERVE": "CTAs of a launch whose accesses go through models of the caches",
    "VA100_LOG": "1: say which calls are refused and which images load",
    "VA100_CACHE_DIR": "where compiled programs are kept",
    "VA100_CHECK": "tools of `va100 check` to run, separated by commas",
    "VA100_CHECK_REPORT": "file that their findings are written to",
    "VA100_CHECK_KERNELS": "regular expression for the names of kernels to check; after a line "
    "break, one for those not to",
    "VA100_DUMP": "file that a core dump of the first kernel that faults is written to",
    "VA100_DEBUG": "terminal, or a file of commands: what `va100 debug` sets",
    "VA100_TRACE": "instructions of chosen threads to print: kernel=saxpy,cta=0,thread=0-3",
}
"""What a person may set, with its meaning; the native core knows a few more for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the environment asks for."""

    model: str
    gpu_count: int
    workers: int
    """0: one a core."""
    engine: str
    report: Path | None
    log: bool
    cache_dir: Path
    search_path: str
    """Where programs are looked for, as ``PATH`` spells it."""
    cuda_home: Path | None
    check: tuple[str, ...] = ()
    """Tools of the checker; empty: it is off."""
    check_report: Path | None = None
    check_kernels: str = ""
    """Empty: all."""
    trace: str = ""
    """What :mod:`va100.debug.trace` reads; empty: no trace."""
    dump: Path | None = None
    """Where a core dump of a fault goes; none: no dumps."""
    shuffle: int = 0
    """Seed of another order of CTAs and warps; 0: as they are numbered."""
    profile: bool = False
    """Whether the report tells every counter and source line of each launch."""
    observed: int | None = None
    """What was asked of :attr:`observe_ctas`; none: the usual."""
    calibration: Path | None = None
    """Where factors of ``va100 calibrate`` are; none: the model as it is."""
    debug: str = ""
    """``terminal``, or a file of debugger commands; empty: no debugger."""
    node: str = ""
    """The node whose cards they are; empty: so many of one model that each process has alone."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read a mapping, the process's own environment when left out.

        Raises
        ------
        SetupError
            A variable holds what it cannot.
        """
        variables = os.environ if environment is None else environment
        if variables.get("VA100_CHECK"):
            require_checkable(variables.get("VA100_ENGINE", ""))
        report = variables.get("VA100_REPORT", "")
        home = variables.get("CUDA_HOME") or variables.get("CUDA_PATH") or ""
        node = variables.get("VA100_NODE", "")
        model, count = cards_of(node) if node else _plain_cards(variables)
        return cls(
            model=model,
            gpu_count=count,
            node=node,
            workers=_number(variables, "VA100_WORKERS", 0, least=0, most=MOST_WORKERS),
            engine=_choice(variables, "VA100_ENGINE", ENGINES),
            report=Path(report) if report else None,
            log=variables.get("VA100_LOG", "0") not in ("", "0"),
            cache_dir=_cache_dir(variables),
            search_path=variables.get("PATH", os.defpath),
            cuda_home=Path(home) if home else None,
            check=_check_tools(variables.get("VA100_CHECK", "")),
            check_report=_path(variables.get("VA100_CHECK_REPORT", "")),
            check_kernels=variables.get("VA100_CHECK_KERNELS", ""),
            trace=variables.get("VA100_TRACE", ""),
            dump=_path(variables.get("VA100_DUMP", "")),
            shuffle=_number(variables, "VA100_SHUFFLE", 0, least=0, most=MOST_SHUFFLE),
            profile=variables.get("VA100_PROFILE", "0") not in ("", "0"),
            observed=(
                _number(variables, "VA100_OBSERVE", 0, least=0, most=MOST_OBSERVED)
                if variables.get("VA100_OBSERVE")
                else None
            ),
            calibration=_path(variables.get("VA100_CALIBRATION", "")),
            debug=variables.get("VA100_DEBUG", ""),
        )

    @property
    def chip(self) -> ChipSpec:
        """Facts of the model, as calibrated.

        Raises
        ------
        SetupError
            The file of the calibration holds none.
        """
        chip = _chips(self.model)[0]
        if self.calibration is None:
            return chip
        from va100.profile.calibrate import load  # noqa: PLC0415  not loaded by most commands

        return load(self.calibration).applied(chip)

    @property
    def observe_ctas(self) -> int:
        """CTAs of a launch whose accesses go through models of the caches."""
        if self.observed is not None:
            return self.observed
        return OBSERVED_CTAS if self.profile else 0

    def variables(self) -> dict[str, str]:
        """Spell the settings as the variables that the native core reads."""
        spelled = {
            "VA100_MODEL": self.model,
            "VA100_GPUS": str(self.gpu_count),
            "VA100_WORKERS": str(self.workers),
            "VA100_ENGINE": self.engine,
            "VA100_LOG": "1" if self.log else "0",
            "VA100_CACHE_DIR": str(self.cache_dir),
            "VA100_NODE": self.node,
        }
        if self.shuffle:
            spelled["VA100_SHUFFLE"] = str(self.shuffle)
        files = {
            "VA100_REPORT": self.report,
            "VA100_CHECK_REPORT": self.check_report,
            "VA100_DUMP": self.dump,
            "VA100_CALIBRATION": self.calibration,
        }
        spelled |= {name: str(path) for name, path in files.items() if path is not None}
        if self.check:
            spelled["VA100_CHECK"] = ",".join(self.check)
            spelled["VA100_CHECK_KERNELS"] = self.check_kernels
        if self.trace:
            spelled["VA100_TRACE"] = self.trace
        if self.profile:
            spelled["VA100_PROFILE"] = "1"
        if self.observed is not None or self.profile:
            spelled["VA100_OBSERVE"] = str(self.observe_ctas)
        if self.debug:
            spelled["VA100_DEBUG"] = self.debug
        return spelled


def cards_of(node: str) -> tuple[str, int]:
    """Look up the model and the count of a node's cards.

    Raises
    ------
    SetupError
        There is no such node, nor a kind of that name.
    """
    kind = BY_NAME.get(node.lower())
    try:
        gpus = store.describe(node)["gpus"]
    except NodeError as error:
        if kind is not None and error.why == "no-such-node":  # it is made on first use
            return kind.chip.name, len(kind.seats)
        raise SetupError(
            f"VA100_NODE={node}: {error}",
            remedy=f"va100 node create {node} --kind hgx-a100-8x80gb, or unset VA100_NODE",
        ) from error
    return str(gpus[0]["model"]), len(gpus)


def find_program(name: str, settings: Settings) -> Path | None:
    """Look for a CUDA program: in ``PATH``, in ``CUDA_HOME``, in NVIDIA's Python wheels.

    Ours that stand before them in ``PATH`` are passed over.
    """
    ours = {str(NVCC_DIR), str(PTXAS.parent)}
    places = [entry for entry in settings.search_path.split(os.pathsep) if entry not in ours]
    found = shutil.which(name, path=os.pathsep.join(places))
    if found is not None:
        return Path(found)
    folders = [settings.cuda_home / "bin"] if settings.cuda_home is not None else []
    folders += [Path(entry) / _WHEEL_PROGRAM for entry in sys.path if entry]
    for folder in folders:
        if os.access(folder / name, os.X_OK):
            return folder / name
    return None


def require_checkable(engine: str) -> None:
    """Refuse to check what is interpreted: the checker is told by machine code.

    Raises
    ------
    SetupError
    """
    if engine == "reference":
        raise SetupError(
            "the checker is told by the JIT's code, and VA100_ENGINE=reference interprets",
            remedy="unset VA100_ENGINE",
        )


def model_name(query: str, *, origin: str) -> str:
    """Resolve a name that people give an A100 to the name in the specs.

    Parameters
    ----------
    origin : str
        What to blame in the error: a variable or an option.

    Raises
    ------
    SetupError
        No A100 is called so, or more than one is.
    """
    chips = _chips(query)
    if len(chips) == 1:
        return chips[0].name
    if chips:
        names = ", ".join(chip.name for chip in chips)
        raise SetupError(f"{origin}={query} leaves a choice", remedy=f"name one of {names}")
    near = [chip.name for name in close_names(query) for chip in _chips(name)]
    names = ", ".join(dict.fromkeys(near or [chip.name for chip in _chips("A100")]))
    raise SetupError(f"{origin}={query} is no A100 model", remedy=f"name one of {names}")


def inherited() -> dict[str, str]:
    """Copy the process's environment, for a child's."""
    return dict(os.environ)


def adopt(variables: Mapping[str, str]) -> None:
    """Set variables of this process, which those that it starts inherit."""
    os.environ.update(variables)


def program_name(arguments: Sequence[str]) -> str:
    """Name what runs in this process: a script, else the executable that started Python.

    Parameters
    ----------
    arguments : sequence of str
        ``sys.argv``; empty or blank in an interpreter that a program without Python started.
    """
    if arguments and arguments[0] not in ("", "-c"):
        return arguments[0]
    try:
        return str(Path("/proc/self/exe").readlink())
    except OSError:
        return ""


def python_library() -> Path | None:
    """Find the shared library of this Python, which programs without one load to compile."""
    told = [sysconfig.get_config_var(key) for key in ("INSTSONAME", "LDLIBRARY")]
    names = [name for name in told if name and ".so" in name]
    # A static interpreter may have its library beside it all the same, as Debian's and Conda's.
    names.append(f"libpython{sysconfig.get_python_version()}.so.1.0")
    folders = [sysconfig.get_config_var("LIBDIR"), str(Path(sys.base_prefix, "lib"))]
    candidates = (Path(folder, name) for name in names for folder in folders if folder)
    return next((path for path in candidates if path.exists()), None)


def _plain_cards(variables: Mapping[str, str]) -> tuple[str, int]:
    model = model_name(variables.get("VA100_MODEL") or DEFAULT_MODEL, origin="VA100_MODEL")
    return model, _number(variables, "VA100_GPUS", 1, least=1, most=MOST_GPUS)


def _chips(query: str) -> list[ChipSpec]:
    """A100s that a name means; other GPUs have no silicon here to run on."""
    return [model for model in find_models(query) if isinstance(model, ChipSpec)]


def _check_tools(text: str) -> tuple[str, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    parents = [word for word in words if word.startswith(ONLY_CHILD_OF)]
    tools = tuple(word for word in words if word not in parents)
    if parents and f"{ONLY_CHILD_OF}{os.getppid()}" not in parents:
        tools = ()
    for tool in tools:
        if tool not in CHECK_TOOLS:
            raise SetupError(
                f"VA100_CHECK={text}: {tool} is none of {', '.join(CHECK_TOOLS)}",
                remedy="export VA100_CHECK=memcheck",
            )
    return tools


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _cache_dir(variables: Mapping[str, str]) -> Path:
    own = variables.get("VA100_CACHE_DIR")
    if own:
        return Path(own)
    common = variables.get("XDG_CACHE_HOME")
    if common:
        return Path(common) / "va100"
    return Path(variables.get("HOME") or Path.home()) / ".cache" / "va100"


def _number(
    variables: Mapping[str, str], name: str, fallback: int, *, least: int, most: int
) -> int:
    text = variables.get(name) or str(fallback)
    if not text.isdecimal() or not least <= int(text) <= most:
        raise SetupError(
            f"{name}={text} is no number from {least} to {most}", remedy=f"export {name}={fallback}"
        )
    return int(text)


def _choice(variables: Mapping[str, str], name: str, legal: tuple[str, ...]) -> str:
    text = variables.get(name) or legal[0]
    if text not in legal:
        raise SetupError(
            f"{name}={text} is none of {', '.join(legal)}", remedy=f"export {name}={legal[0]}"
        )
    return text
