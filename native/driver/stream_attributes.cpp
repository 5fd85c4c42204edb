// Attributes of streams: kept, copied and told; hints, but for what they say of priority.
#include <cstring>

#include "driver_api.h"
#include "objects.h"

namespace va {
namespace {

enum StreamAttribute {
  kAccessPolicyWindow = 1,
  kSynchronizationPolicy = 3,
  kPriority = 8,
  kMemSyncDomainMap = 9,
  kMemSyncDomain = 10
};

constexpr int kLargestWindow = 109; // device attribute
constexpr int kPolicies = 4, kAutomatic = 1;
constexpr int kPersisting = 2, kStreaming = 1;

struct AccessPolicyWindow {
  void *base;
  size_t bytes;
  float hit_ratio;
  int hit, miss;
};

std::mutex &attribute_mutex() {
  static std::mutex *const instance = new std::mutex;
  return *instance;
}

template <typename Value> Value read(const CUstreamAttrValue &from) {
  Value value{};
  std::memcpy(&value, &from, sizeof value);
  return value;
}

template <typename Value> CUstreamAttrValue wrapped(const Value &value) {
  CUstreamAttrValue out{};
  std::memcpy(&out, &value, sizeof value);
  return out;
}

bool is_legal(const AccessPolicyWindow &w, const Device &device) {
  return w.bytes <= static_cast<size_t>(device.attribute(kLargestWindow)) && w.hit_ratio >= 0 &&
         w.hit_ratio <= 1 && w.hit >= 0 && w.hit <= kPersisting && w.miss >= 0 &&
         w.miss <= kStreaming;
}

void require_value(const Stream &stream, int attribute, const CUstreamAttrValue &value) {
  bool legal = false;
  switch (attribute) {
  case kAccessPolicyWindow:
    legal = is_legal(read<AccessPolicyWindow>(value), *stream.context->device);
    break;
  case kSynchronizationPolicy:
    legal = read<int>(value) >= kAutomatic && read<int>(value) <= kPolicies;
    break;
  case kPriority:
    legal = true;
    break;
  case kMemSyncDomainMap: // an A100 has one domain
    legal = read<unsigned short>(value) == 0;
    break;
  case kMemSyncDomain:
    legal = read<int>(value) == 0 || read<int>(value) == 1;
    break;
  default:
    break;
  }
  if (!legal)
    fail(CUDA_ERROR_INVALID_VALUE);
}

CUstreamAttrValue initial(const Stream &stream, int attribute) {
  switch (attribute) {
  case kSynchronizationPolicy:
    return wrapped(kAutomatic);
  case kPriority:
    return wrapped(stream.priority);
  case kAccessPolicyWindow:
  case kMemSyncDomainMap:
  case kMemSyncDomain:
    return CUstreamAttrValue{};
  default:
    fail(CUDA_ERROR_INVALID_VALUE);
  }
}

} // namespace

namespace api {

CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue *value) {
  const Stream &stream = stream_of(handle);
  const std::lock_guard<std::mutex> lock(attribute_mutex());
  const auto it = stream.attributes.find(attribute);
  *value = it == stream.attributes.end() ? initial(stream, attribute) : it->second;
  return CUDA_SUCCESS;
}

CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute,
                              const CUstreamAttrValue *value) {
  Stream &stream = stream_of(handle);
  require_value(stream, attribute, *value);
  const std::lock_guard<std::mutex> lock(attribute_mutex());
  stream.attributes[attribute] = *value;
  return CUDA_SUCCESS;
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
  Stream &target = stream_of(to);
  const Stream &source = stream_of(from);
  if (target.context != source.context)
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard<std::mutex> lock(attribute_mutex());
  target.attributes = source.attributes;
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
