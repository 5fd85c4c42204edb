"""Functions made ready to interpret: instructions bound to their evaluators, storage laid out.

Nothing here runs; :mod:`.frame` and :mod:`.warp` do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple

import numpy as np

from va100.errors import LaunchError, LinkError, UnsupportedInstruction
from va100.gpu.launch import LoadedModule
from va100.ptx.cfg import FlowGraph, build_flow
from va100.ptx.isa.form import Family, Operation, Support
from va100.ptx.program import (
    Address,
    CallArguments,
    Function,
    Guard,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
    Vector,
)
from va100.ptx.provided import PROVIDED
from va100.ptx.texture import problem
from va100.ptx.types import PtxType, Space
from va100.ptx.waits import constant_waits, load_waits
from va100.reference.lanes import Lanes, full

FUNCTION_BASE: Final = 0x7F00_0000_0000
"""Address of function 0, function k lies 16 bytes further each; nothing is mapped there."""
RECURSION_BYTES: Final = 64 * 1024
"""Local memory of a thread set aside for calls whose depth is not known."""


class Home(Enum):
    """What kind of place a symbol names."""

    FRAME = "frame"
    PARAM = "param"
    SHARED = "shared"
    DEVICE = "device"
    CODE = "code"


class Place(NamedTuple):
    """Where a symbol lives: offset in the frame, the parameters, or shared memory; or address."""

    home: Home
    value: int


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction bound to the function that evaluates it."""

    index: int
    instruction: Instruction
    operation: Operation
    evaluate: Callable[[Any], None]
    operands: tuple[Operand | None, ...]
    guard: Guard | None
    line: int
    waits: float
    """Waits for loads that it causes each time it is issued."""
    constant_waits: float
    """The same of constant memory."""


@dataclass(slots=True)
class Code:
    """A function ready to run."""

    flow: FlowGraph
    steps: tuple[Step, ...]
    places: Mapping[str, Place]
    frame_bytes: int
    immediates: dict[tuple[Immediate, np.dtype[Any]], Lanes] = field(default_factory=dict)

    @property
    def function(self) -> Function:
        """The function as parsed."""
        return self.flow.function

    def target(self, label: str) -> int:
        """Instruction index of a label."""
        return self.flow.blocks[self.flow.labels[label]].start

    def immediate(self, literal: Immediate, dtype: np.dtype[Any]) -> Lanes:
        """A literal in every lane."""
        key = (literal, dtype)
        found = self.immediates.get(key)
        if found is None:
            found = self.immediates[key] = _spread(literal, dtype)
        return found


@dataclass(slots=True)
class KernelCode:
    """A kernel with every function it may reach."""

    entry: Code
    codes: Mapping[str, Code]
    addresses: Mapping[str, int]
    """Function name to code address."""
    names: Mapping[int, str]
    param_offsets: Mapping[str, int]
    param_bytes: int
    static_shared_bytes: int
    """Declared and reserved."""
    reserved_shared_bytes: int
    """What is NVIDIA's own, at the end of a CTA's shared memory."""
    local_bytes: int


def link_kernel(
    module: LoadedModule, kernel: str, evaluators: Mapping[Any, Callable[[Any], None]]
) -> KernelCode:
    """Build a kernel and all it may call.

    Raises
    ------
    UnsupportedInstruction
        An instruction among them is not executed by this engine.
    """
    functions = _definitions(module)
    if kernel not in functions or not functions[kernel].is_kernel:
        raise LaunchError("the module has no such kernel", kernel=kernel)
    flows = _reachable(module, functions, kernel)
    shared, static_bytes = _lay_shared(module, flows)
    reserved = 1024 if _reads_reserved(flows) else 0
    addresses = {name: FUNCTION_BASE + 16 * i for i, name in enumerate(_callable_names(module))}
    offsets, param_bytes = _lay_params(functions[kernel])
    outer = {name: Place(Home.DEVICE, address) for name, address in module.addresses.items()}
    outer |= _shared_places(shared, "")
    outer |= {name: Place(Home.CODE, address) for name, address in addresses.items()}
    codes = {}
    for name, flow in flows.items():
        own, frame_bytes = _lay_frame(flow)
        own |= _shared_places(shared, name)
        if flow.function.is_kernel:
            own |= {p: Place(Home.PARAM, offset) for p, offset in offsets.items()}
        codes[name] = _code(module, flow, outer | own, frame_bytes, evaluators)
    return KernelCode(
        entry=codes[kernel],
        codes=codes,
        addresses=addresses,
        names={address: name for name, address in addresses.items()},
        param_offsets=offsets,
        param_bytes=param_bytes,
        static_shared_bytes=static_bytes + reserved,
        reserved_shared_bytes=reserved,
        local_bytes=_local_bytes(codes, kernel),
    )


