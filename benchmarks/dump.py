"""Write what a benchmark kernel becomes: ``python -m benchmarks.dump KERNEL [FOLDER]``.

``KERNEL.ll`` is the LLVM text the JIT engine writes, ``KERNEL.opt.ll`` the same after LLVM's
passes, ``KERNEL.s`` the host assembly, with a comment at each PTX block's label.  A file name
that ends in ``.ptx`` and a kernel in it work as well: ``--ptx FILE --block 256``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.kernels import cases
from benchmarks.kernels.ours import FOLDER
from va100.gpu.native import library
from va100.jit import llvm
from va100.jit.compile import lay_out, write_kernel
from va100.jit.engine import JitEngine
from va100.ptx.parser import parse
from va100.work import Dim3


def dump(path: Path, kernel: str, block: Dim3, folder: Path) -> list[Path]:
    """Write the three files and return their paths."""
    module = parse(path.read_text(encoding="utf-8"), path.name)
    helpers = JitEngine()._helpers  # the names the native core knows
    written = write_kernel(module, kernel, lay_out(module, kernel), block, helpers)
    module_after, machine = llvm.optimised(written.text, 1)
    after, assembly = str(module_after), str(machine.emit_assembly(module_after))
    folder.mkdir(parents=True, exist_ok=True)
    files = {".ll": written.text, ".opt.ll": after, ".s": assembly}
    for suffix, text in files.items():
        (folder / f"{kernel}{suffix}").write_text(text, encoding="utf-8")
    return [folder / f"{kernel}{suffix}" for suffix in files]


def main() -> int:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dump", description=__doc__)
    parser.add_argument("kernel")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/dump"))
    parser.add_argument("--ptx", type=Path, help="a file of your own that holds the kernel")
    parser.add_argument("--block", type=int, nargs="+", help="block shape, with --ptx")
    options = parser.parse_args()
    library()
    path = options.ptx or FOLDER / f"{options.kernel}.ptx"
    block = Dim3(*(options.block or cases.SMALL[options.kernel]().launches[0].block))
    for written in dump(path, options.kernel, block, options.folder):
        print(written)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
