"""Modules, libraries and their kernels through the driver."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p

import pytest

from tests.helpers.cuda_client import (
    PTX,
    CallError,
    FakeCompiler,
    FakeKernel,
    context,
    no_context,
)

INVALID_VALUE, INVALID_CONTEXT = 1, 201
NO_BINARY, INVALID_HANDLE, NOT_FOUND = 209, 400, 500
NOT_SUPPORTED = 801


class TestModule:
    def test_kernels_and_variables_are_found_by_name(self):
        fake = FakeCompiler((FakeKernel("k"),), {"v": (0x1000, 12)})
        with fake.registered(), context() as cuda:
            module, address, size = cuda.module(), c_uint64(), c_size_t()
            cuda.function(module, "k")
            cuda.ModuleGetGlobal_v2(byref(address), byref(size), module, c_char_p(b"v"))
            assert (address.value, size.value) == (0x1000, 12)
            with pytest.raises(CallError) as missing:
                cuda.function(module, "other")
            assert missing.value.code == NOT_FOUND
            assert fake.images == [PTX]

    def test_a_kernel_that_cannot_run_is_told_of_and_not_given_out(self, capfd):
        """The module's other kernels run."""
        broken = FakeKernel("broken", refusal="line 7: 'suq.width.b32' is not executed")
        with FakeCompiler((FakeKernel("k"), broken)).registered(), context() as cuda:
            module = cuda.module()
            assert "1 of 2 kernels" in capfd.readouterr().err
            cuda.launch(cuda.function(module, "k"))
            with pytest.raises(CallError) as refused:
                cuda.function(module, "broken")
            assert refused.value.code == NOT_SUPPORTED
            assert "line 7: 'suq.width.b32'" in capfd.readouterr().err

    def test_an_unloaded_module_leaves_no_kernel(self):
        fake = FakeCompiler((FakeKernel("k"),))
        with fake.registered(), context() as cuda:
            module = cuda.module()
            function = cuda.function(module, "k")
            cuda.ModuleUnload(module)
            assert fake.unloaded == 1
            assert cuda.code("ModuleUnload", module) == INVALID_HANDLE
            with pytest.raises(CallError) as stale:
                cuda.launch(function)
            assert stale.value.code == INVALID_HANDLE

    def test_the_compilers_words_reach_the_client(self, capfd):
        fake = FakeCompiler((), load_result=(218, "line 3: no such instruction"))
        with fake.registered(), context() as cuda:
            log = ctypes.create_string_buffer(256)
            options, module = (c_int * 2)(5, 6), c_void_p()
            values = (c_void_p * 2)(ctypes.addressof(log), 256)
            code = cuda.code("ModuleLoadDataEx", byref(module), PTX, 2, options, values)
            assert code == 218
            assert log.value == b"line 3: no such instruction"
            assert "line 3: no such instruction" in capfd.readouterr().err

    @pytest.mark.parametrize(
        ("image", "code"),
        [
            (b"\x7fELF" + b"\1" * 60, NO_BINARY),
            (b"not an image at all", 200),
            (b"\0", 200),
            (b"ab\0", 200),
        ],
    )
    def test_what_is_no_ptx_is_refused(self, image, code, capfd):
        with FakeCompiler(()).registered(), context() as cuda:
            assert cuda.code("ModuleLoadData", byref(c_void_p()), image) == code
            assert "cannot load a module" in capfd.readouterr().err

    def test_a_library_serves_every_context(self):
        ran = []
        fake = FakeCompiler((FakeKernel("k", lambda warp: ran.append(warp.ctaid)),))
        with fake.registered(), context() as cuda:
            library, kernel, count = c_void_p(), c_void_p(), c_uint32()
            cuda.LibraryLoadData(byref(library), PTX, None, None, 0, None, None, 0)
            cuda.LibraryGetKernelCount(byref(count), library)
            cuda.LibraryGetKernel(byref(kernel), library, c_char_p(b"k"))
            cuda.launch(kernel)
            with context() as other:
                other.launch(kernel)
            assert (count.value, ran) == (1, [(0, 0, 0)] * 2)
            cuda.LibraryUnload(library)
            assert cuda.code("LibraryUnload", library) == INVALID_HANDLE
            assert fake.unloaded == len(fake.images) == 2

    def test_a_kernels_parameters_are_told_in_a_context(self):
        with FakeCompiler((FakeKernel("k"),)).registered(), context(), context() as cuda:
            library, kernel, number = c_void_p(), c_void_p(), c_size_t()
            cuda.LibraryLoadData(byref(library), PTX, None, None, 0, None, None, 0)
            cuda.LibraryGetKernel(byref(kernel), library, c_char_p(b"k"))
            cuda.KernelGetParamCount(kernel, byref(number))
            info = ("KernelGetParamInfo", kernel, c_size_t(0), byref(number), byref(number))
            with no_context():
                assert cuda.code(*info) == INVALID_CONTEXT
            cuda.LibraryUnload(library)

    def test_nothing_has_no_name(self):
        with context() as cuda:
            name = c_char_p()
            for call in ("FuncGetName", "KernelGetName"):
                assert cuda.code(call, byref(name), None) == INVALID_VALUE
                assert cuda.code(call, byref(name), c_void_p(8)) == INVALID_HANDLE

    def test_a_link_of_one_module_is_that_module(self):
        with FakeCompiler((FakeKernel("k"),)).registered() as fake, context() as cuda:
            state, image, size = c_void_p(), c_void_p(), c_size_t()
            cuda.LinkCreate_v2(0, None, None, byref(state))
            cuda.LinkAddData_v2(state, 1, PTX, len(PTX), b"x.ptx", 0, None, None)
            cuda.LinkComplete(state, byref(image), byref(size))
            cuda.ModuleLoadData(byref(c_void_p()), image)
            cuda.LinkDestroy(state)
            assert fake.images == [PTX]

    def test_a_compiler_that_does_not_link_is_told_of(self, capfd):
        with FakeCompiler((FakeKernel("k"),)).registered(), context() as cuda:
            state = c_void_p()
            cuda.LinkCreate_v2(0, None, None, byref(state))
            for _ in range(2):
                cuda.LinkAddData_v2(state, 1, PTX, len(PTX), None, 0, None, None)
            code = cuda.code("LinkComplete", state, byref(c_void_p()), None)
            assert code == NOT_SUPPORTED
            assert "links no modules" in capfd.readouterr().err
            cuda.LinkDestroy(state)