def align_up(value: int, alignment: int) -> int:
    """The next multiple of a power of two."""
    return (value + alignment - 1) & -alignment


def _definitions(module: LoadedModule) -> dict[str, Function]:
    """Functions by name, a definition before any declaration of it."""
    found: dict[str, Function] = {}
    for function in module.ptx.functions:
        if function.name not in found or function.body is not None:
            found[function.name] = function
    return found


def _callable_names(module: LoadedModule) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f.name for f in module.ptx.functions))


def _reachable(
    module: LoadedModule, functions: Mapping[str, Function], kernel: str
) -> dict[str, FlowGraph]:
    """Flow graphs of the kernel and of all it may call, breadth first."""
    flows: dict[str, FlowGraph] = {}
    queue = [kernel]
    while queue:
        name = queue.pop(0)
        if name in flows or functions[name].body is None:
            continue
        flows[name] = build_flow(module.ptx, functions[name])
        queue += _mentioned(flows[name], functions)
    return flows


def _mentioned(flow: FlowGraph, functions: Mapping[str, Function]) -> list[str]:
    """Functions named by any operand, called or with their address taken."""
    operands = _flatten(o for i in flow.instructions for o in i.operands)
    names = [o.name for o in operands if isinstance(o, Symbol) and o.name in functions]
    for targets in flow.target_lists.values():
        names += [name for name in targets.targets if name in functions]
    return names + _tabled(flow, functions)


def _tabled(flow: FlowGraph, functions: Mapping[str, Function]) -> list[str]:
    """Every function, when a call goes through a register: a table in memory may name any."""
    indirect = any(
        i.opcode == "call" and not isinstance(i.operands[1], Symbol) for i in flow.instructions
    )
    return [n for n, f in functions.items() if not f.is_kernel] if indirect else []


def _flatten(operands: Iterable[Operand | None]) -> Iterable[Operand]:
    for operand in operands:
        if isinstance(operand, Vector | CallArguments):
            yield from _flatten(operand.elements)
        elif isinstance(operand, Address) and operand.base is not None:
            yield operand.base
        elif operand is not None:
            yield operand


def _lay_shared(
    module: LoadedModule, flows: Mapping[str, FlowGraph]
) -> tuple[dict[tuple[str, str], int], int]:
    """Offsets of all shared variables, by function ("" for the module's) and name.

    Unsized ones share the place after the others.
    """
    used = {
        operand.name
        for flow in flows.values()
        for instruction in flow.instructions
        for operand in _flatten(instruction.operands)
        if isinstance(operand, Symbol)
    }
    variables = {("", v.name): v for v in module.ptx.variables if v.name in used}
    for function, flow in flows.items():
        variables |= {(function, name): v for name, v in flow.variables.items()}
    shared = {key: v for key, v in variables.items() if v.space is Space.SHARED}
    offsets: dict[tuple[str, str], int] = {}
    end = 0
    for key, variable in shared.items():
        if variable.size_bytes:
            offsets[key] = align_up(end, variable.alignment_bytes)
            end = offsets[key] + variable.size_bytes
    unsized = {key: v for key, v in shared.items() if not v.size_bytes}
    end = align_up(end, max((v.alignment_bytes for v in unsized.values()), default=1))
    return offsets | dict.fromkeys(unsized, end), end


def _reads_reserved(flows: Mapping[str, FlowGraph]) -> bool:
    """Whether a kernel asks where NVIDIA's own shared memory is."""
    return any(
        isinstance(operand, Register) and operand.name.startswith("%reserved_smem")
        for flow in flows.values()
        for instruction in flow.instructions
        for operand in _flatten(instruction.operands)
    )


def _shared_places(offsets: Mapping[tuple[str, str], int], function: str) -> dict[str, Place]:
    return {
        name: Place(Home.SHARED, at) for (owner, name), at in offsets.items() if owner == function
    }


