"""What cuda.core offers of memory: pools, address ranges, other processes, green contexts."""

import ctypes
import multiprocessing

from cases import case, run_cases
from cuda.bindings import driver
from cuda.core import (
    ContextOptions,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    EventOptions,
    ManagedMemoryResource,
    PinnedMemoryResource,
    SMResourceOptions,
    VirtualMemoryResource,
)

MIB = 1 << 20
SHARED = DeviceMemoryResourceOptions(max_size=64 * MIB, ipc_enabled=True)


def device_and_stream():
    device = Device(0)
    device.set_current()
    return device, device.create_stream()


def put(buffer, data):
    (code,) = driver.cuMemcpyHtoD(int(buffer.handle), data, len(data))
    assert code == 0, code


def get(buffer, size):
    data = (ctypes.c_char * size)()
    (code,) = driver.cuMemcpyDtoH(ctypes.addressof(data), int(buffer.handle), size)
    assert code == 0, code
    return data.raw


@case
def a_pool_counts():
    device, stream = device_and_stream()
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=64 * MIB))
    buffer = pool.allocate(1000, stream=stream)
    assert pool.attributes.used_mem_current == 1024
    assert pool.attributes.reserved_mem_current == 32 * MIB
    buffer.close(stream)
    stream.sync()
    assert pool.attributes.reserved_mem_current == 0


@case
def pinned_and_managed_pools():
    _, stream = device_and_stream()
    for resource in (PinnedMemoryResource(), ManagedMemoryResource()):
        buffer = resource.allocate(100, stream=stream)
        stream.sync()
        ctypes.memset(int(buffer.handle), 7, 100)
        assert get(buffer, 2) == b"\7\7"
        buffer.close(stream)


@case
def mapped_memory_grows():
    device, _ = device_and_stream()
    resource = VirtualMemoryResource(device)
    buffer = resource.allocate(3 * MIB)
    put(buffer, b"kept")
    larger = resource.modify_allocation(buffer, 10 * MIB)
    assert larger.size >= 10 * MIB
    assert get(larger, 4) == b"kept"
    larger.close()


def child(queue, answers):
    device_and_stream()
    queue.get()
    buffer = queue.get()
    answers.put(get(buffer, 6))
    put(buffer, b"child!")
    answers.put("done")


@case
def another_process_shares_a_pool():
    device, stream = device_and_stream()
    pool = DeviceMemoryResource(device, SHARED)
    buffer = pool.allocate(64, stream=stream)
    stream.sync()
    put(buffer, b"parent")
    spawn = multiprocessing.get_context("spawn")
    queue, answers = spawn.Queue(), spawn.Queue()
    process = spawn.Process(target=child, args=(queue, answers))
    process.start()
    queue.put(pool)
    queue.put(buffer)
    assert [answers.get(timeout=120) for _ in range(2)] == [b"parent", "done"]
    process.join()
    assert get(buffer, 6) == b"child!"


@case
def an_event_for_other_processes():
    _, stream = device_and_stream()
    assert stream.record(options=EventOptions(ipc_enabled=True)).is_ipc_enabled


@case
def sms_in_parts():
    device, _ = device_and_stream()
    assert device.resources.sm.sm_count == 108
    groups, rest = device.resources.sm.split(SMResourceOptions(count=16))
    assert (groups[0].sm_count, rest.sm_count) == (16, 92)
    context = device.create_context(ContextOptions(resources=[groups[0]]))
    context.create_stream().sync()


if __name__ == "__main__":
    run_cases()
