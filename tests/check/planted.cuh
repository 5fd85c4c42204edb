// Words that the planted kernels share.
#pragma once

#define T static_cast<int>(threadIdx.x)
#define B static_cast<int>(blockIdx.x)
#define I (B * static_cast<int>(blockDim.x) + T)
#define KERNEL(name) extern "C" __global__ void name(int *in, int *out, int n)
#define BUG(name) KERNEL(name##_bug)
#define FIX(name) KERNEL(name##_fix)

__device__ inline unsigned place(const void *p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ inline void copy_async(int *to, const int *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place(to)), "l"(from) : "memory");
}
