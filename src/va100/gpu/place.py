"""Giving a module's variables memory and their initial values.

The same for every engine; which addresses functions get is part of it, since initialisers may
hold them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from va100.errors import LinkError
from va100.gpu.arena import Arena
from va100.gpu.launch import LoadedModule
from va100.ptx.program import Immediate, InitialElement, PtxModule, Symbol, Variable
from va100.ptx.types import PtxType, Space

FUNCTION_BASE: Final = 0x7F00_0000_0000
"""Address of a module's first function; nothing is mapped there."""
FUNCTION_STRIDE: Final = 16


def function_addresses(module: PtxModule) -> dict[str, int]:
    """The number that stands for each function's address, in order of first mention."""
    names = dict.fromkeys(f.name for f in module.functions)
    return {name: FUNCTION_BASE + FUNCTION_STRIDE * k for k, name in enumerate(names)}


def place_module(module: PtxModule, arena: Arena, device: int = 0) -> LoadedModule:
    """Allocate a module's ``.global`` and ``.const`` variables and initialise them.

    Raises
    ------
    OutOfMemory
    LinkError
        A variable is declared ``.extern`` and defined nowhere, or an initialiser names nothing.
    """
    addresses: dict[str, int] = {}
    variables = {v.name: v for v in module.variables if v.space in (Space.GLOBAL, Space.CONST)}
    for variable in _definitions(module, variables):
        addresses[variable.name] = arena.allocate(
            max(variable.size_bytes, 1), device=device, align=max(variable.alignment_bytes, 256)
        )
    known = {**function_addresses(module), **addresses}
    for variable in _definitions(module, variables):
        image = initial_image(variable, known)
        arena.write(addresses[variable.name], image)
    return LoadedModule(ptx=module, addresses=addresses, arena=arena, device=device)


def remove_module(module: LoadedModule) -> None:
    """Free what :func:`place_module` allocated."""
    for address in module.addresses.values():
        module.arena.free(address)


def _definitions(module: PtxModule, variables: Mapping[str, Variable]) -> list[Variable]:
    """One definition a name; a declaration does not hide a definition."""
    found: dict[str, Variable] = {}
    for variable in module.variables:
        if variable.name not in variables:
            continue
        if variable.linkage != "extern":
            found[variable.name] = variable
    for name, variable in variables.items():
        if name not in found and variable.linkage == "extern":
            raise LinkError(f"variable `{name}` is declared but defined nowhere", symbol=name)
    return list(found.values())


def initial_image(variable: Variable, addresses: Mapping[str, int]) -> bytes:
    """Bytes of a variable's initial value, zero where nothing is given."""
    size = variable.type.size_bytes
    elements = variable.initializer.elements if variable.initializer else ()
    parts = [
        (_element(variable, e, addresses) % (1 << 8 * size)).to_bytes(size, "little")
        for e in elements
    ]
    return b"".join(parts).ljust(variable.size_bytes, b"\0")


def _element(
    variable: Variable,
    element: InitialElement,
    addresses: Mapping[str, int],
) -> int:
    if isinstance(element, Immediate):
        return _number(variable, element)
    if isinstance(element, Symbol):
        return _address(variable, element, addresses)
    how, named = element
    if isinstance(named, Immediate):
        return _number(variable, named)
    address = _address(variable, named, addresses)
    if isinstance(how, int):
        shift = (how & -how).bit_length() - 1 if how else 0
        return (address & how) >> shift
    return address


def _number(variable: Variable, literal: Immediate) -> int:
    if literal.kind == "f64" and variable.type is PtxType.F32:
        number = struct.unpack("<d", struct.pack("<Q", literal.value))[0]
        return int(struct.unpack("<I", struct.pack("<f", number))[0])
    if literal.kind == "int" and variable.type in (PtxType.F32, PtxType.F64):
        code, integer = ("<f", "<I") if variable.type is PtxType.F32 else ("<d", "<Q")
        return int(struct.unpack(integer, struct.pack(code, float(literal.value)))[0])
    return literal.value


def _address(variable: Variable, symbol: Symbol, addresses: Mapping[str, int]) -> int:
    if symbol.name not in addresses:
        raise LinkError(
            f"the initialiser of `{variable.name}` names `{symbol.name}`, which is not defined",
            symbol=symbol.name,
        )
    return addresses[symbol.name] + symbol.offset
