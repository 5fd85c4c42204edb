"""Linking through the driver's calls: what is joined runs, what is not is explained in the log."""

from __future__ import annotations

import ctypes
import struct
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_size_t, c_uint32, c_uint64, c_void_p

import pytest

from tests.helpers.cuda_client import PTX, context
from tests.helpers.linked_texts import CALLEE, CALLER
from tests.helpers.ptx_trees import HEADER
from va100.assembly import compiler
from va100.config import Settings
from va100.driver.api import driver
from va100.driver.compile import Backend
from va100.jit.native import Fault

INVALID_VALUE, INVALID_IMAGE, NO_BINARY, INVALID_PTX, NOT_SUPPORTED = 1, 200, 209, 218, 801
CUBIN, PTX_INPUT, FATBIN, OBJECT, LIBRARY, NVVM = range(6)
MAX_REGISTERS = 0
INFO_BUFFER, INFO_BYTES, ERROR_BUFFER, ERROR_BYTES = 3, 4, 5, 6
ELF = b"\x7fELF" + bytes(60)


def fatbin(text, kind=1):
    """A container with one entry, of PTX or another kind, as it stands in object files."""
    raw = text.encode() + b"\0"
    entry = struct.pack("<HHIQII4xI8xQ8xQ", kind, 0x101, 64, len(raw), 0, 0, 80, 0, 0)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry) + len(raw)) + entry + raw


@pytest.fixture
def cuda():
    lib = driver()
    lib.va_get_backend.restype = c_void_p
    lib.va_set_backend.argtypes = (c_void_p,)
    before = lib.va_get_backend()
    settings = Settings.from_environment()
    backend = Backend(compiler(settings), settings.chip, Fault)
    backend.register()
    try:
        with context() as cuda:
            yield cuda
    finally:
        lib.va_set_backend(before)


class Log:
    """Options for the driver, with room for two texts."""

    def __init__(self, room=4096):
        self.buffers = [ctypes.create_string_buffer(b"#" * room, room) for _ in range(2)]
        self.options = (c_uint32 * 4)(INFO_BUFFER, INFO_BYTES, ERROR_BUFFER, ERROR_BYTES)
        self.values = (c_void_p * 4)(
            ctypes.addressof(self.buffers[0]), room, ctypes.addressof(self.buffers[1]), room
        )

    @property
    def error(self):
        size = self.values[3] or 0
        return self.buffers[1].raw[: max(size - 1, 0)].decode()


@contextmanager
def state(cuda, log):
    handle = c_void_p()
    cuda.LinkCreate_v2(4, log.options, log.values, byref(handle))
    try:
        yield handle
    finally:
        cuda.LinkDestroy(handle)


def linked(cuda, handle):
    image, size = c_void_p(), c_size_t()
    cuda.LinkComplete(handle, byref(image), byref(size))
    return ctypes.string_at(image, size.value)


def add(cuda, handle, text, name=None, kind=PTX_INPUT):
    raw = text if isinstance(text, bytes) else (HEADER + text).encode()
    return cuda.code(
        "LinkAddData_v2", handle, kind, raw, len(raw), name and name.encode(), 0, None, None
    )


def answer_of(cuda, image):
    module, function = c_void_p(), c_void_p()
    cuda.ModuleLoadData(byref(module), image)
    cuda.ModuleGetFunction(byref(function), module, c_char_p(b"k"))
    out = cuda.allocate(4)
    cuda.launch(function, [c_uint64(out)], block=(1, 1, 1))
    cuda.CtxSynchronize()
    return struct.unpack("<I", cuda.read(out, 4))[0]


class TestComplete:
    @pytest.mark.parametrize("kind", [PTX_INPUT, FATBIN, CUBIN, OBJECT, LIBRARY])
    def test_what_is_joined_runs(self, cuda, kind):
        log = Log()
        second = (HEADER + CALLEE).encode()
        if kind != PTX_INPUT:
            second = fatbin(HEADER + CALLEE)
        if kind in (OBJECT, LIBRARY):
            second = b"\x7fELF" + bytes(98) + second + bytes(10)
        with state(cuda, log) as handle:
            assert add(cuda, handle, CALLER) == 0
            assert add(cuda, handle, second, "second", kind) == 0
            assert answer_of(cuda, linked(cuda, handle)) == 4
        assert log.error == ""
        assert log.values[1] is log.values[3] is None

    def test_files_are_read(self, cuda, tmp_path):
        for name, text in (("a.ptx", CALLER), ("b.ptx", CALLEE)):
            (tmp_path / name).write_text(HEADER + text)
        with state(cuda, Log()) as handle:
            for name in ("a.ptx", "b.ptx"):
                path = str(tmp_path / name).encode()
                cuda.LinkAddFile_v2(handle, PTX_INPUT, path, 0, None, None)
            assert answer_of(cuda, linked(cuda, handle)) == 4

    def test_the_device_runtime_is_there_anyway(self, cuda):
        with state(cuda, Log()) as handle:
            assert add(cuda, handle, ELF, "libcudadevrt.a", LIBRARY) == 0

    @pytest.mark.parametrize(
        ("most", "directives", "told"), [(16, "", 16), (300, "", 255), (16, ".maxnreg 20", 20)]
    )
    def test_registers_are_limited_where_the_kernel_sets_no_limit(
        self, cuda, most, directives, told
    ):
        options, values = (c_uint32 * 1)(MAX_REGISTERS), (c_void_p * 1)(most)
        handle = c_void_p()
        cuda.LinkCreate_v2(1, options, values, byref(handle))
        text = CALLER.replace("\n{", f" {directives}\n{{", 1) if directives else CALLER
        assert add(cuda, handle, text) == 0
        assert add(cuda, handle, CALLEE) == 0
        image = linked(cuda, handle)
        assert image.count(b".maxnreg") == image.count(b".entry") == 1
        assert f".maxnreg {told}".encode() in image
        assert answer_of(cuda, image) == 4
        cuda.LinkDestroy(handle)

    def test_options_that_the_caller_let_go_of_are_left_alone(self, cuda):
        """cuda.core frees the array, and whoever gets the memory writes there."""
        log, handle = Log(), c_void_p()
        cuda.LinkCreate_v2(4, log.options, log.values, byref(handle))
        others = [0x5EED0000 + i for i in range(4)]
        log.values[:] = others
        assert add(cuda, handle, CALLER) == 0
        assert cuda.code("LinkComplete", handle, byref(c_void_p()), None) != 0
        assert list(log.values) == others
        assert b"`twice`" in log.buffers[1].value
        cuda.LinkDestroy(handle)

    def test_nothing_is_no_program(self, cuda):
        with state(cuda, Log()) as handle:
            assert cuda.code("LinkComplete", handle, byref(c_void_p()), None) == INVALID_VALUE


