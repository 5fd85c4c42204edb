"""``call``: device functions of the module, the functions the runtime provides, and pointers.

Parameters travel in words of 32 lanes; a callee gets an array of pointers to them, arguments
first, then results.  It returns the lanes that came back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from va100.jit.context import Context
from va100.jit.emit import Value
from va100.ptx.isa.form import Operation
from va100.ptx.program import (
    CallArguments,
    Immediate,
    Operand,
    Register,
    Symbol,
    Variable,
)

LANES: Final = 32


def words_of(variable: Variable) -> int:
    """Words of 32 lanes a call parameter takes."""
    return max(-(-variable.size_bytes // 4), 1)


def lower_call(c: Context, op: Operation) -> None:
    """Direct, indirect, or to the runtime."""
    returns, target, arguments, prototype = c.instruction.operands
    passed = [_argument(c, a) for a in _listed(arguments)]
    results = [_result(c, r) for r in _listed(returns)]
    _call(c, target, passed, results)
    del prototype
    for operand, words in zip(_listed(returns), results, strict=True):
        if isinstance(operand, Register):
            c.write(operand, load_words(c, words, c.flow.registers[operand.name].bits))


def _call(c: Context, target: Operand | None, passed: list[str], results: list[str]) -> None:
    if isinstance(target, Symbol) and target.name in c.flow.registers:
        target = Register(target.name)
    if isinstance(target, Symbol):
        function = c.symbols.functions.get(target.name)
        if function is None or function.body is None:
            _call_runtime(c, target.name, passed, results)
        else:
            _call_function(c, c.function_symbol(target.name), [*passed, *results], "")
        return
    if not isinstance(target, Register):
        raise c.refuse(f"cannot call {target!r}")
    _call_indirect(c, target, [*passed, *results])


def _listed(operand: Operand | None) -> tuple[Operand | None, ...]:
    return operand.elements if isinstance(operand, CallArguments) else ()


def _argument(c: Context, operand: Operand | None) -> str:
    """Words that hold an argument: a parameter variable's own, or made from a register."""
    if isinstance(operand, Symbol) and operand.name in c.call_words:
        return c.call_words[operand.name]
    if isinstance(operand, Register):
        value = c.clean(c.read(operand, 32))
    elif isinstance(operand, Immediate):
        value = c.read(operand, 64 if operand.kind == "f64" else 32)
    else:
        raise c.refuse("a call's operands must be parameter variables, registers or numbers")
    words = c.array("i32", 4 * LANES)
    store_words(c, words, value)
    return words


def _result(c: Context, operand: Operand | None) -> str:
    if isinstance(operand, Symbol) and operand.name in c.call_words:
        return c.call_words[operand.name]
    if operand is None or isinstance(operand, Register):
        return c.array("i32", 4 * LANES)
    raise c.refuse("a call's results must be parameter variables or registers")


def store_words(c: Context, words: str, value: Value) -> None:
    """Put a value of up to 128 bits where a callee reads it."""
    if value.shape.bits > 32:
        store_wide_words(c, words, value)
        return
    wide = c.vector(c.resized(value, 32))
    c.line(f"store <32 x i32> {wide}, ptr {words}, align 4")


