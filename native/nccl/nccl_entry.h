// How every exported call begins and ends: nothing throws across the C ABI.
#pragma once

#include <new>
#include <string>

#include "nccl_types.h"

namespace va::nccl {

// Thrown inside the library; becomes the result of the call, and its text the last error.
struct Failure {
  ncclResult_t code;
  std::string text;
};

[[noreturn]] void fail(ncclResult_t code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// A driver call's result; anything but success fails.
void require_cuda(int result, const char *call);

// Keeps a text as the last error, and prints it when NCCL_DEBUG asks for warnings.
void remember(const std::string &text);
const char *last_error();
// One line on stderr at level NCCL_DEBUG=INFO.
void inform(const char *format, ...) __attribute__((format(printf, 1, 2)));
void read_debug_settings();

ncclResult_t refused(const char *name) noexcept;
ncclResult_t failed(const char *name, ncclResult_t code, const std::string &text) noexcept;

template <typename Body> ncclResult_t guarded(const char *name, Body body) noexcept {
  try {
    return body();
  } catch (const Failure &failure) {
    return failed(name, failure.code, failure.text);
  } catch (const std::bad_alloc &) {
    return failed(name, ncclSystemError, "out of host memory");
  } catch (const std::exception &error) {
    return failed(name, ncclInternalError, error.what());
  }
}

} // namespace va::nccl
