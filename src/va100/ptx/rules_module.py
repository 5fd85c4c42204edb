"""Rules at module scope: version and target, duplicate names, directives, declarations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import prod
from typing import Final

from va100.ptx.isa import ARCHITECTURE
from va100.ptx.program import (
    Alias,
    Function,
    Immediate,
    Initializer,
    PtxModule,
    Span,
    Symbol,
    Variable,
)
from va100.ptx.types import PtxType, Space

Report = Callable[[Span, str, str], None]

NEWEST_VERSION: Final = (9, 5)
_INTRODUCED: Final = {
    10: (1, 0), 11: (1, 0), 12: (1, 2), 13: (1, 2), 20: (2, 0), 21: (2, 0), 30: (3, 0),
    32: (4, 0), 35: (3, 1), 37: (4, 1), 50: (4, 0), 52: (4, 1), 53: (4, 2), 60: (5, 0),
    61: (5, 0), 62: (5, 0), 70: (6, 0), 72: (6, 1), 75: (6, 3), 80: (7, 0),
}  # fmt: skip
"""Architecture to the first PTX version that has it."""

_TARGET: Final = re.compile(r"(?:sm|compute)_(\d+)([a-z]?)")
_OTHER_TARGETS: Final = frozenset(
    {"debug", "texmode_unified", "texmode_independent", "map_f64_to_f32"}
)
_MAX_THREADS: Final = 1024
_MAX_EXTENTS: Final = (1024, 1024, 64)
_MAX_REGISTERS: Final = 255
_MAX_PARAMETER_BYTES: Final = 32764
_MAX_PARAMETER_BYTES_BEFORE: Final = 4352
_LARGE_PARAMETERS: Final = (8, 1)
"""The PTX version from which parameters may have the larger size."""

_MAX_CONSTANT_BYTES: Final = 65536
_MAX_STATIC_SHARED_BYTES: Final = 49152
_FUNCTION_DIRECTIVES: Final = frozenset({"noreturn", "abi_preserve", "abi_preserve_control"})
_CLUSTER: Final = frozenset(
    {"explicitcluster", "reqnctapercluster", "maxclusterrank", "blocksareclusters"}
)
_SIZED_SPACES: Final = frozenset({Space.GLOBAL, Space.CONST, Space.LOCAL})
_MAX_ALIGNMENT: Final = 1 << 16


def check_header(module: PtxModule, report: Report) -> None:
    """Check ``.version``, ``.target`` and ``.address_size``."""
    if module.version > NEWEST_VERSION:
        report(
            _span_of(module, ".version"),
            f"PTX ISA {_dotted(module.version)} is newer than {_dotted(NEWEST_VERSION)}",
            "make the PTX with CUDA 13 or earlier",
        )
    if module.address_size != 64:
        report(_span_of(module, ".address_size"), "only 64-bit addresses are supported", "")
    architectures = 0
    for target in module.target:
        match = _TARGET.fullmatch(target)
        if match:
            architectures += 1
            _check_architecture(module, target, match, report)
        elif target not in _OTHER_TARGETS:
            report(_span_of(module, ".target"), f"unknown target {target!r}", "")
    if not architectures:
        report(_span_of(module, ".target"), "one target such as sm_80 is wanted", "")


def _check_architecture(
    module: PtxModule, target: str, match: re.Match[str], report: Report
) -> None:
    span = _span_of(module, ".target")
    number = int(match[1])
    if number > ARCHITECTURE or match[2]:
        report(
            span,
            f"{target} code does not run on the A100, which is sm_{ARCHITECTURE}",
            f"compile with -arch=compute_{ARCHITECTURE} or lower",
        )
    elif number not in _INTRODUCED:
        report(span, f"unknown target {target!r}", "")
    elif module.version < _INTRODUCED[number]:
        least = _dotted(_INTRODUCED[number])
        report(span, f"{target} needs PTX ISA {least}, the text is {_dotted(module.version)}", "")


def architecture_of(module: PtxModule) -> int:
    """Read the target's number; the A100's when the text does not give a usable one."""
    found = [int(match[1]) for target in module.target if (match := _TARGET.fullmatch(target))]
    return min(max(found, default=ARCHITECTURE), ARCHITECTURE)


def check_names(module: PtxModule, report: Report) -> None:
    """Check that module-scope names are unique, declarations and definitions agree."""
    functions: dict[str, Function] = {}
    variables: dict[str, Variable] = {}
    for item in module.items:
        if isinstance(item, Function):
            if item.name in variables:
                report(item.span, f"{item.name!r} is a variable already", "")
            _check_redeclared(functions.get(item.name), item, report)
            known = functions.get(item.name)
            if known is None or known.body is None:
                functions[item.name] = item
        elif isinstance(item, Variable):
            known_variable = variables.get(item.name)
            if item.name in functions:
                report(item.span, f"{item.name!r} is a function already", "")
            elif known_variable and "extern" not in (known_variable.linkage, item.linkage):
                report(item.span, f"{item.name!r} is declared twice", "")
            variables[item.name] = item
    for alias in (i for i in module.items if isinstance(i, Alias)):
        for problem in _alias_problems(alias, functions):
            report(alias.span, problem, "")


def _alias_problems(alias: Alias, functions: dict[str, Function]) -> Iterator[str]:
    target = functions.get(alias.aliasee)
    own = functions.get(alias.name)
    if target is None or target.body is None or target.is_kernel:
        yield f"{alias.aliasee!r} is no function defined here"
    elif target.linkage == "weak":
        yield f"{alias.aliasee!r} is weak, which an alias cannot stand for"
    elif own is not None and (own.body is not None or _shape(own) != _shape(target)):
        yield f"{alias.name!r} does not agree with {alias.aliasee!r}"


def _check_redeclared(known: Function | None, new: Function, report: Report) -> None:
    if known is None:
        return
    if known.body is not None and new.body is not None:
        report(new.span, f"{new.name!r} is defined twice", "")
    elif known.is_kernel != new.is_kernel or _shape(known) != _shape(new):
        report(new.span, f"{new.name!r} does not agree with its earlier declaration", "")


def _shape(function: Function) -> tuple[list[int], list[int]]:
    return [p.size_bytes for p in function.returns], [p.size_bytes for p in function.params]


def check_variables(module: PtxModule, report: Report) -> None:
    """Check module-scope variables and their initialisers."""
    names = {v.name for v in module.variables} | {f.name for f in module.functions}
    constant_bytes = 0
    for variable in module.variables:
        if variable.space in (Space.LOCAL, Space.PARAM, Space.SREG):
            report(variable.span, f".{variable.space.value} has no place at module scope", "")
        if variable.space is Space.CONST and variable.linkage != "extern":
            constant_bytes += variable.size_bytes
        check_variable(variable, names, report)
    if constant_bytes > _MAX_CONSTANT_BYTES:
        report(Span(0, 0), f"{constant_bytes} bytes of .const; there are {_MAX_CONSTANT_BYTES}", "")


def check_variable(variable: Variable, names: set[str] | None, report: Report) -> None:
    """Check one variable; ``names`` are those an initialiser may take the address of."""
    if variable.type is PtxType.PRED:
        report(variable.span, "a predicate is a register only", "")
    if variable.align is not None and variable.align > _MAX_ALIGNMENT:
        report(variable.span, f"alignment {variable.align} is too large", "")
    if variable.vector * variable.type.bits > 128:
        report(variable.span, "a vector is 16 bytes at most", "")
    sized = variable.linkage != "extern" and variable.space in _SIZED_SPACES
    if sized and 0 in variable.shape:
        report(variable.span, f"{variable.name!r} needs a size", "")
    if any(attribute.startswith("unified") for attribute in variable.attributes):
        report(variable.span, ".unified needs sm_90; the A100 is sm_80", "")
    if variable.managed and variable.space is not Space.GLOBAL:
        report(variable.span, "only a .global variable can be managed", "")
    if variable.initializer is not None:
        _check_initializer(variable, variable.initializer, names, report)


def _check_initializer(
    variable: Variable, initializer: Initializer, names: set[str] | None, report: Report
) -> None:
    if variable.space not in (Space.GLOBAL, Space.CONST):
        report(variable.span, f"a .{variable.space.value} variable takes no initial value", "")
    if variable.linkage == "extern":
        report(variable.span, "an extern variable takes no initial value", "")
    kind = variable.type
    for element in initializer.elements:
        if isinstance(element, Immediate):
            if element.kind != "int" and kind.is_integer:
                report(variable.span, f".{kind.value} takes integers", "")
            continue
        symbol = element if isinstance(element, Symbol) else element[1]
        is_address = isinstance(element, Symbol) or not isinstance(element[0], str)
        if is_address and isinstance(symbol, Symbol) and names is not None:
            plain = symbol.name.removeprefix("generic(").removesuffix(")")
            if plain not in names:
                report(variable.span, f"{plain!r} is not declared", "")
        if isinstance(element, Symbol) and kind.bits not in (32, 64):
            report(
                variable.span,
                f".{kind.value} cannot hold the address of {symbol.name!r}"
                if isinstance(symbol, Symbol)
                else "",
                "use a mask such as 0xFF(name)",
            )


def check_directives(module: PtxModule, function: Function, report: Report) -> None:
    """Check a function's performance-tuning directives and parameters."""
    if function.attributes:
        attribute = function.attributes[0].partition("(")[0]
        report(function.span, f".{attribute} on a function needs sm_90; the A100 is sm_80", "")
    if len(dict(function.directives)) != len(function.directives):
        report(function.span, "a directive is given twice", "")
    for name, values in function.directives:
        for problem in _directive_problems(function, name, values):
            report(function.span, problem, "")
    names = {name for name, _ in function.directives}
    if {"maxntid", "reqntid"} <= names:
        report(function.span, ".maxntid and .reqntid exclude each other", "")
    if "noreturn" in names and (function.is_kernel or function.returns):
        report(function.span, ".noreturn is for functions without return values", "")
    _check_parameters(module, function, report)


