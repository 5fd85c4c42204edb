"""Build the native core under the sanitizers of the compiler, and run the stress of its calls.

The stress is tests/system/clients/driver_stress.c: many threads in every kind of memory, stream
and event.  It launches no kernels, which would be machine code that no sanitizer has seen.  What a
sanitizer says goes to standard error, and the status is 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CLIENT = ROOT / "tests" / "system" / "clients" / "driver_stress.c"


@dataclass(frozen=True)
class Sanitizer:
    flags: str
    settings: dict[str, str]


SANITIZERS = {
    "address": Sanitizer(
        "address,undefined",
        {
            "ASAN_OPTIONS": "exitcode=1:detect_leaks=1",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        },
    ),
    "thread": Sanitizer("thread", {"TSAN_OPTIONS": "exitcode=1:second_deadlock_stack=1"}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sanitizers", nargs="*", help="address, thread; both where none is named")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--calls", type=int, default=10_000, help="of each thread")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the build")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "sanitize")
    options = parser.parse_args()
    names = options.sanitizers or list(SANITIZERS)
    unknown = [name for name in names if name not in SANITIZERS]
    if unknown:
        parser.error(f"no sanitizer {unknown[0]!r}; there are {', '.join(SANITIZERS)}")
    failed = [name for name in names if not stressed(name, options)]
    sys.exit(1 if failed else 0)


def stressed(name: str, options: argparse.Namespace) -> bool:
    begun = time.monotonic()
    library = build(name, options)
    built = time.monotonic()
    client = library.parent / "driver_stress"
    flags = f"-fsanitize={SANITIZERS[name].flags}"
    subprocess.run(
        [os.environ.get("CC", "cc"), flags, "-g", "-O1", CLIENT, "-o", client, "-pthread", library,
         f"-Wl,-rpath,{library.parent}"],
        check=True,
    )  # fmt: skip
    done = subprocess.run(
        [client, str(options.threads), str(options.calls)],
        env=os.environ | SANITIZERS[name].settings, check=False, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    verdict = done.stdout.strip() if done.returncode == 0 else f"FAILED ({done.returncode})"
    times = f"built in {built - begun:.0f} s, ran {time.monotonic() - built:.0f} s"
    print(f"{name}: {options.threads} threads x {options.calls} calls: {verdict} ({times})")
    return done.returncode == 0


def build(name: str, options: argparse.Namespace) -> Path:
    folder = options.build / name
    subprocess.run(
        ["cmake", "-S", ROOT / "native", "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None",
         f"-DVA100_SANITIZE={SANITIZERS[name].flags}", f"-DVA100_OUTPUT_DIR={folder / 'lib'}"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    subprocess.run(
        ["cmake", "--build", folder, "--target", "cuda", f"-j{options.jobs}"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return folder / "lib" / "libcuda.so.1"


if __name__ == "__main__":
    main()
