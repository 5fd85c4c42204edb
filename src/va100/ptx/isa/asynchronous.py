"""Asynchronous copies, ``mbarrier`` objects, bulk and tensor copies: the rows."""

from __future__ import annotations

from functools import partial
from typing import Final

from va100.ptx.isa.form import Family, Form, Support
from va100.ptx.isa.rows import form
from va100.work import Pipe

_ROW: Final = partial(form, family=Family.ASYNC, pipe=Pipe.LSU, support=Support.PARSED)
_COPY: Final = "data-movement-and-conversion-instructions-"
_SYNC: Final = "parallel-synchronization-and-communication-instructions-"
_CTA: Final = "?shared|shared::cta"
_ANY_SHARED: Final = "?shared|shared::cta|shared::cluster"
_HINT: Final = "?L2::cache_hint"
_PREFETCH: Final = "?L2::64B|L2::128B|L2::256B"
_COPY_80: Final = partial(_ROW, support=Support.EXECUTED, since=(7, 0), min_sm=80)
_OBJECT: Final = partial(_COPY_80, "mbarrier")
_OBJECT_90: Final = partial(_ROW, "mbarrier", since=(8, 0), min_sm=90)
_BULK: Final = partial(_ROW, "cp", since=(8, 0), min_sm=90)
_DIMENSIONS: Final = "1d|2d|3d|4d|5d"
_DONE: Final = "?mbarrier::complete_tx::bytes|bulk_group"

FORMS: Final[tuple[Form, ...]] = (
    _COPY_80("cp", f"async ca|cg shared|shared::cta global {_HINT} {_PREFETCH}", "mmi?a?e",
             anchor=_COPY + "cp-async"),
    _COPY_80("cp", "async commit_group", "", anchor=_COPY + "cp-async-commit-group"),
    _COPY_80("cp", "async wait_group", "i", anchor=_COPY + "cp-async-wait-group"),
    _COPY_80("cp", "async wait_all", "", anchor=_COPY + "cp-async-wait-group"),
    _COPY_80("cp", f"async mbarrier arrive ?noinc {_CTA} b64", "m",
             anchor=_SYNC + "cp-async-mbarrier-arrive"),
    _OBJECT(f"init {_CTA} b64", "ma", anchor=_SYNC + "mbarrier-init"),
    _OBJECT(f"inval {_CTA} b64", "m", anchor=_SYNC + "mbarrier-inval"),
    _OBJECT(f"arrive ?release ?cta {_CTA} b64", "dm", anchor=_SYNC + "mbarrier-arrive"),
    _OBJECT(f"arrive ?release ?cta noComplete {_CTA} b64", "dma",
            anchor=_SYNC + "mbarrier-arrive"),
    _OBJECT(f"arrive_drop ?release ?cta {_CTA} b64", "dm", anchor=_SYNC + "mbarrier-arrive-drop"),
    _OBJECT(f"arrive_drop ?release ?cta noComplete {_CTA} b64", "dma",
            anchor=_SYNC + "mbarrier-arrive-drop"),
    _OBJECT(f"test_wait ?acquire ?cta ?parity {_CTA} b64", "dma",
            anchor=_SYNC + "mbarrier-test-wait"),
    _OBJECT("pending_count b64", "da", anchor=_SYNC + "mbarrier-pending-count"),
    # Beyond the A100.
    _OBJECT_90(f"arrive|arrive_drop ?release|relaxed ?cta|cluster ?expect_tx {_ANY_SHARED} b64",
               "?dm?a", anchor=_SYNC + "mbarrier-arrive"),
    _OBJECT_90(f"expect_tx|complete_tx ?relaxed ?cta|cluster {_ANY_SHARED} b64", "ma",
               anchor=_SYNC + "mbarrier-expect-tx-operation"),
    _OBJECT_90(f"try_wait ?acquire|relaxed ?cta|cluster ?parity {_CTA} b64", "dma?b",
               anchor=_SYNC + "mbarrier-test-wait"),
    _OBJECT_90(f"test_wait acquire|relaxed cta|cluster ?parity {_CTA} b64", "dma",
               anchor=_SYNC + "mbarrier-test-wait"),
    _BULK("async bulk shared::cluster|shared::cta global mbarrier::complete_tx::bytes "
          f"?multicast::cluster {_HINT}", "mmam?b?e", anchor=_COPY + "cp-async-bulk"),
    _BULK("async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes", "mmam",
          anchor=_COPY + "cp-async-bulk"),
    _BULK(f"async bulk global shared::cta bulk_group {_HINT} ?cp_mask", "mma?e?b",
          anchor=_COPY + "cp-async-bulk"),
    _BULK(f"async bulk prefetch L2 global {_HINT}", "ma?e",
          anchor=_COPY + "cp-async-bulk-prefetch"),
    _BULK(f"async bulk prefetch tensor {_DIMENSIONS} L2 global ?tile|im2col {_HINT}", "m?v?e",
          anchor=_COPY + "cp-async-bulk-prefetch-tensor"),
    _BULK("async bulk commit_group", "", anchor=_COPY + "cp-async-bulk-commit-group"),
    _BULK("async bulk wait_group ?read", "i", anchor=_COPY + "cp-async-bulk-wait-group"),
    _BULK(f"async bulk tensor {_DIMENSIONS} shared::cluster|shared::cta global ?tile|im2col "
          f"mbarrier::complete_tx::bytes ?multicast::cluster ?cta_group::1|cta_group::2 {_HINT}",
          "mmm?v?b?e", anchor=_COPY + "cp-async-bulk-tensor"),
    _BULK(f"async bulk tensor {_DIMENSIONS} global shared::cta ?tile|im2col_no_offs bulk_group "
          f"{_HINT}", "mm?e", anchor=_COPY + "cp-async-bulk-tensor"),
    _BULK("reduce async bulk shared::cluster|global shared::cta "
          f"{_DONE} {_HINT} add|min|max|inc|dec|and|or|xor ?noftz "
          "b32|b64|u32|u64|s32|s64|f16|bf16|f32|f64", "mma?m?e",
          anchor=_COPY + "cp-reduce-async-bulk"),
    _BULK(f"reduce async bulk tensor {_DIMENSIONS} global shared::cta "
          f"add|min|max|inc|dec|and|or|xor ?tile|im2col_no_offs bulk_group {_HINT}", "mm?e",
          anchor=_COPY + "cp-reduce-async-bulk-tensor"),
    _ROW("tensormap", "replace tile global_address|rank|box_dim|global_dim|global_stride|"
         "element_stride|elemtype|interleave_layout|swizzle_mode|fill_mode "
         "?global|shared::cta ?b1024 b32|b64", "ma?b", anchor=_COPY + "tensormap-replace",
         since=(8, 3), min_sm=90),
    _ROW("tensormap", "cp_fenceproxy global shared::cta tensormap::generic release "
         "cta|cluster|gpu|sys sync aligned", "mmi",
         anchor=_SYNC + "tensormap-cp-fenceproxy", since=(8, 3), min_sm=90),
    _ROW("prefetch", "?const|param tensormap", "m", anchor=_COPY + "prefetch-prefetchu",
         since=(8, 0), min_sm=90),
)  # fmt: skip
