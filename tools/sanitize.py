"""Build the native core under the sanitizers of the compiler, and run the stress of its calls.

The stress is tests/system/clients/driver_stress.c: many threads in every kind of memory, stream
and event.  It launches no kernels, which would be machine code that no sanitizer has seen.  What a
sanitizer says goes to standard error, and the status is 1.
"""

from __future__ import annotations

import argparse
import os
import re
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
    arena: dict[str, str] | None = None
    """Where device memory lies instead, and how much of it there is."""


SANITIZERS = {
    "address": Sanitizer(
        "address,undefined",
        {
            "ASAN_OPTIONS": "exitcode=1:detect_leaks=1",
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        },
    ),
    "thread": Sanitizer(
        "thread",
        {"TSAN_OPTIONS": "exitcode=1:second_deadlock_stack=1"},
        {  # programs may have memory below 2^39 only, besides their heap and stacks
            "VA_DEVICE_SHIFT": "33",
            "VA_ARENA_SHIFT": "38",
            "VA_ARENA_BASE": "0x2000000000ULL",
            "VA_SHADOW_BASE": "0x6800000000ULL",
        },
    ),
}
ARENA = Path("va100", "arena.h")
SUPPRESSED = """\
# Pages that go into a file are written by nobody meanwhile: the kernel holds writers back.
race:move_pages
"""


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
    client, suppressed = library.parent / "driver_stress", library.parent / "suppressed"
    suppressed.write_text(SUPPRESSED, encoding="utf-8")
    flags = f"-fsanitize={SANITIZERS[name].flags}"
    subprocess.run(
        [os.environ.get("CC", "cc"), flags, "-g", "-O1", CLIENT, "-o", client, "-pthread", library,
         f"-Wl,-rpath,{library.parent}"],
        check=True,
    )  # fmt: skip
    settings = dict(SANITIZERS[name].settings)
    if name == "thread":
        settings["TSAN_OPTIONS"] += f":suppressions={suppressed}"
    done = subprocess.run(
        [client, str(options.threads), str(options.calls)],
        env=os.environ | settings, check=False, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    verdict = done.stdout.strip() if done.returncode == 0 else f"FAILED ({done.returncode})"
    times = f"built in {built - begun:.0f} s, ran {time.monotonic() - built:.0f} s"
    print(f"{name}: {options.threads} threads x {options.calls} calls: {verdict} ({times})")
    return done.returncode == 0


def build(name: str, options: argparse.Namespace) -> Path:
    folder = options.build / name
    first = f"-iquote {move_arena(SANITIZERS[name].arena or {}, folder / 'include')}"
    subprocess.run(
        ["cmake", "-S", ROOT / "native", "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None",
         f"-DVA100_SANITIZE={SANITIZERS[name].flags}", f"-DVA100_OUTPUT_DIR={folder / 'lib'}",
         f"-DCMAKE_CXX_FLAGS={first}", f"-DCMAKE_ASM_FLAGS={first}"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    subprocess.run(
        ["cmake", "--build", folder, "--target", "cuda", f"-j{options.jobs}"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return folder / "lib" / "libcuda.so.1"


def move_arena(constants: dict[str, str], folder: Path) -> Path:
    """Write the arena's header with other constants to a folder that is searched first."""
    text = (ROOT / "native" / "include" / ARENA).read_text("utf-8")
    for name, value in constants.items():
        text, count = re.subn(rf"(#define {name}) \S+", rf"\1 {value}", text)
        if count != 1:
            sys.exit(f"{ARENA} does not define {name}")
    path = folder / ARENA
    if not path.exists() or path.read_text("utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


if __name__ == "__main__":
    main()