def _lay_params(kernel: Function) -> tuple[dict[str, int], int]:
    offsets: dict[str, int] = {}
    end = 0
    for param in kernel.params:
        offsets[param.name] = align_up(end, param.alignment_bytes)
        end = offsets[param.name] + param.size_bytes
    return offsets, end


def _lay_frame(flow: FlowGraph) -> tuple[dict[str, Place], int]:
    """Local variables, call parameters and the function's own parameters, in local memory."""
    own = flow.function.params if flow.function.is_kernel else ()
    skipped = {parameter.name for parameter in own}
    places: dict[str, Place] = {}
    end = 0
    for name, variable in flow.variables.items():
        if variable.space not in (Space.LOCAL, Space.PARAM) or name in skipped:
            continue
        offset = align_up(end, variable.alignment_bytes)
        places[name] = Place(Home.FRAME, offset)
        end = offset + variable.size_bytes
    return places, align_up(end, 16)


def _code(
    module: LoadedModule,
    flow: FlowGraph,
    places: Mapping[str, Place],
    frame_bytes: int,
    evaluators: Mapping[Any, Callable[[Any], None]],
) -> Code:
    steps = []
    waits, constants = load_waits(flow), constant_waits(flow)
    for index, instruction in enumerate(flow.instructions):
        operation = flow.operations[index]
        evaluate = evaluators.get(operation.form.family)
        if evaluate is None or operation.form.support is not Support.EXECUTED:
            raise _unsupported(module, instruction, flow.lines[index], "it is not executed")
        if operation.form.family is Family.TEXTURE and (
            reason := problem(operation, instruction.operands, flow.registers)
        ):
            raise _unsupported(module, instruction, flow.lines[index], reason)
        if operation.opcode == "call" and (missing := _missing(module, instruction)):
            reason = f"function {missing} has no body, and the machine does not provide it"
            raise _unsupported(module, instruction, flow.lines[index], reason)
        steps.append(
            Step(
                index,
                instruction,
                operation,
                evaluate,
                instruction.operands,
                instruction.guard,
                flow.lines[index],
                waits[index],
                constants[index],
            )
        )
    return Code(flow, tuple(steps), places, frame_bytes)


def _missing(module: LoadedModule, instruction: Instruction) -> str:
    """Name of the function a call cannot reach, or nothing."""
    target = instruction.operands[1]
    if not isinstance(target, Symbol) or target.name in PROVIDED:
        return ""
    bodies = (f.name for f in module.ptx.functions if f.body is not None)
    return "" if target.name in bodies else target.name


def _unsupported(
    module: LoadedModule, instruction: Instruction, line: int, reason: str
) -> UnsupportedInstruction:
    source = module.ptx.source
    start = source.rfind("\n", 0, instruction.span.start) + 1
    end = source.find("\n", start)
    return UnsupportedInstruction(
        f"{instruction.op}: {reason} (reference engine)",
        file=module.ptx.name,
        line=line,
        column=instruction.span.start - start + 1,
        source_line=source[start : end if end >= 0 else None],
    )


def _local_bytes(codes: Mapping[str, Code], kernel: str) -> int:
    """Bytes of local memory a thread needs: the kernel's frame, and its callees'."""
    if len(codes) == 1:
        return codes[kernel].frame_bytes + (RECURSION_BYTES if _grows(codes[kernel]) else 0)
    return sum(code.frame_bytes for code in codes.values()) + RECURSION_BYTES


def _grows(code: Code) -> bool:
    return any(step.operation.opcode == "alloca" for step in code.steps)


def _spread(literal: Immediate, dtype: np.dtype[Any]) -> Lanes:
    """A literal in a register of a given width; float literals are converted to it."""
    value = literal.value
    if literal.kind == "f64" and dtype.itemsize == 4:
        value = int(np.uint64(value).view(np.float64).astype(np.float32).view(np.uint32))
    elif literal.kind == "f32" and dtype.itemsize == 8:
        value = int(np.uint32(value).view(np.float32).astype(np.float64).view(np.uint64))
    return full(value, dtype)


def missing_symbol(name: str) -> LinkError:
    """The error of a name nobody defines."""
    return LinkError(f"undefined symbol {name}", symbol=name)


def register_type(code: Code, name: str) -> PtxType:
    """Declared type of a register."""
    return code.flow.registers[name]
