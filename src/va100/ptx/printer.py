"""A tree back to PTX text; parsing that text gives the same tree again, spans aside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from va100.ptx.directives import is_setting
from va100.ptx.program import (
    Address,
    Alias,
    CallArguments,
    CallPrototype,
    Function,
    Immediate,
    InitialElement,
    Instruction,
    Label,
    Location,
    Negative,
    Not,
    Operand,
    Pair,
    Pragma,
    PtxModule,
    Register,
    RegisterDecl,
    Scope,
    Section,
    SourceFile,
    Statement,
    Symbol,
    TargetList,
    TextureAddress,
    TopLevel,
    Variable,
    Vector,
)
from va100.ptx.types import Space


def print_module(module: PtxModule) -> str:
    """Print a whole module."""
    lines = [
        f".version {module.version[0]}.{module.version[1]}",
        f".target {', '.join(module.target)}",
        f".address_size {module.address_size}",
        "",
    ]
    for item in module.items:
        lines += _item(item)
    return "\n".join(lines) + "\n"


def print_function(function: Function) -> str:
    """Print one function or kernel."""
    return "\n".join(_function(function))


def print_variable(variable: Variable) -> str:
    """Print one variable's declaration, ``;`` included."""
    return _variable(variable) + ";"


def print_instruction(instruction: Instruction) -> str:
    """Print one instruction, ``;`` included."""
    guard = ""
    if instruction.guard is not None:
        guard = f"@{'!' if instruction.guard.negated else ''}{instruction.guard.register} "
    if instruction.opcode == "call":
        operands = _call(instruction.operands)
    else:
        operands = ", ".join(print_operand(operand) for operand in instruction.operands)
    return f"{guard}{instruction.op}{' ' if operands else ''}{operands};"


def print_operand(operand: Operand | None) -> str:  # noqa: C901  one case a kind
    """Print one operand; ``None`` is the sink ``_``."""
    match operand:
        case None:
            return "_"
        case Register(name):
            return name
        case Immediate():
            return _immediate(operand)
        case Symbol(name, offset):
            return name + _offset(offset)
        case Address(None, offset):
            return f"[{offset}]"
        case Address(base, offset):
            return f"[{print_operand(base)}{_offset(offset)}]"
        case Vector(elements):
            return "{" + ", ".join(print_operand(e) for e in elements) + "}"
        case Pair(first, second):
            return f"{print_operand(first)}|{print_operand(second)}"
        case Not(inner):
            return f"!{inner.name}"
        case Negative(inner):
            return f"-{inner.name}"
        case TextureAddress(parts):
            return "[" + ", ".join(print_operand(part) for part in parts) + "]"
        case CallArguments(elements):
            return "(" + ", ".join(print_operand(e) for e in elements) + ")"


def _immediate(value: Immediate) -> str:
    if value.kind == "int":
        return str(value.value)
    return f"0f{value.value:08X}" if value.kind == "f32" else f"0d{value.value:016X}"


def _offset(offset: int) -> str:
    return f"{offset:+d}" if offset else ""


def _call(operands: tuple[Operand | None, ...]) -> str:
    returns, target, arguments, table = operands
    parts = [] if returns is None else [print_operand(returns)]
    parts.append(print_operand(target))
    if table is not None or arguments != CallArguments(()):
        parts.append(print_operand(arguments))
    if table is not None:
        parts.append(print_operand(table))
    return ", ".join(parts)


# ---------------------------------------------------------------- module scope


def _item(item: TopLevel) -> list[str]:
    match item:
        case Function():
            return [*_function(item), ""]
        case Variable():
            return [_variable(item) + ";"]
        case SourceFile(index, path, _, trailer):
            return [f'.file {index} "{path}"' + "".join(f", {n}" for n in trailer)]
        case Section("@@DWARF", text, _):
            return [f"@@DWARF{text}"]
        case Section((".nv_intermediate_source_section" | ".language") as name, text, _):
            return [f"{name}{text}"]
        case Section(name, text, _):
            return [f".section {name} {{{text}}}"]
        case Alias(name, aliasee, _):
            return [f".alias {name}, {aliasee};"]
        case Pragma():
            return [_pragma(item.texts)]


def _function(function: Function) -> list[str]:
    head = [f".{function.linkage}"] if function.linkage else []
    head.append(".entry" if function.is_kernel else ".func")
    if function.attributes:
        head.append(_attributes(function.attributes))
    if function.returns:
        head.append(_parameters(function.returns))
    head.append(function.name)
    lines = [" ".join(head) + " ("]
    lines += [
        f"    {_variable(p)}{',' if p is not function.params[-1] else ''}" for p in function.params
    ]
    lines.append(")")
    lines += [_directive(name, numbers) for name, numbers in function.directives]
    lines += [_pragma((text,)) for text in function.pragmas]
    if function.body is None:
        lines.append(";")
    else:
        lines += ["{", *_body(function.body, 1), "}"]
    return lines


