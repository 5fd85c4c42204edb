"""Kernels made from rows of the instruction table: one instruction, its operands from memory.

Many instructions share a kernel, to save compiling.  Each is laid down several times, since an
engine may treat operands that vary from lane to lane, that are the same in a warp, and that are
affine in the thread index by different code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from tests.helpers import rationals
from tests.helpers.engines import load, pack
from va100.gpu.arena import Arena
from va100.gpu.launch import Engine
from va100.ptx.isa import ARCHITECTURE, ISA, decode
from va100.ptx.isa.form import Family, Form, Operation, Support
from va100.ptx.types import PtxType

GRID = 12
BLOCK = 32
VALUES = GRID * BLOCK
BATCH = 24
STRIDE = 8
"""Bytes between the values of one operand, whatever its type."""
STYLES = ("varying", "uniform", "affine", "steep", "constant")
TRANSFERRED = frozenset("add sub neg mul mad shl shr and or xor div rem cvt".split())
"""Opcodes whose results the JIT may tell at compile time; only these are tried in the last two."""

SCALAR_FAMILIES = (
    Family.INTEGER,
    Family.FLOATING,
    Family.HALF,
    Family.COMPARE,
    Family.LOGIC,
    Family.CONVERT,
)
_WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
_SOURCES = {
    "shl": (None, "u32"),
    "shr": (None, "u32"),
    "bfe": (None, "u32", "u32"),
    "bfi": (None, None, "u32", "u32"),
    "fns": ("b32", "u32", "s32"),
    "szext": ("u32", "u32"),
}
"""Opcode to the types of its sources; ``None`` is the instruction's."""
_RESULTS = {"setp": "pred", "testp": "pred", "popc": "u32", "clz": "u32", "bfind": "u32"}


@dataclass(frozen=True)
class Signature:
    """Types of an instruction's operands, as registers hold them."""

    operation: Operation
    results: tuple[str, ...]
    sources: tuple[str, ...]
    immediate: int | None = None


def executed_forms() -> tuple[Form, ...]:
    """Rows that the A100 has and both engines execute."""
    return tuple(f for f in ISA if f.support is Support.EXECUTED and f.min_sm <= ARCHITECTURE)


def spellings(form: Form) -> Iterator[str]:
    """Every instruction a row stands for."""
    for parts in product(*form.slots):
        yield ".".join((form.opcode, *(p for p in parts if p)))


def scalar_operations(family: Family) -> dict[str, list[Signature]]:
    """All instructions of a family of pure functions, by opcode."""
    found: dict[str, list[Signature]] = {}
    seen: set[str] = set()
    for form in executed_forms():
        if form.family is not family:
            continue
        for text in spellings(form):
            if text in seen or not _is_legal(text):
                continue
            seen.add(text)
            found.setdefault(form.opcode, []).extend(signatures(decode(text)))
    return found


def _is_legal(text: str) -> bool:
    """Leave out what a row's slots allow but PTX does not."""
    operation = decode(text)
    if operation.opcode == "cvt":
        return _is_legal_conversion(operation)
    ftz_without_f32 = operation.ftz and not any(
        t in (PtxType.F32, PtxType.F16, PtxType.F16X2) for t in operation.types
    )
    return not (operation.opcode == "set" and ftz_without_f32)


def _is_legal_conversion(operation: Operation) -> bool:
    """``.ftz`` needs an f32; ``.sat`` on integers needs a narrower range."""
    target, source = operation.type, operation.source_type
    if operation.ftz and PtxType.F32 not in (target, source):
        return False
    if operation.saturate and source.is_integer and target.is_integer:
        return _range(target)[0] > _range(source)[0] or _range(target)[1] < _range(source)[1]
    return True


def _range(kind: PtxType) -> tuple[int, int]:
    bits = kind.bits
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if kind.is_signed else (0, (1 << bits) - 1)


def signatures(operation: Operation) -> list[Signature]:
    """How an instruction is written: with and without what is optional, tables sampled."""
    kind = operation.type.value
    letters = operation.form.operands.replace("?", "")
    count = sum(letters.count(letter) for letter in "abcep")
    sources = tuple(
        "pred" if letter == "p" else _source(operation, i, count)
        for i, letter in enumerate(c for c in letters if c in "abcep")
    )
    result = _RESULTS.get(operation.opcode, kind)
    if "wide" in operation.modifiers:
        result = _WIDER[kind]
    if operation.opcode in ("dp4a", "dp2a") or "pack" in operation.modifiers:
        result = "u32"
    results = [(result,)]
    if "q" in letters:
        second = "pred"
        results = (
            [(result, second)] if operation.opcode == "lop3" else [(result,), (result, second)]
        )
    tables = (0x00, 0x80, 0x1A, 0xE8, 0x96, 0xFF) if operation.opcode == "lop3" else (None,)
    return [Signature(operation, r, sources, t) for r in results for t in tables]


