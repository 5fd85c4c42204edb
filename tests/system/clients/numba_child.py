"""A kernel of numba's in a process that this one starts; to print, it links before any call."""

import subprocess
import sys

from numba import cuda


@cuda.jit
def hello():
    print(cuda.grid(1), 999)


if sys.argv[1:] == ["child"]:
    hello[2, 3]()
    cuda.synchronize()
else:
    child = [sys.executable, __file__, "child"]
    done = subprocess.run(child, capture_output=True, text=True, check=False)
    print(sorted(done.stdout.splitlines()) or done.stderr)