def _directive(name: str, numbers: tuple[int, ...]) -> str:
    return f".{name} {', '.join(str(n) for n in numbers)}".rstrip()


def _attributes(attributes: tuple[str, ...]) -> str:
    return ".attribute(" + ", ".join(f".{a}" for a in attributes) + ")"


def _parameters(parameters: tuple[Variable, ...]) -> str:
    return "(" + ", ".join(_variable(p) for p in parameters) + ")"


def _variable(variable: Variable) -> str:
    parts = [f".{variable.linkage}"] if variable.linkage else []
    parts.append(f".{variable.space.value}")
    attributes = (("managed",) if variable.managed else ()) + variable.attributes
    if attributes:
        parts.append(_attributes(attributes))
    if variable.align is not None:
        parts.append(f".align {variable.align}")
    if variable.vector > 1:
        parts.append(f".v{variable.vector}")
    parts.append(f".{variable.type.value}")
    if variable.pointer is not None:
        space = variable.pointer.space
        named = "" if space is Space.GENERIC else f".{space.value} "
        parts.append(f".ptr {named}.align {variable.pointer.align}")
    shape = "".join(f"[{extent}]" if extent else "[]" for extent in variable.shape)
    parts.append(variable.name + shape)
    if variable.initializer is not None:
        parts.append("= " + _initializer(variable))
    return " ".join(parts)


def _initializer(variable: Variable) -> str:
    elements = variable.initializer.elements if variable.initializer else ()
    texts = [_element(element) for element in elements]
    bare = len(texts) == 1 and not variable.shape and variable.vector == 1
    if bare and not is_setting(elements[0]):
        return texts[0]
    return "{" + ", ".join(texts) + "}"


def _element(element: InitialElement) -> str:
    if isinstance(element, Immediate | Symbol):
        return print_operand(element)
    key, value = element
    if is_setting(element):
        return f"{key} = {print_operand(value)}"
    if not isinstance(value, Symbol):
        raise TypeError("only a sampler's setting pairs a name with a number")
    if key == "generic":
        return f"generic({value.name}){_offset(value.offset)}"
    return f"{key:#x}({print_operand(value)})"


def _pragma(texts: tuple[str, ...]) -> str:
    return ".pragma " + ", ".join(f'"{text}"' for text in texts) + ";"


# ---------------------------------------------------------------- bodies


_INDENT: Final = "    "


def _body(body: Sequence[Statement], depth: int) -> Iterator[str]:
    indent = _INDENT * depth
    for statement in body:
        match statement:
            case Scope(inner, _):
                yield indent + "{"
                yield from _body(inner, depth + 1)
                yield indent + "}"
            case Label(name, _):
                yield f"{name}:"
            case _:
                yield indent + _statement(statement)


def _statement(statement: Statement) -> str:
    match statement:
        case Instruction():
            return print_instruction(statement)
        case RegisterDecl():
            return _registers(statement)
        case Variable():
            return _variable(statement) + ";"
        case Location():
            return _location(statement)
        case Pragma(texts, _):
            return _pragma(texts)
        case CallPrototype():
            return _prototype(statement)
        case TargetList(name, kind, targets, _):
            return f"{name}: .{kind} {', '.join(targets)};"
        case Label() | Scope():
            raise TypeError("labels and scopes are printed by their body")


def _registers(declaration: RegisterDecl) -> str:
    vector = f".v{declaration.vector} " if declaration.vector > 1 else ""
    names = (n if count is None else f"{n}<{count}>" for n, count in declaration.names)
    return f".reg {vector}.{declaration.type.value} {', '.join(names)};"


def _location(location: Location) -> str:
    kind = ".loc_intermediate" if location.intermediate else ".loc"
    text = f"{kind} {location.file} {location.line} {location.column}"
    if location.function_name:
        text += f", function_name {location.function_name}"
    if location.inlined_at is not None:
        text += ", inlined_at " + " ".join(str(n) for n in location.inlined_at)
    return text


def _prototype(prototype: CallPrototype) -> str:
    parts = [f"{prototype.name}: .callprototype"]
    if prototype.returns:
        parts.append(_parameters(prototype.returns))
    parts += ["_", _parameters(prototype.params)]
    if prototype.noreturn:
        parts.append(".noreturn")
    parts += [_directive(name, numbers) for name, numbers in prototype.directives]
    return " ".join(parts) + ";"