def _directive_problems(function: Function, name: str, values: tuple[int, ...]) -> Iterator[str]:
    if not function.is_kernel and name not in _FUNCTION_DIRECTIVES:
        yield f".{name} is for kernels only"
    if name in _CLUSTER:
        yield f".{name} needs sm_90; the A100 is sm_{ARCHITECTURE}"
    if name in ("maxntid", "reqntid"):
        yield from _extent_problems(name, values)
    if name == "maxnreg" and not 1 <= values[0] <= _MAX_REGISTERS:
        yield f".maxnreg is 1 to {_MAX_REGISTERS}, not {values[0]}"


def _check_parameters(module: PtxModule, function: Function, report: Report) -> None:
    size = sum(parameter.size_bytes for parameter in function.params)
    large = module.version >= _LARGE_PARAMETERS
    most = _MAX_PARAMETER_BYTES if large else _MAX_PARAMETER_BYTES_BEFORE
    if function.is_kernel and size > most:
        report(function.span, f"{size} bytes of parameters; {most} fit", "")
    seen = set()
    for parameter in (*function.returns, *function.params):
        if parameter.name in seen and parameter.name != "_":
            report(parameter.span, f"parameter {parameter.name!r} is declared twice", "")
        seen.add(parameter.name)
        if function.is_kernel and parameter.space is not Space.PARAM:
            report(parameter.span, "a kernel's parameters are in .param", "")


