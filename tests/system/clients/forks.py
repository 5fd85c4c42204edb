"""Forks before and after the driver came up, and says what each process was answered."""

import ctypes
import multiprocessing
import sys

from va100.cli import selftest

driver = ctypes.CDLL("libcuda.so.1")
runtime = ctypes.CDLL("libcudart.so.13")


def answers(queue):
    count = ctypes.c_int()
    address = ctypes.c_uint64()
    queue.put(
        {
            "cuInit": driver.cuInit(0),
            "cuDeviceGetCount": driver.cuDeviceGetCount(ctypes.byref(count)),
            "cuMemAlloc": driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(64)),
            "cuCtxSynchronize": driver.cuCtxSynchronize(),
            "cudaGetDeviceCount": runtime.cudaGetDeviceCount(ctypes.byref(count)),
            "cudaFree": runtime.cudaFree(None),
        }
    )


def answers_of_a_child(queue):
    queue.put(child("fork", answers))


def works(queue):
    queue.put(selftest.main())


def child(how, target):
    context = multiprocessing.get_context(how)
    queue = context.SimpleQueue()
    started = context.Process(target=target, args=(queue,))
    started.start()
    started.join()
    return "nothing" if queue.empty() else queue.get()


if __name__ == "__main__":
    print("fork before:", child("fork", works), flush=True)
    print("here:", selftest.main(), flush=True)
    print("fork after:", child("fork", answers), flush=True)
    print("fork of a fork:", child("fork", answers_of_a_child), flush=True)
    print("spawn after:", child("spawn", works), flush=True)
    print("here again:", selftest.main(), flush=True)
    sys.stdout.flush()
