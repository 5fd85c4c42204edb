"""Run a library's own tests on virtual GPUs: ``python tools/client_suites/run.py SUITE CHECKOUT``.

The Python that runs this is the one that has the library and va100.  One file after another, each
in a process of its own; the outcomes go to a file, from which the table is printed at the end or
with ``--table`` alone.  Files that have outcomes already are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "src")]

from client_suites.attempts import Attempt, Record, outcomes  # noqa: E402
from client_suites.suites import SUITES, Suite, files_of, reason_of  # noqa: E402

_COLUMNS: Final = ("passed", "xfailed", "skipped", "failed", "ended")


def main(words: list[str]) -> int:
    """Run what was asked for; the status is 0 whatever the tests said."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=sorted(SUITES))
    parser.add_argument("checkout", type=Path, help="the library's sources, at a fitting version")
    parser.add_argument("--out", type=Path, help="outcomes; SUITE.jsonl where not given")
    parser.add_argument("--only", action="append", default=[], help="files whose name has this")
    parser.add_argument("--share", type=int, default=1, help="run one test of so many")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one test")
    parser.add_argument("--table", action="store_true", help="print the table of earlier outcomes")
    args = parser.parse_args(words)
    suite = SUITES[args.suite]
    out = args.out or Path(f"{args.suite}.jsonl")
    if not args.table:
        _run(suite, args, out)
    print("\n".join(table(suite, _earlier(out))))
    return 0


def _run(suite: Suite, args: argparse.Namespace, out: Path) -> None:
    known = _earlier(out)
    for name, words in files_of(suite, args.checkout):
        if name in known or not all(part in name for part in args.only):
            continue
        attempt = Attempt(
            arguments=("-p", "no:randomly", "-p", "no:cacheprovider", *suite.arguments, *words),
            folder=args.checkout / suite.folder,
            variables=_variables(),
            gpus=suite.gpus,
            share=args.share,
            limit_s=args.limit,
        )
        found = outcomes(attempt, name)
        with out.open("a", encoding="utf-8") as file:
            for record in found:
                file.write(json.dumps({"file": name, **asdict(record)}) + "\n")
        counts = Counter(record.outcome for record in found)
        print(name, *(f"{counts[c]} {c}" for c in _COLUMNS if counts[c]), flush=True)


def _variables() -> dict[str, str]:
    """What the client's process needs besides what ``va100 run`` sets."""
    paths = [str(ROOT / "tools"), os.environ.get("PYTHONPATH", ""), str(ROOT / "src")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _earlier(out: Path) -> dict[str, list[Record]]:
    """Outcomes by file."""
    found: dict[str, list[Record]] = {}
    if out.exists():
        for line in out.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            found.setdefault(record.pop("file"), []).append(Record(**record))
    return found


def table(suite: Suite, found: dict[str, list[Record]]) -> list[str]:
    """Counts, files that have failures, and the reasons, as Markdown."""
    everything = [record for records in found.values() for record in records]
    counts = Counter(record.outcome for record in everything)
    lines = [
        "| ran | " + " | ".join(_COLUMNS) + " |",
        "|---:|" + "---:|" * len(_COLUMNS),
        f"| {len(everything)} | " + " | ".join(str(counts[name]) for name in _COLUMNS) + " |",
        "",
    ]
    for kinds in (("failed", "ended"), ("skipped",)):
        why = Counter(reason_of(suite, r.test, r.text) for r in everything if r.outcome in kinds)
        lines += [f"| {' or '.join(kinds)} | because |", "|---:|---|"]
        lines += [f"| {number} | {reason} |" for reason, number in why.most_common()]
        lines.append("")
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
