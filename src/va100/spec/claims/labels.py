"""Row names, as people write them, to the figures they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from va100.spec.figures import BY_KEY, Dimension, sparse_twin

_OPS: Final = r"(?:[\s(\-,/:]*(?:peak|performance|t(?:era)?(?:fl)?ops|dense|with|on|using|the))*"
_TC: Final = r"(?:tensor(?:[\s-]*cores?)?|tc(?![a-z0-9])|dmma|张量(?:核心)?)"

_FORMATS: Final = (
    ("fp64", r"(?:fp[\s-]?64|float64|double[\s-]precision|双精度)"),
    ("tf32", r"(?:tf[\s-]?32|tensor[\s-]?float[\s-]?32)"),
    ("fp32", r"(?:fp[\s-]?32|float32|single[\s-]precision|单精度)"),
    ("bf16", r"(?:bf[\s-]?16|bfloat[\s-]?16)"),
    ("fp16", r"(?:fp[\s-]?16|float16|half[\s-]precision|半精度)"),
    ("fp8", r"fp[\s-]?8(?!\d)"),
    ("int8", r"int[\s-]?8(?!\d)"),
    ("int4", r"int[\s-]?4(?!\d)"),
    ("int32", r"int[\s-]?32"),
    ("b1", r"(?:binary|int[\s-]?1|b1)(?![a-z0-9])"),
)
_WITH_PLAIN: Final = frozenset({"fp64", "fp32", "int32"})
"""Formats whose bare name means the ordinary pipes."""

_OTHERS: Final = (
    ("fp32_lane_count", r"(?:cuda|fp32)\s+cores?|cuda\s*核心"),
    (
        "tensor_core_count",
        r"(?:number of |# ?)?tensor\s+cores?(?!\s*(?:\w+\s+)?(?:fp|tf|bf|int)\d)",
    ),
    ("board_memory_bytes", r"(?:aggregate|total|combined|pooled)\s+(?:gpu\s+)?(?:hbm\s+|memory)+"),
    ("nvswitch_count", r"(?:number of |# ?)?nvswitch(?:es)?(?!\s*(?:bandwidth|带宽))"),
    ("board_bytes_per_s", r"nvswitch\s*(?:bandwidth|带宽)|aggregate\s+(?:\w+\s+)?bandwidth"),
    (
        "nvlink_bytes_per_s",
        r"nv[\s-]?link(?:\s*\d(?:\.0)?)?(?:\s*(?:total\s+)?(?:bandwidth|带宽))?",
    ),
    (
        "pcie_bytes_per_s",
        r"pci[\s-]?e(?:xpress)?\s*(?:gen\s*)?4?(?:\.0)?(?:\s*(?:bandwidth|带宽))?",
    ),
    ("memory_clock_hz", r"memory\s+clock"),
    ("memory_bus_bits", r"(?:memory\s+)?(?:bus(?:\s+width)?|interface(?:\s+width)?)|位宽"),
    (
        "memory_bytes_per_s",
        r"(?:(?:gpu\s+)?memory|hbm\d?e?|vram|dram|显存)[\s-]*(?:bandwidth|带宽)|带宽|bandwidth",
    ),
    ("l2_bytes", r"l2(?:\s+cache)?(?:\s+size)?"),
    ("l1_shared_bytes", r"l1(?:\s+cache)?(?:\s*[/+]\s*shared(?:\s+memory)?)?"),
    ("shared_bytes", r"shared\s+memory(?:\s+per\s+sm)?"),
    ("memory_kind", r"memory\s+type|显存类型"),
    (
        "memory_bytes",
        r"(?:gpu\s+)?(?:memory|vram|显存)(?:\s*(?:capacity|size|容量))?|hbm[23]?e?(?![a-z0-9])"
        r"|capacity|容量",
    ),
    ("base_clock_hz", r"base\s+clock"),
    ("boost_clock_hz", r"(?:gpu\s+)?(?:boost|max(?:imum)?)\s+(?:sm\s+)?clock"),
    (
        "power_default_w",
        r"(?:max(?:imum)?\s+)?(?:tdp|tgp|thermal\s+design\s+power)"
        r"|(?:max(?:imum)?\s+)?power(?:\s+(?:consumption|limit|draw))?|功耗",
    ),
    (
        "mig_instance_count",
        r"(?:max(?:imum)?\s+)?(?:mig|multi[\s-]instance)(?:\s+gpu)?(?:\s+instances)?",
    ),
    ("sm_count", r"(?:number of |# ?)?(?:sms?|streaming\s+multiprocessors?)(?![a-z0-9])"),
    ("compute_capability", r"compute\s+capability"),
    ("form_factor", r"form\s+factor"),
    ("announced", r"(?:launch|release|announce)(?:d|ed)?(?:\s+date)?|year"),
)


def _format_patterns() -> list[tuple[str, str]]:
    rows = []
    for name, pattern in _FORMATS:
        tensor = f"{name}_tensor_flop_per_s"
        if tensor in BY_KEY:
            rows.append(
                (tensor, rf"(?:{pattern}){_OPS}[\s(\-,/:]*{_TC}|{_TC}[\s\-:(]*(?:{pattern})")
            )
    for name, pattern in _FORMATS:
        plain = f"{name}_flop_per_s"
        if plain in BY_KEY:
            rows.append((plain, rf"(?:non[\s-]tensor|cuda[\s-]core|vector)[\s-]+(?:{pattern})"))
        key = plain if name in _WITH_PLAIN else f"{name}_tensor_flop_per_s"
        rows.append((key, pattern))
    return rows


_PATTERNS: Final = tuple(
    (key, re.compile(rf"(?<![a-z0-9])(?:{pattern})"))
    for key, pattern in (*_format_patterns(), *_OTHERS)
)
_CORES: Final = re.compile(
    r"\W*(?:(?P<kind>fp64|fp32|int32)\s+(?:cuda\s+)?|cuda\s+)cores?(?:\s+(?:count|/\s*gpu))?\W*$"
)
BARE_BANDWIDTH: Final = ("bandwidth", "带宽")
_SPARSE: Final = re.compile(r"spars|稀疏")
_UNSPARSE: Final = re.compile(r"(?:without|no|non|w/o)[\s-]+spars|dense|稠密")
_VECTOR: Final = re.compile(r"non[\s-]tensor|cuda[\s-]core(?! )|\(cuda|vector")
_DIRECTION: Final = re.compile(
    r"(?:per|each|one|single)[\s-]+(?:direction|way)|unidirectional|单向"
)
_LINK: Final = re.compile(r"(?:per|each|one|single)[\s-]+(?:nv)?link|/link|每条|单条")


@dataclass(frozen=True, slots=True)
class Label:
    """A figure named at a place in a text."""

    key: str
    start: int
    end: int
    text: str

    @property
    def dimension(self) -> Dimension:
        """What the figure measures."""
        return BY_KEY[self.key].dimension


def label_of(cell: str) -> str | None:
    """Figure that a row's heading means; ``None`` when it is none of ours."""
    lowered = cell.lower()
    if cores := _CORES.match(lowered):
        return "fp32_lane_count" if cores["kind"] in (None, "fp32") else None
    found = [(match.start(), key) for key, p in _PATTERNS if (match := p.search(lowered))]
    if not found:
        return None
    key = found[0][1]
    stem = key.removesuffix("_flop_per_s")
    if (
        key.endswith("_flop_per_s")
        and re.search(_TC, lowered)
        and f"{stem}_tensor_flop_per_s" in BY_KEY
    ):
        key = f"{stem}_tensor_flop_per_s"
    if _VECTOR.search(lowered) and not re.search(r"(?<!non-)(?<!non )tensor", lowered):
        key = _plain(key)
    twin = sparse_twin(key)
    return twin if twin and says_sparse(lowered) else key


