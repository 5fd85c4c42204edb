"""``va100 sparsity``: 2:4 matrices in files: prune, check, compress, expand, multiply, advise.

Matrices are ``.npy`` files, compressed ones ``.npz``.  bfloat16 comes as ml_dtypes saves it, or as
uint16 with ``--bf16``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from va100 import tensor_core
from va100.numerics.sparse_metadata import DEPTHS, metadata_registers
from va100.numerics.sparsity import PATTERNS, TWO_OF_FOUR, Compressed, Violation

Array = npt.NDArray[Any]

DONE, FAILED = 0, 1
_SHOWN: Final = 20


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = subparsers.add_parser(
        "sparsity",
        help="prune, check, compress and multiply 2:4 sparse matrices",
        description="2:4 structured sparsity of A100's tensor cores, on .npy files. What mma.sp "
        "adds in which order is inferred, not measured.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    prune = _action(actions, "prune", "zero the least elements of each group", "IN.npy", "OUT.npy")
    prune.add_argument(
        "--method",
        choices=("strip", "tile"),
        default="strip",
        help="strip: best of each group of a row; tile: rows and columns of 4 x 4 squares, so "
        "that the transpose is sparse as well",
    )
    _action(actions, "check", "say where a matrix breaks the pattern", "IN.npy")
    compress = _action(actions, "compress", "take the zeros out", "IN.npy", "OUT.npz")
    expand = _action(actions, "expand", "put the zeros back", "IN.npz", "OUT.npy", pattern=False)
    multiply = _action(
        actions, "multiply", "A B on the virtual sparse tensor core", "A", "B.npy", "OUT.npy"
    )
    multiply.add_argument("--kind", required=True, help="such as f16.f32, bf16.f32, s8.s32")
    for action in (prune, compress, expand, multiply):
        action.add_argument("--bf16", action="store_true", help="uint16 holds bfloat16's bits")
    _add_advise(actions)


def run(args: argparse.Namespace) -> int:
    """Do what the command line asks; the result is the exit status."""
    try:
        return int(_ACTIONS[args.action](args))
    except (OSError, ValueError, KeyError) as error:
        print(f"va100 sparsity {args.action}: {error}", file=sys.stderr)
        return FAILED


def _action(
    actions: Any, name: str, text: str, *files: str, pattern: bool = True
) -> argparse.ArgumentParser:
    action: argparse.ArgumentParser = actions.add_parser(name, help=text, description=text)
    for file in files:
        action.add_argument(file.split(".")[0].lower(), metavar=file, type=Path)
    if pattern:
        action.add_argument("--pattern", choices=tuple(PATTERNS), default=TWO_OF_FOUR.name)
    action.add_argument("--json", action="store_true", help="print JSON")
    return action


def _add_advise(actions: Any) -> None:
    text = "say what sparsity can gain at most for (m, k) times (k, n), and what stands in its way"
    advise = actions.add_parser("advise", help=text, description=text)
    for size in ("m", "n", "k"):
        advise.add_argument(size, type=int)
    advise.add_argument("--kind", default="f16.f32")
    advise.add_argument(
        "--uses", type=int, default=1000, help="products a compressed matrix serves"
    )
    advise.add_argument("--json", action="store_true", help="print JSON")


# ------------------------------------------------------------------ actions


def _prune(args: argparse.Namespace) -> int:
    matrix, narrow = _load(getattr(args, "in"), bf16=args.bf16)
    pattern = PATTERNS[args.pattern]
    pruned = tensor_core.prune(matrix, pattern, method=args.method)
    np.save(args.out, narrow(pruned))
    sizes, kept = np.abs(matrix.astype(np.float64)), np.abs(pruned.astype(np.float64))
    total = float(sizes.sum())
    facts = {
        "pattern": pattern.name,
        "method": args.method,
        "shape": list(matrix.shape),
        "zeroed": int(np.count_nonzero(sizes) - np.count_nonzero(kept)),
        "kept_magnitude": float(kept.sum()) / total if total else 1.0,
    }
    _print(args, facts, f"{facts['zeroed']} elements zeroed, {facts['kept_magnitude']:.1%} of the "
           f"magnitude kept: {args.out}")  # fmt: skip
    return DONE


def _check(args: argparse.Namespace) -> int:
    matrix, _ = _load(getattr(args, "in"), bf16=False)
    pattern = PATTERNS[args.pattern]
    found = list(tensor_core.violations(matrix, pattern))
    facts = {
        "pattern": pattern.name,
        "shape": list(matrix.shape),
        "keeps_pattern": not found,
        "violations": [_violation_json(v) for v in found],
    }
    lines = [str(v) for v in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"and {len(found) - _SHOWN} more")
    verdict = f"breaks {pattern.name} in {len(found)} places" if found else f"keeps {pattern.name}"
    _print(args, facts, "\n".join([*lines, f"{getattr(args, 'in')}: {verdict}"]))
    return FAILED if found else DONE


def _compress(args: argparse.Namespace) -> int:
    matrix, narrow = _load(getattr(args, "in"), bf16=args.bf16)
    packed = tensor_core.compress(matrix, PATTERNS[args.pattern])
    values = narrow(packed.values)
    bits = 4 if args.pattern == "4:8" else values.dtype.itemsize * 8
    registers = metadata_registers(packed, bits)
    np.savez(
        args.out,
        values=values,
        nibbles=packed.nibbles,
        registers=registers,
        columns=np.int64(packed.columns),
        pattern=np.str_(packed.pattern.name),
    )
    before, after = matrix.size * bits / 8, packed.values.size * bits / 8 + packed.nibbles.size / 2
    facts = {
        "pattern": packed.pattern.name,
        "shape": list(packed.shape),
        "instruction_k": max(DEPTHS[bits]),
        "registers": list(registers.shape),
        "bytes_before": before,
        "bytes_after": after,
    }
    _print(args, facts, f"{before:,.0f} bytes to {after:,.0f} with metadata: {args.out}")
    return DONE


def _expand(args: argparse.Namespace) -> int:
    packed, narrow = _load_compressed(getattr(args, "in"), bf16=args.bf16)
    dense = tensor_core.expand(packed)
    np.save(args.out, narrow(dense))
    _print(args, {"shape": list(dense.shape)}, f"{dense.shape[0]} x {dense.shape[1]}: {args.out}")
    return DONE


def _multiply(args: argparse.Namespace) -> int:
    a: Any = (
        _load_compressed(args.a, bf16=args.bf16)
        if args.a.suffix == ".npz"
        else _load(args.a, bf16=args.bf16)
    )
    b, narrow_b = _load(args.b, bf16=args.bf16)
    matrix, narrow_a = a
    if isinstance(matrix, Compressed):
        matrix = Compressed(narrow_a(matrix.values), matrix.nibbles, matrix.columns, matrix.pattern)
    else:
        packed = tensor_core.compress(matrix, PATTERNS[args.pattern])
        matrix = Compressed(narrow_a(packed.values), packed.nibbles, packed.columns, packed.pattern)
    result = tensor_core.sparse_mma(matrix, narrow_b(b), kind=args.kind)
    np.save(args.out, result.d)
    facts = {"kind": args.kind, "shape": list(result.d.shape), "inferred": result.inferred}
    note = f"\ninferred: {result.inferred}" if result.inferred else ""
    _print(args, facts, f"{result.d.shape[0]} x {result.d.shape[1]}: {args.out}{note}")
    return DONE


def _advise(args: argparse.Namespace) -> int:
    advice = tensor_core.advise(args.m, args.n, args.k, kind=args.kind, uses=args.uses)
    facts = {name: getattr(advice, name) for name in advice.__slots__}
    verdict = "worth trying" if advice.pays else "will not pay"
    lines = [f"{verdict}: at most {advice.speedup_bound:.2f} times the dense product's speed"]
    _print(args, facts, "\n".join([*lines, *(f"- {reason}" for reason in advice.reasons)]))
    return DONE


_ACTIONS: Final = {
    "prune": _prune,
    "check": _check,
    "compress": _compress,
    "expand": _expand,
    "multiply": _multiply,
    "advise": _advise,
}


def _print(args: argparse.Namespace, facts: dict[str, Any], text: str) -> None:
    print(json.dumps(facts, indent=2) if args.json else text)


def _violation_json(violation: Violation) -> dict[str, int]:
    return {
        "row": violation.row,
        "first_column": violation.first_column,
        "last_column": violation.last_column,
        "count": violation.count,
    }


# ------------------------------------------------------------------ files


def _same(matrix: Array) -> Array:
    return matrix


def _to_brain(matrix: Array) -> Array:
    """Bits of bfloat16 numbers held as f32."""
    return (matrix.view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def _numbers(stored: Array, *, bf16: bool) -> tuple[Array, Any]:
    """Numbers to compare, and what takes them back to what was stored."""
    is_brain = stored.dtype.kind == "V" and stored.dtype.itemsize == 2
    if not is_brain and not (bf16 and stored.dtype == np.uint16):
        if stored.dtype.kind not in "fiu":
            raise ValueError(f"a matrix of {stored.dtype} holds no numbers")
        return stored, _same
    wide = stored.view(np.uint16).astype(np.uint32) << np.uint32(16)
    return wide.view(np.float32), _to_brain


def _load(path: Path, *, bf16: bool) -> tuple[Array, Any]:
    stored = np.load(path, allow_pickle=False)
    if not isinstance(stored, np.ndarray):
        raise ValueError(f"{path} is no .npy file")
    if stored.ndim != 2:
        raise ValueError(f"{path} has {stored.ndim} dimensions, not two")
    return _numbers(stored, bf16=bf16)


def _load_compressed(path: Path, *, bf16: bool) -> tuple[Compressed, Any]:
    loaded = np.load(path, allow_pickle=False)
    if isinstance(loaded, np.ndarray) or "nibbles" not in loaded:
        raise ValueError(f"{path} is no compressed matrix: `va100 sparsity compress` makes one")
    with loaded as stored:
        values, narrow = _numbers(stored["values"], bf16=bf16)
        name = str(stored["pattern"])
        if name not in PATTERNS:
            raise ValueError(f"{path}: no pattern {name!r}")
        packed = Compressed(values, stored["nibbles"], int(stored["columns"]), PATTERNS[name])
    return packed, narrow
