"""The project's own files, as tests of the architecture see them."""

from __future__ import annotations

import ast
import io
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "va100"


def python_modules() -> list[Path]:
    """Every module of the library."""
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    """A file's path from the root of the checkout."""
    return path.relative_to(ROOT).as_posix()


def tracked_files() -> list[Path]:
    """What git knows of, without what was deleted; every text file where there is no git."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False, text=True
    )
    names = [name for name in listing.stdout.split("\0") if name]
    return [path for path in map(ROOT.joinpath, names) if path.is_file()]


def python_code_lines(path: Path) -> int:
    """Count lines that hold code: no blanks, no comments, no docstrings."""
    text = path.read_text(encoding="utf-8")
    skipped = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for start, end in _docstrings(ast.parse(text)):
        lines.difference_update(range(start, end + 1))
    return len(lines)


def native_code_lines(path: Path) -> int:
    """Count lines of C or C++ that are neither blank nor a ``//`` comment."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return sum(1 for line in lines if line and not line.startswith("//"))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Name and length of every function, in lines, without its docstring."""
    for found in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (found.end_lineno or found.lineno) - found.lineno + 1
            if ast.get_docstring(found) is not None:
                first = found.body[0]
                length -= (first.end_lineno or first.lineno) - first.lineno + 1
            yield f"{name_of(path)}:{found.lineno} {found.name}", length


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Bare strings: docstrings, and those that explain the constant before them."""
    for found in ast.walk(tree):
        if (
            isinstance(found, ast.Expr)
            and isinstance(found.value, ast.Constant)
            and isinstance(found.value.value, str)
        ):
            yield found.lineno, found.end_lineno or found.lineno