def _extent_problems(name: str, values: tuple[int, ...]) -> Iterator[str]:
    for axis, value, most in zip("xyz", values, _MAX_EXTENTS, strict=False):
        if not 1 <= value <= (most if name == "reqntid" else _MAX_THREADS):
            yield f".{name}: {axis} is 1 to {most}, not {value}"
    if prod(values) > _MAX_THREADS:
        yield f".{name}: {prod(values)} threads; a CTA has at most {_MAX_THREADS}"


def check_shared_size(module: PtxModule, report: Report) -> None:
    """Check that module-scope shared memory alone is not more than a CTA may declare."""
    shared = [v for v in module.variables if v.space is Space.SHARED]
    for variable in shared:
        if variable.size_bytes > _MAX_STATIC_SHARED_BYTES:
            report(
                variable.span,
                f"{variable.size_bytes} bytes of static .shared; {_MAX_STATIC_SHARED_BYTES} fit",
                "declare it extern and unsized, and give the size at launch",
            )


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _span_of(module: PtxModule, directive: str) -> Span:
    """Find a header directive's place; the text's start if it is not written."""
    match = re.search(rf"^\s*{re.escape(directive)}\b", module.source, re.MULTILINE)
    if match is None:
        return Span(0, 0)
    start = module.source.index(directive, match.start())
    return Span(start, start + len(directive))