def _source(operation: Operation, index: int, count: int) -> str:
    opcode, kind = operation.opcode, operation.type.value
    if opcode in _SOURCES:
        return _SOURCES[opcode][index] or kind
    if opcode in ("setp", "cvt", "set"):
        return operation.source_type.value
    if opcode == "slct" and index == 2:
        return operation.source_type.value
    if opcode in ("dp4a", "dp2a"):
        return "u32" if index == 2 else operation.types[index].value
    if "wide" in operation.modifiers and index == 2:
        return _WIDER[kind]
    del count
    return kind


# ---------------------------------------------------------------- values


def width(kind: str) -> int:
    """Bytes of a value in a register, at least two; a predicate travels as 32 bits."""
    if kind == "pred":
        return 4
    return max(PtxType(kind).size_bytes, 2)


def values(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Raw 64-bit values of an operand type: edges and random ones."""
    if kind == "pred":
        return rng.integers(0, 2, count, dtype=np.uint64)
    seed = int(rng.integers(1 << 30))
    if kind in ("f16", "bf16", "f32", "f64"):
        return rationals.patterns(kind, count, seed).astype(np.uint64)
    if kind in ("f16x2", "bf16x2"):
        low, high = (
            rationals.patterns(kind[:-2], count, seed + i).astype(np.uint64) for i in (0, 1)
        )
        return low | high << np.uint64(16)
    return integers(PtxType(kind).bits, count, rng)


def integers(bits: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Integers of all magnitudes, edges, and small ones, as unsigned 64 bits."""
    raw = rng.integers(0, 1 << 64, count, dtype=np.uint64, endpoint=False)
    kept = rng.integers(0, bits + 1, count, dtype=np.uint64)
    raw = np.where(rng.random(count) < 0.5, raw >> (np.uint64(64) - np.maximum(kept, 1)), raw)
    edges = [0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256, 1 << bits - 1]
    edges += [(1 << bits - 1) - 1, (1 << bits - 1) + 1, (1 << bits) - 1, (1 << bits) - 2]
    edges += [(1 << bits) - 31, (1 << bits) - 128, 0x5555555555555555, 0x8080808080808080]
    some = np.array([e % (1 << bits) for e in edges], np.uint64)
    chosen = rng.choice(some, count)
    return np.where(rng.random(count) < 0.4, chosen, raw) & np.uint64((1 << bits) - 1)


def operand_values(signature: Signature, rng: np.random.Generator) -> list[np.ndarray]:
    """Values of all sources; sometimes two are alike, so that comparisons see equality."""
    columns = [values(kind, VALUES, rng) for kind in signature.sources]
    if len(columns) > 1 and signature.sources[0] == signature.sources[1]:
        same = rng.random(VALUES) < 0.15
        columns[1] = np.where(same, columns[0], columns[1])
    return columns


# ---------------------------------------------------------------- kernels

_SLOTS = 5
"""Inputs an instruction may have."""
_PREFIX = {2: "%h", 4: "%r", 8: "%d"}


@dataclass(frozen=True)
class Outcome:
    """What one engine made of one instruction: by style, result and thread."""

    signature: Signature
    sources: list[np.ndarray]
    results: dict[str, list[np.ndarray]]


def run_batch(engine: Engine, arena: Arena, batch: list[Signature], seed: int) -> list[Outcome]:
    """Run up to :data:`BATCH` instructions in one kernel."""
    rng = np.random.default_rng(seed)
    columns = [operand_values(signature, rng) for signature in batch]
    inputs = np.zeros((len(batch), _SLOTS, VALUES), np.uint64)
    for index, sources in enumerate(columns):
        for slot, source in enumerate(sources):
            inputs[index, slot] = source
    text, places = batch_text(batch)
    loaded = load(text, arena, "batch.ptx")
    try:
        source = loaded.buffer(inputs)
        target = loaded.buffer(np.zeros(places * VALUES, np.uint64))
        loaded.run(engine, "batch", (GRID,), (BLOCK,), pack(source, target))
        output = loaded.read(target, np.uint64, places * VALUES).reshape(places, VALUES)
    finally:
        loaded.close()
    outcomes = []
    at = 0
    for signature, sources in zip(batch, columns, strict=True):
        results: dict[str, list[np.ndarray]] = {}
        for style in styles(signature):
            results[style] = [output[at + i] for i in range(len(signature.results))]
            at += len(signature.results)
        outcomes.append(Outcome(signature, sources, results))
    return outcomes


def styles(signature: Signature) -> tuple[str, ...]:
    """Affine operands make sense for integers only."""
    whole = all(k == "pred" or not PtxType(k).is_float for k in signature.sources)
    if not whole or not signature.sources:
        return STYLES[:2]
    return STYLES if signature.operation.opcode in TRANSFERRED else STYLES[:3]


def style_sources(outcome: Outcome, style: str) -> list[np.ndarray]:
    """The operands each thread had in a style."""
    thread = np.arange(VALUES)
    if style == "varying":
        return outcome.sources
    if style == "uniform":
        return [column[thread // BLOCK] for column in outcome.sources]
    made = []
    for slot, kind in enumerate(outcome.signature.sources):
        if kind == "pred":
            made.append(outcome.sources[slot][thread // BLOCK])
            continue
        bits = 8 * width(kind)
        scale, offset = line_of(style, slot, bits)
        made.append(
            (np.uint64(scale) * (thread % BLOCK).astype(np.uint64) + np.uint64(offset % (1 << 64)))
            & np.uint64((1 << bits) - 1)
        )
    return made


AFFINE = ((5, -37), (1, 0), (3, -2), (2, 1), (1, 1))
"""Source slot to factor and offset of tid.x."""


def line_of(style: str, slot: int, bits: int) -> tuple[int, int]:
    """Factor and offset of tid.x for a source whose lanes the JIT can tell at compile time.

    In the steep style lanes run over the largest number of either sign; in the constant style all
    have the same, again next to an end of the range.
    """
    if style == "affine":
        return AFFINE[slot]
    top = (1 << (bits - 1)) - 1
    offset = (top - 7, 3, top, 1, 5)[slot]
    return (1, offset) if style == "steep" else (0, offset)


def batch_text(batch: list[Signature]) -> tuple[str, int]:
    """The module of a batch, and how many result columns it writes."""
    lines: list[str] = []
    at = 0
    for index, signature in enumerate(batch):
        for style in styles(signature):
            lines += _instance(signature, index, style, at)
            at += len(signature.results)
    body = "\n".join(lines)
    text = f"""
.version 8.8
.target sm_80
.address_size 64
.visible .entry batch(.param .u64 source, .param .u64 target)
{{
    .reg .pred %p<10>;
    .reg .b16 %h<10>;
    .reg .b32 %r<24>;
    .reg .b64 %d<24>;
    ld.param.u64 %d20, [source];
    ld.param.u64 %d21, [target];
    mov.u32 %r20, %ctaid.x;
    mov.u32 %r21, %tid.x;
    mad.lo.u32 %r22, %r20, {BLOCK}, %r21;
    mul.wide.u32 %d22, %r22, {STRIDE};
    add.s64 %d21, %d21, %d22;
    add.s64 %d22, %d20, %d22;
    mul.wide.u32 %d23, %r20, {STRIDE};
    add.s64 %d23, %d20, %d23;
{body}
    ret;
}}
"""
    return text, at


def _instance(signature: Signature, index: int, style: str, at: int) -> list[str]:
    lines = []
    names = []
    for slot, kind in enumerate(signature.sources):
        base = "%d22" if style == "varying" else "%d23"
        place = f"[{base}+{(index * _SLOTS + slot) * VALUES * STRIDE}]"
        names.append(_operand(lines, kind, slot, place, style))
    targets = [_register(kind, 8 + i) for i, kind in enumerate(signature.results)]
    if signature.immediate is not None:
        names.insert(3, f"{signature.immediate:#x}")
    lines.append(f"    {signature.operation.text} {'|'.join(targets)}, {', '.join(names)};")
    for i, (kind, name) in enumerate(zip(signature.results, targets, strict=True)):
        place = f"[%d21+{(at + i) * VALUES * STRIDE}]"
        if kind == "pred":
            lines.append(f"    selp.u32 %r10, 1, 0, {name};")
            lines.append(f"    st.global.b32 {place}, %r10;")
        else:
            lines.append(f"    st.global.b{8 * _width_of(kind)} {place}, {name};")
    return lines


def _width_of(kind: str) -> int:
    """Byte types live in 32-bit registers here, so that extension and chopping show."""
    return 4 if kind in ("u8", "s8") else width(kind)


def _register(kind: str, number: int) -> str:
    return f"%p{number}" if kind == "pred" else f"{_PREFIX[_width_of(kind)]}{number}"


def _operand(lines: list[str], kind: str, slot: int, place: str, style: str) -> str:
    if kind == "pred":
        lines.append(f"    ld.global.u32 %r{slot}, {place};")
        lines.append(f"    setp.ne.u32 %p{slot}, %r{slot}, 0;")
        return f"!%p{slot}" if slot % 2 else f"%p{slot}"
    name = _register(kind, slot)
    bits = 8 * _width_of(kind)
    if style in STYLES[:2]:
        lines.append(f"    ld.global.b{bits} {name}, {place};")
        return name
    scale, offset = line_of(style, slot, 8 * width(kind))
    wide = name if bits == 32 else f"%r{slot}"
    if bits == 64:
        lines.append(f"    cvt.u64.u32 {name}, %r21;")
        lines.append(f"    mad.lo.s64 {name}, {name}, {scale}, {offset};")
        return name
    lines.append(f"    mad.lo.s32 {wide}, %r21, {scale}, {offset};")
    if bits == 16:
        lines.append(f"    cvt.u16.u32 {name}, {wide};")
    return name


def batches(operations: list[Signature]) -> list[list[Signature]]:
    """Cut a list into kernels."""
    return [operations[i : i + BATCH] for i in range(0, len(operations), BATCH)]


def same_results(kind: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two columns of results agree: bits, but any f64 NaN is any other."""
    equal = a == b
    if kind == "f64":
        both = [(c & np.uint64(0x7FFFFFFFFFFFFFFF)) > np.uint64(0x7FF0000000000000) for c in (a, b)]
        equal |= both[0] & both[1]
    return equal