def load_words(c: Context, words: str, bits: int) -> Value:
    """A value of up to 128 bits that a callee left."""
    low = c.op(f"load <32 x i32>, ptr {words}, align 4")
    if bits <= 32:
        return c.resized(c.from_vector(low, 32), bits)
    kind = f"<32 x i{bits}>"
    whole = c.op(f"zext <32 x i32> {low} to {kind}")
    for part in range(1, bits // 32):
        at = c.op(f"getelementptr i8, ptr {words}, i64 {4 * LANES * part}")
        word = c.op(f"load <32 x i32>, ptr {at}, align 4")
        wide = c.op(f"zext <32 x i32> {word} to {kind}")
        moved = c.op(f"shl {kind} {wide}, splat (i{bits} {32 * part})")
        whole = c.op(f"or {kind} {whole}, {moved}")
    return c.from_vector(whole, bits)


# ------------------------------------------------------------------ functions of the module


def _argument_array(c: Context, names: list[str]) -> str:
    table = c.array("ptr", max(len(names), 1))
    for k, name in enumerate(names):
        slot = c.op(f"getelementptr ptr, ptr {table}, i64 {k}")
        c.line(f"store ptr {name}, ptr {slot}")
    return table


def _next_frame(c: Context) -> str:
    """Local memory of the callee starts where the caller's ends."""
    if c.allocates:
        return _above_all(c)
    if c.is_kernel:
        return str(c.frame_bytes)
    return c.op(f"add i64 %frame, {c.frame_bytes}")


def _above_all(c: Context) -> str:
    """The first place, for a frame, that no lane has taken from its stack."""
    ends = c.op("load <32 x i64>, ptr %stack.end, align 64")
    name = "llvm.vector.reduce.umax.v32i64"
    c.declare(name, "declare i64 {}(<32 x i64>)")
    highest = c.op(f"call i64 @{name}(<32 x i64> {ends})")
    return c.op(f"and i64 {c.op(f'add i64 {highest}, 15')}, -16")


def _call_function(c: Context, symbol: str, names: list[str], target: str) -> None:
    table = _argument_array(c, names)
    extra = f", i64 {target}" if target else ""
    back = c.op(
        f"call i32 @{symbol}(ptr %w, i32 {c.lanes}, ptr {table}, i64 {_next_frame(c)}{extra})"
    )
    c.returned = back


def _call_indirect(c: Context, target: Register, names: list[str]) -> None:
    """Lanes that hold the same address call together, one address after another."""
    value = c.resized(c.read(target, 64), 64)
    symbol = c.indirect_symbol(len(names))
    if value.shape.uniform:
        _call_function(c, symbol, names, c.base(value))
        return
    table = _argument_array(c, names)
    where = c.array("i64")
    c.line(f"store <32 x i64> {c.vector(value)}, ptr {where}, align 64")
    frame = _next_frame(c)
    rest_at, back_at = c.array("i32", 1), c.array("i32", 1)
    c.line(f"store i32 {c.lanes}, ptr {rest_at}")
    c.line(f"store i32 0, ptr {back_at}")
    head, body, done = c.name("callhead"), c.name("callbody"), c.name("calldone")
    c.line(f"br label %{head}")
    c.label(head)
    rest = c.op(f"load i32, ptr {rest_at}")
    c.line(f"br i1 {c.op(f'icmp eq i32 {rest}, 0')}, label %{done}, label %{body}")
    c.label(body)
    c.declare("llvm.cttz.i32", "declare i32 {}(i32, i1)")
    leader = c.op(f"call i32 @llvm.cttz.i32(i32 {rest}, i1 true)")
    slot = c.op(f"getelementptr i64, ptr {where}, i32 {leader}")
    address = c.op(f"load i64, ptr {slot}")
    every = c.op(f"load <32 x i64>, ptr {where}, align 64")
    same = c.op(f"icmp eq <32 x i64> {every}, {c.splat(address, 'i64')}")
    group = c.op(f"and i32 {rest}, {c.op(f'bitcast <32 x i1> {same} to i32')}")
    back = c.op(f"call i32 @{symbol}(ptr %w, i32 {group}, ptr {table}, i64 {frame}, i64 {address})")
    c.line(f"store i32 {c.op(f'xor i32 {rest}, {group}')}, ptr {rest_at}")
    total = c.op(f"or i32 {c.op(f'load i32, ptr {back_at}')}, {back}")
    c.line(f"store i32 {total}, ptr {back_at}")
    c.line(f"br label %{head}")
    c.label(done)
    c.returned = c.op(f"load i32, ptr {back_at}")


def indirect_dispatcher(symbol: str, count: int, functions: Mapping[str, tuple[int, str]]) -> str:
    """A function that calls one of many by address; ``functions`` maps name to address, symbol."""
    cases = " ".join(
        f"i64 {address}, label %f{k}" for k, (address, _) in enumerate(functions.values())
    )
    lines = [
        f"define internal i32 @{symbol}(ptr %w, i32 %group, ptr %argv, i64 %frame, i64 %target) {{",
        "entry:",
        f"  switch i64 %target, label %bad [{cases}]",
    ]
    for k, (_, callee) in enumerate(functions.values()):
        lines += [
            f"f{k}:",
            f"  %r{k} = call i32 @{callee}(ptr %w, i32 %group, ptr %argv, i64 %frame)",
            f"  ret i32 %r{k}",
        ]
    del count
    lines += [
        "bad:",
        "  call void @va_h_bad_call(ptr %w, i32 %group, i64 %target)",
        "  unreachable",
        "}",
    ]
    return "\n".join(lines)


# ------------------------------------------------------------------ functions of the runtime


def _load_argument(c: Context, words: str, bits: int) -> str:
    """An argument as an array of 32 integers in memory."""
    if bits == 32:
        return words
    where = c.array("i64")
    whole = c.vector(load_words(c, words, 64))
    c.line(f"store <32 x i64> {whole}, ptr {where}, align 64")
    return where


def store_wide_words(c: Context, words: str, value: Value) -> None:
    """Put a value of 64 or 128 bits where a callee or a caller reads it."""
    vector, bits = c.vector(value), value.shape.bits
    for part in range(bits // 32):
        moved = c.op(f"lshr <32 x i{bits}> {vector}, splat (i{bits} {32 * part})")
        word = c.op(f"trunc <32 x i{bits}> {moved} to <32 x i32>")
        at = c.op(f"getelementptr i8, ptr {words}, i64 {4 * LANES * part}")
        c.line(f"store <32 x i32> {word}, ptr {at}, align 4")


def _vprintf(c: Context, arguments: list[str], results: list[str]) -> None:
    fmt, args = (_load_argument(c, a, 64) for a in arguments[:2])
    out = results[0] if results else c.array("i32")
    c.declare("va_h_vprintf", "declare void {}(ptr, i32, ptr, ptr, ptr)")
    c.line(f"call void @va_h_vprintf(ptr %w, i32 {c.lanes}, ptr {fmt}, ptr {args}, ptr {out})")


def _assertfail(c: Context, arguments: list[str], results: list[str]) -> None:
    del results
    message, file = (_load_argument(c, a, 64) for a in arguments[:2])
    line = _load_argument(c, arguments[2], 32)
    function = _load_argument(c, arguments[3], 64)
    c.declare("va_h_assertfail", "declare void {}(ptr, i32, i32, ptr, ptr, ptr, ptr) cold")
    empty = c.op(f"icmp eq i32 {c.lanes}, 0")
    fail, done = c.name("fail"), c.name("held")
    c.line(f"br i1 {empty}, label %{done}, label %{fail}")
    c.label(fail)
    c.line(
        f"call void @va_h_assertfail(ptr %w, i32 {c.site}, i32 {c.lanes}, ptr {message}, "
        f"ptr {file}, ptr {line}, ptr {function})"
    )
    c.line(f"br label %{done}")
    c.label(done)


def _malloc(c: Context, arguments: list[str], results: list[str]) -> None:
    sizes, out = _load_argument(c, arguments[0], 64), c.array("i64")
    c.declare("va_h_malloc", "declare void {}(ptr, i32, ptr, ptr)")
    c.line(f"call void @va_h_malloc(ptr %w, i32 {c.lanes}, ptr {sizes}, ptr {out})")
    loaded = c.op(f"load <32 x i64>, ptr {out}, align 64")
    store_wide_words(c, results[0], c.from_vector(loaded, 64))


def _free(c: Context, arguments: list[str], results: list[str]) -> None:
    del results
    where = _load_argument(c, arguments[0], 64)
    c.declare("va_h_free", "declare void {}(ptr, i32, i32, ptr)")
    c.line(f"call void @va_h_free(ptr %w, i32 {c.site}, i32 {c.lanes}, ptr {where})")


def _launch_grid(c: Context, arguments: list[str], results: list[str]) -> None:
    c.ordered = True
    records = _load_argument(c, arguments[0], 64)
    c.declare("va_h_launch_grid", "declare void {}(ptr, i32, ptr, ptr)")
    c.line(f"call void @va_h_launch_grid(ptr %w, i32 {c.lanes}, ptr {records}, ptr {results[0]})")


_RUNTIME: Final[Mapping[str, Callable[[Context, list[str], list[str]], None]]] = {
    "vprintf": _vprintf,
    "__assertfail": _assertfail,
    "malloc": _malloc,
    "free": _free,
    "__va100_launch_grid": _launch_grid,
}


def _call_runtime(c: Context, name: str, arguments: list[str], results: list[str]) -> None:
    if name not in _RUNTIME:
        raise c.refuse(f"function `{name}` has no body here and the runtime does not provide it")
    _RUNTIME[name](c, arguments, results)
    c.returned = c.lanes
