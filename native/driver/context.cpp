// Contexts: primary and others, the stack of each thread, limits, peers, and what sticks.
#include <algorithm>

#include "board.h"
#include "capture.h"
#include "driver_api.h"
#include "held.h"
#include "objects.h"
#include "settings.h"
#include "va100/heap.h"

namespace va {
namespace {

constexpr unsigned kFlagMask = 0x7F;
constexpr uint64_t kLimits[12] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0, 0, 0, 0, 0, 0};
constexpr int kLimitCount = 7; // those an A100 has

// A thread's contexts, the current one last.  Needs no destructor: threads' objects die before the
// program's, and its destructors still call.
struct ContextStack {
  static constexpr size_t kDepth = 128;
  CUcontext items[kDepth];
  size_t count;

  bool empty() const { return count == 0; }
  CUcontext &back() { return items[count - 1]; }
  void pop_back() { --count; }
  void push_back(CUcontext handle) {
    if (count == kDepth)
      fail(CUDA_ERROR_OUT_OF_MEMORY);
    items[count++] = handle;
  }
};

ContextStack &stack() {
  static thread_local ContextStack contexts;
  return contexts;
}

void set_default_limits(Context &context) {
  for (size_t i = 0; i < context.limits.size(); ++i)
    context.limits[i] = kLimits[i];
}

bool is_live(const Context &context) {
  return !context.primary || context.device->primary_users.load() > 0;
}

void destroy(Context &context) {
  empty_context(context);
  leave_context(*context.device);
  context.destroyed = true;
  Driver &d = driver();
  d.contexts.remove(context.handle);
  // The object stays: another thread may be in a call on it.  It is small, and contexts are few.
  const std::lock_guard<std::mutex> lock(d.retired_mutex);
  d.retired.push_back(&context);
}

void leave_stack(CUcontext handle) {
  ContextStack &contexts = stack();
  if (!contexts.empty() && contexts.back() == handle)
    contexts.pop_back();
}

CUresult create(CUcontext *context, unsigned flags, CUdevice device) {
  if (flags & ~kFlagMask)
    return CUDA_ERROR_INVALID_VALUE;
  enter_context(device_of(device));
  Context *const made = create_context(device_of(device), flags, false);
  stack().push_back(made->handle);
  *context = made->handle;
  return CUDA_SUCCESS;
}

void wait_for(Context &context) {
  require_wait_allowed(context);
  settle(context);
  log_join(context.tracks);
  flush_device_output();
  require_healthy(context);
}

} // namespace

Context *create_context(Device &device, unsigned flags, bool primary) {
  auto context = std::make_unique<Context>();
  context->device = &device;
  context->flags = flags;
  context->primary = primary;
  context->id = driver().next_id++;
  context->tracks = std::make_shared<TrackGroup>();
  set_default_limits(*context);
  context->legacy = make_stream(*context, 0, 0);
  context->legacy->track->legacy = true;
  context->handle = driver().contexts.add(context.get());
  return context.release();
}

void empty_context(Context &context) {
  flush_device_output();
  std::set<va_module *> modules;
  std::set<Stream *> streams;
  {
    const std::lock_guard<std::mutex> lock(context.mutex);
    modules.swap(context.modules);
    streams.swap(context.streams);
    context.peers.clear();
  }
  for (va_module *const module : modules)
    unload_module(module);
  for (Stream *const stream : streams)
    delete driver().streams.remove(stream->handle);
  forget_textures_of(context);
  forget_arrays_of(context);
  free_blocks_of(context);
  va_exec_drop_heap(context.id);
  context.fault = CUDA_SUCCESS;
}

CUcontext current_handle() { return stack().empty() ? nullptr : stack().back(); }

Context &context_of(CUcontext handle) {
  Context *const context = started().contexts.find(handle);
  if (!context || !is_live(*context))
    fail(handle ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT);
  return *context;
}

Context &current_context() { return context_of(current_handle()); }

void require_healthy(const Context &context) {
  const int fault = context.fault.load(std::memory_order_relaxed);
  if (fault)
    fail(static_cast<CUresult>(fault));
  if (const CUresult outside = struck(context))
    fail(outside);
}

Context &healthy_context() {
  Context &context = current_context();
  require_healthy(context);
  return context;
}

