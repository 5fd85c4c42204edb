// Green contexts: parts of a device's SMs, and streams that belong to them.
//
// A green context shares the primary context of its device; its CUcontext is another name of that
// one.  Which SMs it has is kept and told; kernels in it run, and are timed, as on the whole device.
#include "green.h"

#include <bitset>
#include <cstring>

#include "driver_api.h"

namespace va {
namespace {

constexpr int kSmCount = 16;
constexpr unsigned kMostSms = 128;
// Of compute capability 8.x.
constexpr unsigned kLeastSms = 4, kAlignment = 2;
constexpr unsigned kDefaultConnections = 8; // CUDA_DEVICE_MAX_CONNECTIONS
constexpr uint64_t kResourceMagic = 0x3030315253454D53;
enum SplitFlag { kIgnoreCoscheduling = 1, kLargestClusters = 2 };
enum GroupFlag { kBackfill = 1 };
constexpr unsigned kDefaultStream = 1, kNonBlocking = 1;

using SmSet = std::bitset<kMostSms>;

// What a resource was made of, kept in its own room so that copies of it stay valid.
struct ResourceOrigin {
  uint64_t magic;
  int32_t device, splittable;
  uint64_t sms[2];
};

struct Descriptor {
  CUdevResourceDesc handle = nullptr;
  int device = 0;
  SmSet sms;
};

struct Green {
  CUgreenCtx handle = nullptr;
  CUcontext alias = nullptr;
  Device *device = nullptr;
  uint64_t id = 0;
  SmSet sms;
};

struct GreenState {
  HandleTable<Descriptor, CUdevResourceDesc, Kind::kResourceDescriptor> descriptors;
  HandleTable<Green, CUgreenCtx, Kind::kGreenContext> contexts;
  std::mutex mutex;
  std::map<CUcontext, Green *> by_alias;
  std::vector<Green *> retired; // another thread may be in a call on them
};

GreenState &greens() {
  static GreenState *const instance = new GreenState;
  return *instance;
}

SmSet all_sms(const Device &device) {
  SmSet sms;
  for (int i = 0; i < device.attribute(kSmCount); ++i)
    sms.set(static_cast<size_t>(i));
  return sms;
}

CUdevResource resource_of(const SmSet &sms, int device, bool splittable) {
  const SmSet low(UINT64_MAX);
  const ResourceOrigin origin{
      kResourceMagic, device, splittable, {(sms & low).to_ullong(), (sms >> 64).to_ullong()}};
  CUdevResource resource{};
  resource.type = CU_DEV_RESOURCE_TYPE_SM;
  std::memcpy(resource.origin, &origin, sizeof origin);
  resource.sm.count = static_cast<unsigned>(sms.count());
  resource.sm.least = kLeastSms;
  resource.sm.alignment = kAlignment;
  return resource;
}

ResourceOrigin origin_of(const CUdevResource &resource) {
  if (resource.type != CU_DEV_RESOURCE_TYPE_SM)
    fail(CUDA_ERROR_INVALID_RESOURCE_TYPE);
  ResourceOrigin origin{};
  std::memcpy(&origin, resource.origin, sizeof origin);
  if (origin.magic != kResourceMagic)
    fail(CUDA_ERROR_INVALID_VALUE);
  device_of(origin.device);
  return origin;
}

SmSet sms_of(const ResourceOrigin &origin) {
  return SmSet(origin.sms[0]) | SmSet(origin.sms[1]) << 64;
}

// The lowest `count` SMs of a set, taken out of it.
SmSet take(SmSet *from, unsigned count) {
  SmSet taken;
  for (size_t i = 0; i < kMostSms && count; ++i)
    if (from->test(i)) {
      taken.set(i);
      from->reset(i);
      --count;
    }
  return taken;
}

void give_remainder(CUdevResource *out, const SmSet &rest, int device) {
  if (!out)
    return;
  *out = CUdevResource{};
  if (rest.any())
    *out = resource_of(rest, device, false);
}

CUresult get_resource(CUdevResource *out, CUdevResourceType type, const SmSet &sms, int device) {
  if (type == CU_DEV_RESOURCE_TYPE_SM) {
    *out = resource_of(sms, device, true);
    return CUDA_SUCCESS;
  }
  if (type != CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG)
    return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *out = CUdevResource{};
  out->type = type;
  out->workqueues = {device, kDefaultConnections, 0};
  return CUDA_SUCCESS;
}

Green &green_of(CUgreenCtx handle) {
  started();
  Green *const green = greens().contexts.find(handle);
  if (!green)
    fail(CUDA_ERROR_INVALID_CONTEXT);
  return *green;
}

Green *green_named(CUcontext alias) {
  GreenState &all = greens();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto it = all.by_alias.find(alias);
  return it == all.by_alias.end() ? nullptr : it->second;
}

// SMs of a group as asked for: so many, or all that are left; none when that cannot be.
unsigned group_size(const CU_DEV_SM_RESOURCE_GROUP_PARAMS &group, unsigned left) {
  const unsigned unit = group.coscheduled ? group.coscheduled : kAlignment;
  if (unit % kAlignment || group.flags & ~unsigned{kBackfill})
    fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  if (!group.count)
    return left / unit * unit;
  const bool whole = group.flags & kBackfill ? group.count % kAlignment == 0
                                             : group.count % unit == 0;
  if (!whole || group.count > left)
    fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  return group.count;
}

} // namespace

void join_green(Stream &stream, CUcontext current) {
  if (const Green *const green = green_named(current)) {
    stream.green = green->handle;
    stream.alias = green->alias;
  }
}

namespace api {

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type) {
  const Device &d = device_of(device);
  return get_resource(resource, type, all_sms(d), d.ordinal);
}

CUresult cuCtxGetDevResource(CUcontext handle, CUdevResource *resource, CUdevResourceType type) {
  const Device &device = *context_of(handle).device;
  const Green *const green = green_named(handle);
  return get_resource(resource, type, green ? green->sms : all_sms(device), device.ordinal);
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource *resource,
                                  CUdevResourceType type) {
  const Green &green = green_of(handle);
  return get_resource(resource, type, green.sms, green.device->ordinal);
}

CUresult cuStreamGetDevResource(CUstream handle, CUdevResource *resource, CUdevResourceType type) {
  const Stream &stream = stream_of(handle);
  if (stream.green)
    return cuGreenCtxGetDevResource(stream.green, resource, type);
  return cuCtxGetDevResource(stream.context->handle, resource, type);
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *groups,
                                     const CUdevResource *input, CUdevResource *remainder,
                                     unsigned int flags, unsigned int least) {
  started();
  const ResourceOrigin origin = origin_of(*input);
  SmSet left = sms_of(origin);
  if (flags & ~unsigned{kIgnoreCoscheduling | kLargestClusters} || !origin.splittable ||
      least > left.count())
    return CUDA_ERROR_INVALID_VALUE;
  if (flags & kLargestClusters)
    return CUDA_ERROR_NOT_SUPPORTED; // clusters come with compute capability 9.0
  const unsigned floor = flags & kIgnoreCoscheduling ? kAlignment : kLeastSms;
  const unsigned wanted = least > floor ? least : floor;
  const unsigned size = (wanted + kAlignment - 1) / kAlignment * kAlignment;
  const unsigned most = static_cast<unsigned>(left.count()) / size;
  if (!result) {
    *groups = most;
    return CUDA_SUCCESS;
  }
  if (!*groups)
    return CUDA_ERROR_INVALID_VALUE;
  *groups = *groups < most ? *groups : most;
  for (unsigned i = 0; i < *groups; ++i)
    result[i] = resource_of(take(&left, size), origin.device, false);
  give_remainder(remainder, left, origin.device);
  return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplit(CUdevResource *result, unsigned int groups,
                              const CUdevResource *input, CUdevResource *remainder,
                              unsigned int flags, CU_DEV_SM_RESOURCE_GROUP_PARAMS *wanted) {
  started();
  const ResourceOrigin origin = origin_of(*input);
  SmSet left = sms_of(origin);
  if (flags || !groups || !origin.splittable)
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUdevResource> made;
  for (unsigned i = 0; i < groups; ++i) {
    const unsigned size = group_size(wanted[i], static_cast<unsigned>(left.count()));
    if (!size)
      return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    if (!result && wanted[i].count)
      return CUDA_ERROR_INVALID_VALUE; // only a discovery goes without room for its result
    made.push_back(resource_of(take(&left, size), origin.device, false));
    wanted[i].count = size;
  }
  for (unsigned i = 0; result && i < groups; ++i)
    result[i] = made[i];
  give_remainder(remainder, left, origin.device);
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *out, CUdevResource *resources,
                                   unsigned int count) {
  started();
  auto descriptor = std::make_unique<Descriptor>();
  bool any = false;
  for (unsigned i = 0; i < count; ++i) {
    if (resources[i].type == CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG)
      continue; // a hint
    const ResourceOrigin origin = origin_of(resources[i]);
    const SmSet sms = sms_of(origin);
    if ((any && origin.device != descriptor->device) || (sms & descriptor->sms).any())
      return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    descriptor->device = origin.device;
    descriptor->sms |= sms;
    any = true;
  }
  if (!any)
    return CUDA_ERROR_INVALID_VALUE;
  descriptor->handle = greens().descriptors.add(descriptor.get());
  *out = descriptor.release()->handle;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc handle, CUdevice ordinal,
                          unsigned int flags) {
  Device &device = device_of(ordinal);
  const Descriptor *const descriptor = greens().descriptors.find(handle);
  if (!descriptor || flags & ~kDefaultStream || descriptor->device != device.ordinal)
    return CUDA_ERROR_INVALID_VALUE;
  auto green = std::make_unique<Green>();
  CUcontext primary;
  cuDevicePrimaryCtxRetain(&primary, ordinal);
  green->device = &device;
  green->id = driver().next_id++;
  green->sms = descriptor->sms;
  green->alias = driver().contexts.add(device.primary);
  green->handle = greens().contexts.add(green.get());
  const std::lock_guard<std::mutex> lock(greens().mutex);
  greens().by_alias[green->alias] = green.get();
  *out = green.release()->handle;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx handle) {
  Green &green = green_of(handle);
  {
    const std::lock_guard<std::mutex> lock(greens().mutex);
    if (!greens().contexts.remove(handle))
      return CUDA_ERROR_INVALID_CONTEXT;
    greens().by_alias.erase(green.alias);
    greens().retired.push_back(&green);
  }
  driver().contexts.remove(green.alias);
  return cuDevicePrimaryCtxRelease_v2(green.device->ordinal);
}

CUresult cuCtxFromGreenCtx(CUcontext *out, CUgreenCtx handle) {
  *out = green_of(handle).alias;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetId(CUgreenCtx handle, uint64_t *id) {
  *id = green_of(handle).id;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx handle, CUevent event) {
  return cuCtxRecordEvent(green_of(handle).alias, event);
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx handle, CUevent event) {
  return cuCtxWaitEvent(green_of(handle).alias, event);
}

CUresult cuGreenCtxStreamCreate(CUstream *out, CUgreenCtx handle, unsigned int flags,
                                int priority) {
  const Green &green = green_of(handle);
  if (flags != kNonBlocking)
    return CUDA_ERROR_INVALID_VALUE;
  cuCtxPushCurrent_v2(green.alias);
  const CUresult result = cuStreamCreateWithPriority(out, flags, priority);
  cuCtxPopCurrent_v2(nullptr);
  return result;
}

CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *out) {
  *out = stream_of(handle).green;
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
