// Kernels and functions: attributes, parameters, and how many fit on an SM.
#include <algorithm>

#include "driver_api.h"
#include "modules.h"

namespace va {
namespace {

enum FunctionAttribute {
  kMaxThreads = 0,
  kSharedBytes = 1,
  kConstBytes = 2,
  kLocalBytes = 3,
  kRegisters = 4,
  kPtxVersion = 5,
  kBinaryVersion = 6,
  kCacheModeCa = 7,
  kMaxDynamicShared = 8,
  kCarveout = 9,
  kClusterFirst = 10,
  kLast = 17
};

constexpr int kOptInShared = 97, kReservedShared = 111; // device attributes

CUresult get_attribute(int *value, int attribute, const Function &f) {
  switch (attribute) {
  case kMaxThreads:
    *value = static_cast<int>(f.max_threads);
    return CUDA_SUCCESS;
  case kSharedBytes:
    *value = static_cast<int>(f.static_shared_bytes);
    return CUDA_SUCCESS;
  case kConstBytes:
    *value = static_cast<int>(f.const_bytes);
    return CUDA_SUCCESS;
  case kLocalBytes:
    *value = static_cast<int>(f.local_bytes);
    return CUDA_SUCCESS;
  case kRegisters:
    *value = static_cast<int>(f.registers);
    return CUDA_SUCCESS;
  case kPtxVersion:
    *value = static_cast<int>(f.ptx_arch);
    return CUDA_SUCCESS;
  case kBinaryVersion:
    *value = 80;
    return CUDA_SUCCESS;
  case kMaxDynamicShared:
    *value = static_cast<int>(f.dynamic_shared_limit.load());
    return CUDA_SUCCESS;
  case kCarveout:
    *value = f.carveout.load();
    return CUDA_SUCCESS;
  default:
    *value = 0; // clusters and what came after them
    return attribute == kCacheModeCa || (attribute >= kClusterFirst && attribute <= kLast)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult set_attribute(int attribute, int value, Function &f, const Device &device) {
  if (attribute == kMaxDynamicShared) {
    const int64_t most = device.attribute(kOptInShared);
    if (value < 0 || value + int64_t{f.static_shared_bytes} > most)
      return CUDA_ERROR_INVALID_VALUE;
    f.dynamic_shared_limit = static_cast<uint32_t>(value);
    return CUDA_SUCCESS;
  }
  if (attribute == kCarveout) {
    if (value < -1 || value > 100)
      return CUDA_ERROR_INVALID_VALUE;
    f.carveout = value;
    return CUDA_SUCCESS;
  }
  if (attribute >= kClusterFirst && attribute <= kLast)
    return CUDA_ERROR_NOT_SUPPORTED;
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult parameter(const Function &f, size_t index, size_t *offset, size_t *bytes) {
  if (index >= f.parameters.size())
    return CUDA_ERROR_INVALID_VALUE;
  *offset = f.parameters[index].offset;
  if (bytes)
    *bytes = f.parameters[index].size;
  return CUDA_SUCCESS;
}

Function &function_in(Kernel &kernel, Context &context) {
  Function *const found = find_function(*module_in(*kernel.library, context), kernel.name);
  if (!found)
    fail(CUDA_ERROR_NOT_FOUND);
  return runnable(*found);
}

// A kernel on a device, asked for outside any launch: that device's primary context, or the
// current one when it is the same device.
Function &function_on(CUkernel handle, CUdevice ordinal) {
  Device &device = device_of(ordinal);
  Context *const current = driver().contexts.find(current_handle());
  Context &context = current && current->device == &device ? *current : *device.primary;
  return function_in(kernel_of(handle), context);
}

// Any module of the kernel's library serves for what is the same everywhere.
Function &any_function(CUkernel handle) {
  Context *const current = driver().contexts.find(current_handle());
  return function_in(kernel_of(handle),
                     current ? *current : *driver().devices.front()->primary);
}

uint32_t round_up(uint32_t value, uint32_t to) { return (value + to - 1) / to * to; }

CUresult active_ctas(int *count, CUfunction handle, int threads, size_t shared) {
  const Context &context = current_context();
  const Function &f = function_of(handle);
  if (threads <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(
      resident_ctas_per_sm(*context.device, f, static_cast<uint32_t>(threads), shared));
  return CUDA_SUCCESS;
}

CUresult potential_block(int *grid, int *block, CUfunction handle, CUoccupancyB2DSize shared_for,
                         size_t shared, int limit) {
  const Context &context = current_context();
  const Function &f = function_of(handle);
  uint32_t most = f.max_threads;
  if (limit > 0)
    most = std::min(most, static_cast<uint32_t>(limit));
  uint32_t best_threads = 0, best_ctas = 0, best_block = 0;
  // Larger first: of equally full SMs, the one with fewer and larger CTAs.
  for (uint32_t threads = round_up(most, 32); threads >= 32; threads -= 32) {
    const uint32_t tried = std::min(threads, most);
    const size_t bytes = shared_for ? shared_for(static_cast<int>(tried)) : shared;
    const uint32_t ctas = resident_ctas_per_sm(*context.device, f, tried, bytes);
    if (ctas * tried > best_threads) {
      best_threads = ctas * tried;
      best_ctas = ctas;
      best_block = tried;
    }
  }
  constexpr int kSmCount = 16;
  *block = static_cast<int>(best_block);
  *grid = static_cast<int>(best_ctas) * context.device->attribute(kSmCount);
  return CUDA_SUCCESS;
}

} // namespace

uint32_t resident_ctas_per_sm(const Device &device, const Function &function, uint32_t threads,
                              size_t dynamic_shared_bytes) {
  // How resources are handed out on compute capability 8.0.
  constexpr uint32_t kWarp = 32, kRegisterUnit = 256, kWarpUnit = 4, kSharedUnit = 128;
  const auto attribute = [&](int n) { return static_cast<uint32_t>(device.attribute(n)); };
  const uint32_t sm_threads = attribute(39), sm_ctas = attribute(106), sm_registers = attribute(82);
  const uint32_t sm_shared = attribute(81), reserved = attribute(111);
  const size_t shared = function.static_shared_bytes + dynamic_shared_bytes;
  if (!threads || threads > function.max_threads || shared > attribute(kOptInShared))
    return 0;
  const uint32_t warps = round_up(threads, kWarp) / kWarp;
  uint32_t ctas = std::min(sm_ctas, sm_threads / kWarp / warps);
  if (function.registers) {
    const uint32_t per_warp = round_up(function.registers * kWarp, kRegisterUnit);
    const uint32_t warp_slots = sm_registers / kWarpUnit / per_warp * kWarpUnit;
    // An estimate may limit how many there are, but refuses no launch.
    const uint32_t least = function.registers_estimated ? 1 : 0;
    ctas = std::min(ctas, std::max(warp_slots / warps, least));
  }
  const uint32_t per_cta = round_up(static_cast<uint32_t>(shared) + reserved, kSharedUnit);
  return std::min(ctas, sm_shared / per_cta);
}

uint32_t l1_cta_bytes(const Device &device, const Function &function, uint32_t ctas_per_sm,
                      size_t dynamic_shared_bytes) {
  const auto shared = static_cast<uint32_t>(function.static_shared_bytes + dynamic_shared_bytes);
  const auto reserved = static_cast<uint32_t>(device.attribute(kReservedShared));
  const uint32_t wanted = shared ? ctas_per_sm * (shared + reserved) : 0;
  const DeviceModel &model = *device.model;
  uint32_t taken = 0;
  for (const uint32_t size : model.shared_carveout_bytes) {
    taken = size;
    if (size >= wanted)
      break;
  }
  return (model.l1_shared_bytes - taken) / ctas_per_sm;
}

Function &function_for(CUfunction handle, Context &context) {
  if (kind_of(handle) == Kind::kKernel)
    return function_in(kernel_of(reinterpret_cast<CUkernel>(handle)), context);
  return function_of(handle);
}

Function &function_of(CUfunction handle) {
  if (kind_of(handle) == Kind::kKernel)
    return function_in(kernel_of(reinterpret_cast<CUkernel>(handle)), current_context());
  Function *const function = started().functions.find(handle);
  if (!function)
    fail(CUDA_ERROR_INVALID_HANDLE);
  return *function;
}

namespace api {

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
  return get_attribute(value, attribute, function_of(function));
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  Function &f = function_of(function);
  return set_attribute(attribute, value, f, *f.module->context->device);
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function) {
  *module = function_of(function).module->handle;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction function) {
  if (!function)
    return CUDA_ERROR_INVALID_VALUE;
  *name = function_of(function).name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes) {
  return parameter(function_of(function), index, offset, bytes);
}

CUresult cuFuncGetParamCount(CUfunction function, size_t *count) {
  *count = function_of(function).parameters.size();
  return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function) {
  function_of(function);
  *state = 1;
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function) {
  function_of(function);
  return CUDA_SUCCESS;
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
  function_of(function);
  return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig) {
  function_of(function);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  *function = function_in(kernel_of(kernel), healthy_context()).handle;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice device) {
  return get_attribute(value, attribute, function_on(kernel, device));
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device) {
  return set_attribute(attribute, value, function_on(kernel, device), device_of(device));
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice device) {
  function_on(kernel, device);
  return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *bytes) {
  current_context();
  return parameter(any_function(kernel), index, offset, bytes);
}

CUresult cuKernelGetParamCount(CUkernel kernel, size_t *count) {
  current_context();
  *count = any_function(kernel).parameters.size();
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction function, int threads,
                                                     size_t shared) {
  return active_ctas(count, function, threads, shared);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, CUfunction function,
                                                              int threads, size_t shared,
                                                              unsigned int flags) {
  return flags > 1 ? CUDA_ERROR_INVALID_VALUE : active_ctas(count, function, threads, shared);
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                          CUoccupancyB2DSize shared_for, size_t shared,
                                          int limit) {
  return potential_block(grid, block, function, shared_for, shared, limit);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
                                                   CUoccupancyB2DSize shared_for, size_t shared,
                                                   int limit, unsigned int flags) {
  if (flags > 1)
    return CUDA_ERROR_INVALID_VALUE;
  return potential_block(grid, block, function, shared_for, shared, limit);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction handle, int ctas,
                                                 int threads) {
  const Device &device = *current_context().device;
  const Function &f = function_of(handle);
  if (ctas <= 0 || threads <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  const uint32_t wanted = static_cast<uint32_t>(ctas);
  if (resident_ctas_per_sm(device, f, static_cast<uint32_t>(threads), 0) < wanted)
    return CUDA_ERROR_INVALID_VALUE;
  const size_t share = static_cast<size_t>(device.attribute(81)) / wanted / 128 * 128;
  const size_t taken = static_cast<size_t>(device.attribute(111)) + f.static_shared_bytes;
  // What a launch may ask for: more than 48 KiB only where the function was allowed it.
  const size_t most = f.dynamic_shared_limit;
  *bytes = std::min(share > taken ? share - taken : 0, most);
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