namespace api {

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) {
  return create(context, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *, int count, unsigned int flags,
                        CUdevice device) {
  return count ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : create(context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned int flags,
                        CUdevice device) {
  if (parameters) { // first field: affinities, third: graphics sharing
    const void *const *const fields = reinterpret_cast<const void *const *>(parameters);
    if (fields[0])
      return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (fields[2])
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return create(context, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext handle) {
  Context &context = context_of(handle);
  if (context.primary)
    return CUDA_ERROR_INVALID_CONTEXT;
  destroy(context);
  leave_stack(handle);
  return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext handle) { return cuCtxDestroy_v2(handle); }

CUresult cuCtxAttach(CUcontext *handle, unsigned int flags) {
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  Context &context = current_context();
  ++context.users;
  *handle = context.handle;
  return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext handle) {
  Context &context = context_of(handle);
  if (--context.users == 0 && !context.primary) {
    destroy(context);
    leave_stack(handle);
  }
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  context_of(handle);
  stack().push_back(handle); // by this name: a green context has another than what it is part of
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext handle) { return cuCtxPushCurrent_v2(handle); }

CUresult cuCtxPopCurrent_v2(CUcontext *handle) {
  started();
  if (stack().empty())
    return CUDA_ERROR_INVALID_CONTEXT;
  if (handle)
    *handle = stack().back();
  stack().pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *handle) { return cuCtxPopCurrent_v2(handle); }

CUresult cuCtxSetCurrent(CUcontext handle) {
  started();
  ContextStack &contexts = stack();
  if (!handle) {
    if (!contexts.empty())
      contexts.pop_back();
    return CUDA_SUCCESS;
  }
  context_of(handle);
  if (contexts.empty())
    contexts.push_back(handle);
  else
    contexts.back() = handle;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *handle) {
  started();
  *handle = current_handle();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
  *device = current_context().device->ordinal;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext handle) {
  *device = (handle ? context_of(handle) : current_context()).device->ordinal;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags) {
  *flags = current_context().flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags) {
  if (flags & ~kFlagMask)
    return CUDA_ERROR_INVALID_VALUE;
  current_context().flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, uint64_t *id) {
  *id = (handle ? context_of(handle) : current_context()).id;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int *version) {
  if (handle)
    context_of(handle);
  else
    current_context();
  *version = 3020; // of contexts, not of the driver; it has not moved since
  return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit) {
  Context &context = current_context();
  if (limit < 0 || limit >= kLimitCount)
    return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *value = context.limits[static_cast<size_t>(limit)].load();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  Context &context = healthy_context();
  if (limit < 0 || limit >= kLimitCount)
    return CUDA_ERROR_UNSUPPORTED_LIMIT;
  constexpr CUlimit kPersistingL2 = 6;
  constexpr int kMaxPersistingL2 = 108;
  if (limit == kPersistingL2)
    value = std::min<size_t>(value,
                             static_cast<size_t>(context.device->attribute(kMaxPersistingL2)));
  context.limits[static_cast<size_t>(limit)] = value;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config) {
  *config = current_context().cache_config.load();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  if (config < 0 || config > 3)
    return CUDA_ERROR_INVALID_VALUE;
  current_context().cache_config = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config) {
  *config = current_context().shared_config.load();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  if (config < 0 || config > 2)
    return CUDA_ERROR_INVALID_VALUE;
  current_context(); // an A100's banks have one width
  return CUDA_SUCCESS;
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam *, CUexecAffinityType) {
  current_context();
  return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY; // only under MPS
}

CUresult cuCtxResetPersistingL2Cache() {
  current_context();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  current_context();
  if (least)
    *least = 0;
  if (greatest)
    *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  wait_for(current_context());
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext handle) {
  wait_for(handle ? context_of(handle) : current_context());
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  Context &context = healthy_context();
  Context &other = context_of(peer);
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  if (other.device == context.device)
    return CUDA_ERROR_INVALID_DEVICE;
  const std::lock_guard<std::mutex> lock(context.mutex);
  return context.peers.insert(peer).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  Context &context = healthy_context();
  context_of(peer);
  const std::lock_guard<std::mutex> lock(context.mutex);
  return context.peers.erase(peer) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *handle, CUdevice ordinal) {
  Device &device = device_of(ordinal);
  const std::lock_guard<std::mutex> lock(device.mutex);
  if (device.primary_users == 0) {
    enter_context(device);
    device.primary->flags = device.primary_flags;
  }
  ++device.primary_users;
  *handle = device.primary->handle;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  Device &device = device_of(ordinal);
  bool last;
  {
    const std::lock_guard<std::mutex> lock(device.mutex);
    if (device.primary_users == 0)
      return CUDA_ERROR_INVALID_CONTEXT;
    last = --device.primary_users == 0;
  }
  if (last) { // without the lock: unloading may have to wait for the interpreter
    empty_context(*device.primary);
    leave_context(device);
  }
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice ordinal) {
  return cuDevicePrimaryCtxRelease_v2(ordinal);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  Device &device = device_of(ordinal);
  empty_context(*device.primary);
  set_default_limits(*device.primary);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice ordinal) { return cuDevicePrimaryCtxReset_v2(ordinal); }

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned int flags) {
  Device &device = device_of(ordinal);
  if (flags & ~kFlagMask)
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(device.mutex);
  device.primary_flags = flags;
  device.primary->flags = flags;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice ordinal, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2(ordinal, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int *flags, int *active) {
  Device &device = device_of(ordinal);
  const std::lock_guard<std::mutex> lock(device.mutex);
  if (flags)
    *flags = device.primary_flags;
  if (active)
    *active = device.primary_users > 0;
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