class TestErrors:
    @pytest.mark.parametrize(
        ("texts", "told"),
        [
            ([CALLER], ["`twice` is used, but defined nowhere", "a.ptx:17: call.uni"]),
            ([CALLEE, CALLEE], ["`table` is defined twice", "a.ptx:5:", "b.ptx:5:"]),
        ],
    )
    def test_go_to_the_log_with_places(self, cuda, texts, told, capfd):
        log = Log()
        with state(cuda, log) as handle:
            for text, name in zip(texts, ("a.ptx", "b.ptx"), strict=False):
                add(cuda, handle, text, name)
            code = cuda.code("LinkComplete", handle, byref(c_void_p()), None)
        assert code == INVALID_PTX
        assert all(words in log.error for words in told)
        assert all(words in capfd.readouterr().err for words in told[:1])

    def test_are_cut_to_the_room_there_is(self, cuda):
        log = Log(room=16)
        with state(cuda, log) as handle:
            add(cuda, handle, CALLER)
            cuda.code("LinkComplete", handle, byref(c_void_p()), None)
        assert log.error == "`twice` is used"

    @pytest.mark.parametrize(
        ("image", "kind", "code", "told"),
        [
            (ELF, CUBIN, NO_BINARY, "machine code only (SASS)"),
            (ELF, OBJECT, NO_BINARY, "holds no PTX; compile it with nvcc -rdc=true"),
            (b"BC\xc0\xde", NVVM, NOT_SUPPORTED, "not LTO-IR"),
        ],
    )
    def test_what_holds_no_ptx_is_refused_with_the_switch(self, cuda, image, kind, code, told):
        log = Log()
        with state(cuda, log) as handle:
            assert add(cuda, handle, image, "x.o", kind) == code
        assert told in log.error


class TestModules:
    def load(self, cuda, image, log):
        return cuda.code("ModuleLoadDataEx", byref(c_void_p()), image, 4, log.options, log.values)

    def test_a_module_with_something_missing_says_what(self, cuda):
        log = Log()
        assert self.load(cuda, (HEADER + CALLER).encode() + b"\0", log) == INVALID_PTX
        assert "`twice` is used, but defined nowhere" in log.error

    @pytest.mark.parametrize(("kind", "told"), [(2, "machine code only (SASS)"), (8, "LTO-IR")])
    def test_a_fatbin_without_ptx_says_what_it_holds(self, cuda, kind, told):
        log = Log()
        assert self.load(cuda, fatbin("", kind), log) == NO_BINARY
        assert told in log.error
        assert "code=compute_80" in log.error

    @pytest.mark.parametrize("cut", [1, 40, 79])
    def test_a_fatbin_that_is_cut_short_is_no_image(self, cuda, cut):
        log = Log()
        with state(cuda, log) as handle:
            image = fatbin(HEADER + CALLEE)[:-cut]
            assert add(cuda, handle, image, None, FATBIN) == INVALID_IMAGE
        assert log.error == "the fatbin is cut short"

    def test_a_wrapper_from_elsewhere_is_not_followed(self, cuda):
        wrapper = struct.pack("<IIQQ", 0x466243B1, 2, 16, 16)
        with state(cuda, Log()) as handle:
            assert add(cuda, handle, wrapper, None, FATBIN) == INVALID_IMAGE

    def test_a_module_that_loads_says_nothing(self, cuda):
        log = Log()
        assert self.load(cuda, PTX + b"\0", log) == 0
        assert (log.error, log.buffers[1].raw[0]) == ("", 0)

    def test_an_alias_is_called_like_its_function(self, cuda):
        text = HEADER + CALLEE.replace("twice", "double") + (
            ".visible .func (.param .b32 r) twice (.param .b32 x);\n.alias twice, double;\n"
        )  # fmt: skip
        with state(cuda, Log()) as handle:
            add(cuda, handle, CALLER)
            add(cuda, handle, text.encode())
            assert answer_of(cuda, linked(cuda, handle)) == 4
