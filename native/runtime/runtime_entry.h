// How every exported runtime call begins and ends: nothing throws, and the last error is kept.
#pragma once

#include <new>

#include "driver_abi.h"
#include "runtime_types.h"

#define VA_RT_ENTRY __attribute__((visibility("default")))

namespace va::rt {

// Thrown inside the runtime; becomes the result of the call.
struct Failure {
  cudaError_t code;
};

[[noreturn]] inline void fail(cudaError_t code) { throw Failure{code}; }

// The driver's codes are the runtime's; the few that differ are translated where they arise.
inline cudaError_t from_driver(CUresult result) { return static_cast<cudaError_t>(result); }
inline void check(CUresult result) {
  if (result != CUDA_SUCCESS)
    fail(from_driver(result));
}

// This thread's last error, which cudaGetLastError takes.
cudaError_t &last_error();

inline cudaError_t record(cudaError_t code) {
  if (code != cudaSuccess)
    last_error() = code;
  return code;
}

template <typename Body> cudaError_t recorded(Body body) noexcept {
  try {
    return record(body());
  } catch (const Failure &failure) {
    return record(failure.code);
  } catch (const std::bad_alloc &) {
    return record(static_cast<cudaError_t>(CUDA_ERROR_OUT_OF_MEMORY));
  } catch (...) {
    return record(cudaErrorUnknown);
  }
}

// Answer for a call that is not supported; its name is told the first time.
cudaError_t refuse(const char *name) noexcept;

// While it lives, stream 0 means this thread's own default stream (the _ptsz and _ptds calls).
class PerThreadStream {
public:
  PerThreadStream() : before_(active()) { active() = true; }
  ~PerThreadStream() { active() = before_; }
  PerThreadStream(const PerThreadStream &) = delete;
  PerThreadStream &operator=(const PerThreadStream &) = delete;

  static bool &active() {
    static thread_local bool flag = false;
    return flag;
  }

private:
  bool before_;
};

// The stream a caller means, as the driver spells it.
inline CUstream stream(cudaStream_t handle) {
  return !handle && PerThreadStream::active() ? reinterpret_cast<CUstream>(2) : handle;
}

// Make sure that the driver is up and that this thread has a context; every call but a few
// begins so.  Fails with the driver's error.
void enter();
// The device of this thread's context, or the one chosen for it.
int current_device();

// The kernel behind a __global__ function's host address; loads its binary at first use.
CUkernel kernel_of(const void *host_function);
// The same as the driver's calls on functions take it.
inline CUfunction function_of(const void *host_function) {
  return reinterpret_cast<CUfunction>(kernel_of(host_function));
}
// Address and size of a __device__ or __constant__ variable by its host address.
CUdeviceptr variable_of(const void *host_variable, size_t *bytes);

// The host function of a kernel, or null when no program registered it.
const void *host_function_of(CUkernel kernel);

// Copies as graphs' nodes hold them.
CUDA_MEMCPY3D node_copy(const cudaMemcpy3DParms &parameters);
CUDA_MEMCPY3D node_copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
CUDA_MEMCPY3D node_copy_to_symbol(const void *symbol, const void *from, size_t bytes,
                                  size_t offset, cudaMemcpyKind kind);
CUDA_MEMCPY3D node_copy_from_symbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind);
cudaMemcpy3DParms runtime_copy(const CUDA_MEMCPY3D &copy);

// Bytes of a texel of an array; fails on an unknown one.
size_t texel_bytes_of(CUarray array);

} // namespace va::rt
