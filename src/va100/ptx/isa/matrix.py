"""Warp-level matrix instructions: the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form, Support
from va100.ptx.isa.rows import form
from va100.work import Pipe

_ROW: Final = partial(form, family=Family.MATRIX, pipe=Pipe.TENSOR, support=Support.EXECUTED)
_LSU: Final = partial(form, family=Family.MATRIX, pipe=Pipe.LSU, support=Support.EXECUTED)
_READ: Final = Support.PARSED
_SECTION: Final = "warp-level-matrix-instructions-"
_MMA: Final = partial(_ROW, "mma", anchor=_SECTION + "mma")
_SPARSE: Final = partial(
    _ROW, "mma", anchor=_SECTION + "for-sparse-mma", since=(7, 1), min_sm=80
)  # fmt: skip
_WMMA: Final = partial(_ROW, "wmma", anchor=_SECTION + "wmma-mma")
_LOAD: Final = partial(_LSU, "wmma", anchor=_SECTION + "wmma-load")
_STORE: Final = partial(_LSU, "wmma", anchor=_SECTION + "wmma-store")
_SPACES: Final = "?global|shared|shared::cta"
_LAYOUT: Final = "row|col"
_F16_SHAPES: Final = "m16n16k16|m8n32k16|m32n8k16"
_START: Final = "sync aligned"
_OURS: Final = 80
_ALIGNED: Final = (6, 3)
"""The PTX version that gave ``wmma`` its ``.aligned``."""


def _both_starts(
    row: Callable[..., Form],
    slots: str,
    operands: str,
    *,
    since: tuple[int, int],
    min_sm: int,
    until: tuple[int, int] | None = None,
) -> Iterator[Form]:
    """A row, and the one without ``.aligned`` that PTX 6.0 to 6.2 had in its place."""
    yield row(slots, operands, since=max(since, _ALIGNED), min_sm=min_sm, until=until)
    if since < _ALIGNED:
        old = slots.replace(f" {_START} ", " sync ")
        yield row(old, operands, since=since, min_sm=min_sm, until=_ALIGNED)


def _wmma_load() -> tuple[Form, ...]:
    rows: list[Form] = []
    for fragments, shapes, types, since, min_sm in (
        ("a|b", _F16_SHAPES, "f16", (6, 0), 70),
        ("c", _F16_SHAPES, "f16|f32", (6, 0), 70),
        ("a|b", _F16_SHAPES, "u8|s8", (6, 3), 72),
        ("c", _F16_SHAPES, "s32", (6, 3), 72),
        ("a", "m8n8k32", "u4|s4", (6, 3), 75),
        ("b", "m8n8k32", "u4|s4", (6, 3), 75),
        ("a", "m8n8k128", "b1", (6, 3), 75),
        ("b", "m8n8k128", "b1", (6, 3), 75),
        ("c", "m8n8k32|m8n8k128", "s32", (6, 3), 75),
        ("a|b", _F16_SHAPES, "bf16", (7, 0), 80),
        ("a|b", "m16n16k8", "tf32", (7, 0), 80),
        ("c", "m16n16k8", "f32", (7, 0), 80),
        ("a|b|c", "m8n8k4", "f64", (7, 0), 80),
    ):
        # Elements of less than a byte lie along k in memory.
        layout = {"a": "row", "b": "col"}.get(fragments, _LAYOUT)
        slots = f"load {fragments} {_START} {layout} {shapes} {_SPACES} {types}"
        rows += _both_starts(_LOAD, slots, "vm?a", since=since, min_sm=min_sm)
    return tuple(rows)


def _wmma_store() -> tuple[Form, ...]:
    rows: list[Form] = []
    for shapes, types, since, min_sm in (
        (_F16_SHAPES, "f16|f32", (6, 0), 70),
        (_F16_SHAPES, "s32", (6, 3), 72),
        ("m8n8k32|m8n8k128", "s32", (6, 3), 75),
        ("m16n16k8", "f32", (7, 0), 80),
        ("m8n8k4", "f64", (7, 0), 80),
    ):
        slots = f"store d {_START} {_LAYOUT} {shapes} {_SPACES} {types}"
        rows += _both_starts(_STORE, slots, "mv?a", since=since, min_sm=min_sm)
    return tuple(rows)


def _wmma_mma() -> tuple[Form, ...]:
    either = f"{_LAYOUT} {_LAYOUT}"
    rows: list[Form] = []
    for layout, shapes, types, since, min_sm in (
        (either, _F16_SHAPES, "f16|f32 f16|f32", (6, 0), 70),
        (either, _F16_SHAPES, "s32 u8 u8 s32 ?satfinite", (6, 3), 72),
        (either, _F16_SHAPES, "s32 s8 s8 s32 ?satfinite", (6, 3), 72),
        ("row col", "m8n8k32", "s32 u4 u4 s32 ?satfinite", (6, 3), 75),
        ("row col", "m8n8k32", "s32 s4 s4 s32 ?satfinite", (6, 3), 75),
        ("row col", "m8n8k128", "xor|and popc s32 b1 b1 s32", (6, 3), 75),
        (either, _F16_SHAPES, "f32 bf16 bf16 f32", (7, 0), 80),
        (either, "m16n16k8", "f32 tf32 tf32 f32", (7, 0), 80),
        (either, "m8n8k4", "?rn|rz|rm|rp f64 f64 f64 f64", (7, 0), 80),
    ):
        slots = f"mma {_START} {layout} {shapes} {types}"
        rows += _both_starts(_WMMA, slots, "vvvv", since=since, min_sm=min_sm)
    return tuple(rows)


def _mma() -> tuple[Form, ...]:
    rows = []
    for shapes, layout, types, since, min_sm in (
        ("m16n8k8", "row col", "f16 f16 f16 f16", (6, 5), 75),
        ("m16n8k8", "row col", "f32 f16 f16 f32", (6, 5), 75),
        ("m16n8k16", "row col", "f16 f16 f16 f16", (7, 0), 80),
        ("m16n8k16", "row col", "f32 f16 f16 f32", (7, 0), 80),
        ("m16n8k8|m16n8k16", "row col", "f32 bf16 bf16 f32", (7, 0), 80),
        ("m16n8k4|m16n8k8", "row col", "f32 tf32 tf32 f32", (7, 0), 80),
        ("m8n8k4", "row col", "?rn|rz|rm|rp f64 f64 f64 f64", (7, 0), 80),
        ("m8n8k16", "row col", "?satfinite s32 u8|s8 u8|s8 s32", (6, 5), 75),
        ("m16n8k16|m16n8k32", "row col", "?satfinite s32 u8|s8 u8|s8 s32", (7, 0), 80),
        ("m8n8k32", "row col", "?satfinite s32 u4|s4 u4|s4 s32", (6, 5), 75),
        ("m16n8k32|m16n8k64", "row col", "?satfinite s32 u4|s4 u4|s4 s32", (7, 0), 80),
        ("m8n8k128|m16n8k128|m16n8k256", "row col", "s32 b1 b1 s32 xor|and popc", (7, 0), 80),
        ("m16n8k4|m16n8k8|m16n8k16", "row col", "?rn|rz|rm|rp f64 f64 f64 f64", (7, 8), 90),
        ("m16n8k16|m16n8k32", "row col", "?kind::f8f6f4 f16|f32 e4m3|e5m2|e3m2|e2m3|e2m1 "
         "e4m3|e5m2|e3m2|e2m3|e2m1 f16|f32", (8, 4), 89),
    ):  # fmt: skip
        support = Support.EXECUTED if min_sm <= _OURS else Support.PARSED
        slots = f"{_START} {shapes} {layout} {types}"
        rows.append(_MMA(slots, "vvvv", since=since, min_sm=min_sm, support=support))
    return tuple(rows)


def _volta() -> tuple[Form, ...]:
    """The shape of sm_70: later chips run it as multiply-adds of the ordinary kind."""
    return tuple(
        form("mma", f"{_START} m8n8k4 {_LAYOUT} {_LAYOUT} {types}", "vvvv", family=Family.MATRIX,
             pipe=Pipe.FMA, anchor=_SECTION + "mma", since=(6, 4), min_sm=70)
        for types in ("f16 f16 f16 f16", "f32 f16 f16 f16|f32")
    )  # fmt: skip


def _sparse() -> tuple[Form, ...]:
    rows = []
    for shapes, types in (
        ("m16n8k16|m16n8k32", "f16 f16 f16 f16"),
        ("m16n8k16|m16n8k32", "f32 f16 f16 f32"),
        ("m16n8k16|m16n8k32", "f32 bf16 bf16 f32"),
        ("m16n8k8|m16n8k16", "f32 tf32 tf32 f32"),
        ("m16n8k32|m16n8k64", "?satfinite s32 u8|s8 u8|s8 s32"),
        ("m16n8k64|m16n8k128", "?satfinite s32 u4|s4 u4|s4 s32"),
    ):
        slots = f"sp|sp::ordered_metadata {_START} {shapes} row col {types}"
        rows.append(_SPARSE(slots, "vvvvai"))
    return tuple(rows)


FORMS: Final[tuple[Form, ...]] = (
    *_wmma_load(),
    *_wmma_store(),
    *_wmma_mma(),
    # Of floating point: chips since sm_70 do without, and PTX 6.5 took the word away.
    *_both_starts(_WMMA, f"mma {_START} {_LAYOUT} {_LAYOUT} {_F16_SHAPES} f16|f32 f16|f32 "
                  "satfinite", "vvvv", since=(6, 0), min_sm=70, until=(6, 5)),
    *_mma(),
    *_volta(),
    *_sparse(),
    _LSU("ldmatrix", f"{_START} m8n8 x1|x2|x4 ?trans ?shared|shared::cta b16", "vm",
         anchor=_SECTION + "ldmatrix", since=(6, 5), min_sm=75),
    _ROW("movmatrix", f"{_START} m8n8 trans b16", "da", anchor=_SECTION + "movmatrix",
         since=(7, 8), min_sm=75),
    # Beyond the A100.
    _LSU("ldmatrix", f"{_START} m16n16|m8n16 x1|x2|x4 ?trans ?shared|shared::cta "
         "b8|b8x16.b6x16_p32|b8x16.b4x16_p64", "vm", anchor=_SECTION + "ldmatrix", since=(8, 6),
         min_sm=100, support=_READ),
    _LSU("stmatrix", f"{_START} m8n8|m16n8 x1|x2|x4 ?trans ?shared|shared::cta b16|b8", "mv",
         anchor=_SECTION + "stmatrix", since=(7, 8), min_sm=90, support=_READ),
    _ROW("wgmma", f"fence|commit_group {_START}", "",
         anchor="asynchronous-warpgroup-level-matrix-instructions-wgmma-fence", since=(8, 0),
         min_sm=90, support=_READ),
    _ROW("wgmma", f"wait_group {_START}", "i",
         anchor="asynchronous-warpgroup-level-matrix-instructions-wgmma-wait-group",
         since=(8, 0), min_sm=90, support=_READ),
    _ROW("wgmma", "?sp fence", "", since=(8, 0), min_sm=90, support=_READ,
         anchor="asynchronous-warpgroup-level-matrix-instructions-wgmma-fence"),
)  # fmt: skip

BEYOND: Final = {
    "wgmma": ("sm_90", "asynchronous warpgroup matrix instructions"),
    "tcgen05": ("sm_100", "tensor memory instructions"),
}
"""Whole opcodes of later chips whose forms the table does not spell out."""
