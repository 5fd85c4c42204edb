// How every exported call begins and ends: nothing throws across the C ABI.
#pragma once

#include <new>

#include "cuda_types.h"

#define VA_ENTRY __attribute__((visibility("default")))

namespace va {

// Thrown inside the driver; becomes the result of the call.
struct Failure {
  CUresult code;
};

[[noreturn]] inline void fail(CUresult code) { throw Failure{code}; }

template <typename Body> CUresult guarded(Body body) noexcept {
  try {
    return body();
  } catch (const Failure &failure) {
    return failure.code;
  } catch (const std::bad_alloc &) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

// Answer for a call that is not supported: 801, and one line on stderr when asked for.
CUresult refuse(const char *name) noexcept;

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

} // namespace va
