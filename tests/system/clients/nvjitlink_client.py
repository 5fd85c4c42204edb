"""What the nvJitLink answers that a program finds by name; printed as JSON.

`python nvjitlink_client.py CALLER CALLEE`; run without va100 it asks NVIDIA's.
"""

import ctypes
import json
import os
import sys
from pathlib import Path

CUBIN, PTX, LTO_IR, FATBIN = 1, 2, 3, 4
LTO_MAGIC = b"\xed\x43\x4e\x7f"


class Linker:
    def __init__(self, library, *options):
        self.library, self.handle = library, ctypes.c_void_p()
        words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        self.created = library.nvJitLinkCreate(ctypes.byref(self.handle), len(options), words)

    def add(self, kind, data, name=b"text"):
        size = ctypes.c_size_t(len(data))
        return self.library.nvJitLinkAddData(self.handle, kind, data, size, name)

    def complete(self):
        return self.library.nvJitLinkComplete(self.handle)

    def text(self, which):
        size = ctypes.c_size_t()
        code = getattr(self.library, f"nvJitLinkGet{which}Size")(self.handle, ctypes.byref(size))
        if code:
            return code
        buffer = ctypes.create_string_buffer(size.value + 1)
        code = getattr(self.library, f"nvJitLinkGet{which}")(self.handle, buffer)
        return code or buffer.raw[: size.value].decode(errors="replace")

    def destroy(self):
        return self.library.nvJitLinkDestroy(ctypes.byref(self.handle))


def options(library):
    def created(*words):
        linker = Linker(library, *words)
        return [linker.created, bool(linker.text("ErrorLog"))]

    chip = "-arch=sm_80"
    return {
        "none": created(),
        "chip": created(chip),
        "unknown": created(chip, "-bogus"),
        "level": created(chip, "-O2"),
        "lto": created(chip, "-lto", "-ptx"),
        "ptx alone": created(chip, "-ptx"),
        "virtual": created("-arch=compute_80"),
        "many": created(chip, "-maxrregcount=32", "-lineinfo", "-ftz=true", "-Xptxas=-v", "-time"),
    }


def states(library, text):
    linker = Linker(library, "-arch=sm_80")
    answers = {"early": [linker.text("LinkedCubin")]}
    answers["add"] = [linker.add(PTX, text), linker.add(PTX, b"")]
    answers["wrong type"] = [
        linker.add(PTX, b"no text"), linker.add(FATBIN, text), linker.add(99, text)
    ]  # fmt: skip
    answers["complete"] = [linker.complete(), linker.complete(), linker.add(PTX, text)]
    answers["destroy"] = [linker.destroy(), linker.handle.value, linker.destroy()]
    answers["null"] = [
        library.nvJitLinkCreate(None, 0, None), library.nvJitLinkComplete(None),
        library.nvJitLinkDestroy(None),
    ]  # fmt: skip
    answers["empty"] = [Linker(library, "-arch=sm_80").complete()]
    return answers


def joined(library, texts, *more):
    linker = Linker(library, "-arch=sm_80", *more)
    added = [linker.add(kind, text) for kind, text in texts]
    return [added, linker.complete(), linker.text("LinkedCubin"), linker.text("ErrorLog")]


def version(library):
    major, minor = ctypes.c_uint(), ctypes.c_uint()
    code = library.nvJitLinkVersion(ctypes.byref(major), ctypes.byref(minor))
    return [code, major.value, minor.value, hasattr(library, "va100_nvjitlink_links_ptx")]


def main():
    os.environ.pop("VA100_NVJITLINK", None)  # as if NVIDIA's were not installed
    caller, callee = (Path(name).read_bytes() for name in sys.argv[1:])
    plain = caller.split(b".extern")[0] + b".visible .entry k() { ret; }\n"
    old, new = (ctypes.CDLL(f"libnvJitLink.so.{major}") for major in (12, 13))
    answers = {"versions": [version(old), version(new)], **options(new), **states(new, plain)}
    answers["joined"] = joined(old, [(PTX, caller), (PTX, callee + b"\0")])
    answers["as cubins"] = joined(new, [(CUBIN, caller), (10, callee)], "-maxrregcount=40")
    answers["missing"] = joined(new, [(PTX, caller)])
    answers["lto-ir"] = joined(new, [(PTX, callee), (LTO_IR, LTO_MAGIC + bytes(60))], "-lto")
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
