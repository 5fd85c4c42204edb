// What the library holds between nvmlInit and nvmlShutdown, and how calls are let in.
#pragma once

#include <memory>
#include <functional>
#include <new>

#include "models.h"
#include "store.h"
#include "types.h"

namespace va::nvml {

using node::DeviceState;
using node::NodeModel;
using node::Store;

struct Failure {
  nvmlReturn_t code;
};
[[noreturn]] inline void fail(nvmlReturn_t code) { throw Failure{code}; }

// The node; fails before nvmlInit and after the last nvmlShutdown.
Store &store();
nvmlReturn_t start();
nvmlReturn_t stop();

// Whether a call may go on: the library is up, and nobody took this function's permission away.
nvmlReturn_t admit(const char *name) noexcept;
nvmlReturn_t unsupported(const char *name) noexcept;

template <typename Function>
nvmlReturn_t guarded(const char *name, Function function) noexcept {
  if (const nvmlReturn_t refused = admit(name))
    return refused;
  try {
    return function();
  } catch (const Failure &failure) {
    return failure.code;
  } catch (const std::bad_alloc &) {
    return NVML_ERROR_MEMORY;
  } catch (...) {
    return NVML_ERROR_UNKNOWN;
  }
}

// Before nvmlInit, too.
template <typename Function> nvmlReturn_t guarded_always(const char *, Function function) noexcept {
  try {
    return function();
  } catch (const Failure &failure) {
    return failure.code;
  } catch (...) {
    return NVML_ERROR_UNKNOWN;
  }
}

// A device as a caller names it: a GPU, or a MIG device of one.
struct Device {
  int index;
  bool mig = false;
  uint32_t gpu_instance = node::kNone, compute_instance = node::kNone;
  DeviceState state; // as it is now

  const NodeModel &model() const { return node::kNodeModels[state.model]; }
};

// Fail on what is no handle, and on GPUs that are lost.
Device device_of(nvmlDevice_t handle);
// The same, of a GPU as a whole: NVML_ERROR_NOT_SUPPORTED, or what is asked for, on MIG devices.
Device gpu_of(nvmlDevice_t handle, nvmlReturn_t otherwise = NVML_ERROR_NOT_SUPPORTED);

nvmlDevice_t gpu_handle(int index);
nvmlDevice_t mig_handle(int index, const node::GpuInstance &gi, const node::ComputeInstance &ci);
nvmlGpuInstance_t instance_handle(int index, const node::GpuInstance &gi);
nvmlComputeInstance_t instance_handle(int index, const node::GpuInstance &gi,
                                      const node::ComputeInstance &ci);

// What a handle of an instance stands for; fails once it is destroyed.
struct Instance {
  int index;
  DeviceState state;
  int gi = 0, ci = 0; // places in the tables of `state`
};
Instance instance_of(nvmlGpuInstance_t handle);
Instance instance_of(nvmlComputeInstance_t handle);

// Text into a buffer of the caller's; fails where it does not fit.
void put(const char *text, char *to, unsigned room);
// Change one GPU's settled state.
void change(int index, const std::function<nvmlReturn_t(DeviceState &)> &function);

} // namespace va::nvml
