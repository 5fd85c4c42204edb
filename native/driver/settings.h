// What the environment asks for; read once, here and nowhere else in the native core.
#pragma once

#include <string>

#include "device_models.h"

namespace va {

struct Settings {
  int device_count;          // VA100_GPUS, 1 to 16
  const DeviceModel *model;  // VA100_MODEL
  int driver_version;        // VA100_DRIVER_VERSION, 1000 * major + 10 * minor
  bool log;                  // VA100_LOG: say which calls are refused, which images load
  bool some_visible;         // whether CUDA_VISIBLE_DEVICES is set, though it may be empty
  std::string visible;       // CUDA_VISIBLE_DEVICES
  bool launch_blocking;      // CUDA_LAUNCH_BLOCKING: launches wait for their end
  bool eager_loading;        // CUDA_MODULE_LOADING=EAGER, which is only told
  unsigned workers;          // VA100_WORKERS, 0: all cores
  unsigned shuffle;          // VA100_SHUFFLE, 0: CTAs and warps run as they are numbered
  unsigned observe_ctas;     // VA100_OBSERVE: CTAs of a launch whose accesses are looked at
  std::string nvrtcs;         // VA100_NVRTC, NVIDIA's that ours compile with, separated by ":"
  std::string python_library; // VA100_LIBPYTHON
  std::string python;         // VA100_PYTHON, the interpreter whose packages are used
  unsigned check;             // VA100_CHECK: va_check_tool bits
  std::string backend;        // VA100_BACKEND, "module:function" that registers a compiler
  bool dump_on_exception;     // CUDA_ENABLE_COREDUMP_ON_EXCEPTION
  bool dump_lightweight;      // CUDA_ENABLE_LIGHTWEIGHT_COREDUMP
  std::string dump_file;      // CUDA_COREDUMP_FILE
};

const Settings &settings();

// One line on stderr, always; for what the user has to know.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
// One line on stderr when VA100_LOG is set.
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

} // namespace va
