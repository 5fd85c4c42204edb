"""What cuda.core offers of an A100: programs, kernels, streams, events, memory."""

import ctypes

import numpy as np
from cases import case, run_cases
from cuda.bindings import driver
from cuda.core import (
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    EventOptions,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Linker,
    LinkerOptions,
    ObjectCode,
    Program,
    ProgramOptions,
    StreamOptions,
    launch,
)

SOURCE = """
template <typename T> __global__ void saxpy(T a, const T *x, const T *y, T *out, size_t n) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = a * x[i] + y[i];
}
extern "C" __global__ void increment(int *p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += 1;
}
"""
TIMED = EventOptions(timing_enabled=True)
WIDE = LaunchConfig(grid=4, block=128)
device = Device()
device.set_current()
stream = device.create_stream()


def up(values):
    buffer = device.memory_resource.allocate(values.nbytes, stream=stream)
    stream.sync()
    driver.cuMemcpyHtoD(int(buffer.handle), values.ctypes.data, values.nbytes)
    return buffer


def down(buffer, dtype, count):
    stream.sync()
    values = np.empty(count, dtype)
    driver.cuMemcpyDtoH(values.ctypes.data, int(buffer.handle), values.nbytes)
    return values


def built(kind="ptx", source=SOURCE, language="c++", **options):
    program = Program(source, language, ProgramOptions(arch="sm_80", **options))
    names = ("saxpy<float>", "saxpy<double>") if source is SOURCE else ()
    return program.compile(kind, name_expressions=names)


def increments(module):
    numbers = up(np.zeros(100, np.int32))
    launch(stream, WIDE, module.get_kernel("increment"), numbers, np.int32(100))
    assert (down(numbers, np.int32, 100) == 1).all()


@case
def properties():
    assert device.arch == "80"
    assert device.properties.multiprocessor_count == 108
    public = [name for name in dir(device.properties) if not name.startswith("_")]
    assert len(public) > 50
    for name in public:
        getattr(device.properties, name)


@case
def templates():
    x = np.random.default_rng(0).random(1000, dtype=np.float32)
    out = up(np.zeros(1000, np.float32))
    kernel = built().get_kernel("saxpy<float>")
    launch(stream, WIDE, kernel, np.float32(2), up(x), up(x), out, ctypes.c_uint64(1000))
    np.testing.assert_allclose(down(out, np.float32, 1000), 3 * x, rtol=1e-6)


@case
def kernel_facts():
    kernel = built().get_kernel("saxpy<double>")
    assert kernel.num_arguments == 5
    assert [p.size for p in kernel.arguments_info] == [8] * 5
    assert kernel.attributes.max_threads_per_block == 1024
    occupancy = kernel.occupancy
    blocks = occupancy.max_active_blocks_per_multiprocessor(256, dynamic_shared_memory_size=0)
    assert blocks == 8


@case
def cubin():
    increments(built("cubin"))


@case
def ptx_again():
    increments(built("cubin", built().code.decode(), "ptx"))
    increments(ObjectCode.from_ptx(built().code))


@case
def linking():
    caller = """extern __device__ int thrice(int);
    extern "C" __global__ void f(int *p) { p[threadIdx.x] = thrice(threadIdx.x); }"""
    callee = "__device__ int thrice(int x) { return 3 * x; }"
    parts = [built("ptx", s, relocatable_device_code=True) for s in (caller, callee)]
    module = Linker(*parts, options=LinkerOptions(arch="sm_80")).link("cubin")
    numbers = up(np.zeros(32, np.int32))
    launch(stream, LaunchConfig(grid=1, block=32), module.get_kernel("f"), numbers)
    assert (down(numbers, np.int32, 32) == 3 * np.arange(32)).all()


@case
def events():
    own = device.create_stream(options=StreamOptions(nonblocking=True, priority=-1))
    kernel, numbers = built().get_kernel("increment"), up(np.zeros(100, np.int32))
    before = own.record(options=TIMED)
    for _ in range(5):
        launch(own, WIDE, kernel, numbers, np.int32(100))
    after = own.record(options=TIMED)
    after.sync()
    assert after.is_done
    assert 0 < after - before < 1
    stream.wait(after)
    assert (down(numbers, np.int32, 100) == 5).all()


@case
def clusters_are_refused():
    kernel = built().get_kernel("increment")
    try:
        launch(stream, LaunchConfig(grid=4, cluster=2, block=64), kernel, 0, np.int32(0))
    except Exception as error:  # noqa: BLE001  whichever the client makes of it
        assert "clusters are not supported" in str(error), error
    else:
        raise AssertionError("launched")


@case
def machine_code_is_refused():
    try:
        ObjectCode.from_cubin(b"\x7fELF" + bytes(200)).get_kernel("increment")
    except Exception as error:  # noqa: BLE001  whichever the client makes of it
        assert "NO_BINARY_FOR_GPU" in str(error), error
    else:
        raise AssertionError("loaded")


@case
def pools():
    options = DeviceMemoryResourceOptions(max_size=1 << 22)
    resource = DeviceMemoryResource(device, options=options)
    buffer = resource.allocate(1000, stream=stream)
    assert resource.attributes.used_mem_current >= 1000
    buffer.close(stream)
    stream.sync()
    assert resource.attributes.used_mem_current == 0


@case
def copies():
    host = LegacyPinnedMemoryResource().allocate(400)
    values = np.from_dlpack(host).view(np.int32)
    values[:] = np.arange(100)
    first = device.memory_resource.allocate(400, stream=stream)
    host.copy_to(first, stream=stream)
    second = first.copy_to(stream=stream)
    stream.sync()
    values[:] = 0
    host.copy_from(second, stream=stream)
    stream.sync()
    assert (values == np.arange(100)).all()


run_cases()