def _plain(key: str) -> str:
    plain = key.replace("_tensor_flop_per_s", "_flop_per_s")
    return plain if plain in BY_KEY else key


def says_sparse(text: str) -> bool:
    """Whether a heading announces sparse rates."""
    lowered = text.lower()
    return bool(_SPARSE.search(lowered)) and not _UNSPARSE.search(lowered)


def divisor_of(text: str) -> str:
    """``direction`` or ``link`` when a text speaks of one of them."""
    lowered = text.lower()
    if _LINK.search(lowered):
        return "link"
    return "direction" if _DIRECTION.search(lowered) else ""


def labels_in(text: str) -> list[Label]:
    """Figures named in running text, in order, longest first where names overlap."""
    lowered = text.lower()
    spans = [
        Label(key, match.start(), match.end(), text[match.start() : match.end()])
        for key, pattern in _PATTERNS
        for match in pattern.finditer(lowered)
        if match.end() > match.start()
    ]
    spans.sort(key=_by_place)
    kept: list[Label] = []
    for span in spans:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return [
        label for index, label in enumerate(kept) if not _is_loose_bandwidth(label, kept[:index])
    ]


def _by_place(label: Label) -> tuple[int, int]:
    return label.start, -label.end


def _is_loose_bandwidth(label: Label, before: list[Label]) -> bool:
    """Tell a bare "bandwidth" that belongs to the interconnect named before it."""
    bare = label.text.lower() in BARE_BANDWIDTH
    links = {"nvlink_bytes_per_s", "pcie_bytes_per_s", "nvswitch_count"}
    return bare and any(other.key in links for other in before)
