"""How fast PTX is parsed: CPU time for 5,000 lines of compilers' output.

Run as ``python benchmarks/ptx_parser.py [FILE…]``; without files it takes the PTX corpus beside
the checkout when there is one, else the golden texts.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from va100.ptx.cfg import build_flow
from va100.ptx.parser import parse
from va100.ptx.verify import problems

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT.parent / "shared" / "data" / "ptx"
LINES, BAR_MS, ROUNDS = 5000, 60.0, 7


def texts(arguments: list[str]) -> list[str]:
    """The texts to parse: nvcc's without debug sections, as users run them."""
    paths = [Path(a) for a in arguments]
    if not paths and CORPUS.is_dir():
        paths = [p for p in sorted(CORPUS.glob("[0-9]*.ptx")) if not p.stem.endswith("_G")]
    paths = paths or sorted((ROOT / "tests" / "golden" / "ptx").glob("*.ptx"))
    return [path.read_text(encoding="utf-8") for path in paths]


def best_s(work) -> float:
    """CPU seconds of the fastest of several rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> int:
    """Measure and print; fail when the bar is missed."""
    sources = texts(sys.argv[1:])
    lines = sum(text.count("\n") for text in sources)
    modules = [parse(text) for text in sources]
    defined = [(m, f) for m in modules for f in m.functions if f.body is not None]
    parse_s = best_s(lambda: [parse(text) for text in sources])
    verify_s = best_s(lambda: [problems(module) for module in modules])
    flow_s = best_s(lambda: [build_flow(module, function) for module, function in defined])
    print(f"{len(sources)} texts, {lines} lines; best of {ROUNDS}, CPU time")
    for name, spent_s in (("parse", parse_s), ("verify", verify_s), ("flow graphs", flow_s)):
        per_bar_ms = spent_s / lines * LINES * 1e3
        print(f"{name:12} {lines / spent_s:10,.0f} lines/s  {per_bar_ms:6.1f} ms a {LINES} lines")
    ok = parse_s / lines * LINES * 1e3 <= BAR_MS
    print(f"bar: parse {LINES} lines in {BAR_MS:.0f} ms: {'met' if ok else 'MISSED'}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
