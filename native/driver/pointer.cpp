// What is known about a pointer: attributes of the memory it points into.
#include "driver_api.h"
#include "physical.h"
#include "pools.h"

namespace va {
namespace {

template <typename Value> CUresult put(void *data, Value value) {
  *static_cast<Value *>(data) = value;
  return CUDA_SUCCESS;
}

enum PointerAttribute {
  kContext = 1,
  kMemoryType = 2,
  kDevicePointer = 3,
  kHostPointer = 4,
  kSyncMemops = 6,
  kBufferId = 7,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kIpcCapable = 10,
  kRangeStart = 11,
  kRangeSize = 12,
  kMapped = 13,
  kHandleTypes = 14,
  kRdmaCapable = 15,
  kAccessFlags = 16,
  kMempool = 17,
  kMappingSize = 18,
  kMappingBase = 19,
  kBlockId = 20,
  kDecompress = 21,
  kLocalityDomain = 22
};

// Which exports to other processes memory allows.
uint64_t allowed_handle_types(const Block &block) {
  const Pool *const pool = block.pool ? driver().pools.find(block.pool) : nullptr;
  return pool ? static_cast<unsigned>(pool->handle_types) : block.handle_types;
}

// What the current context's device may do there.
int access_of(const Block &block) {
  if (block.origin != Origin::kMapped)
    return CU_MEM_ACCESS_READWRITE;
  const Context *const context = driver().contexts.find(current_handle());
  const int device = context ? context->device->ordinal : block.device;
  return static_cast<int>(block.access >> 2 * device & 3);
}

bool is_ipc_capable(const Block &block) {
  return block.origin == Origin::kDevice && !block.pool && block.context && block.id;
}

struct AddressRange {
  uint64_t base, bytes;
};

// The allocation; of mapped memory, the addresses that were reserved together.
AddressRange whole_range(uint64_t address, const Block &block) {
  AddressRange range{block.base, block.bytes};
  if (block.origin == Origin::kMapped)
    va_virtual_reserved(address, &range.base, &range.bytes);
  return range;
}

// What is known of an address that is reserved, with nothing mapped there.
CUresult reserved_attribute(void *data, int attribute, uint64_t address) {
  AddressRange range{0, 0};
  if (!va_virtual_reserved(address, &range.base, &range.bytes))
    return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
  case kMapped:
    return put(data, 0);
  case kRangeStart:
    return put(data, range.base);
  case kRangeSize:
    return put(data, range.bytes);
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult pointer_attribute(void *data, int attribute, uint64_t address, const Block &block) {
  const bool host_visible = is_host(block) || block.origin == Origin::kManaged;
  switch (attribute) {
  case kContext:
    return put(data, block.context);
  case kMemoryType:
    return put<unsigned>(data, is_host(block) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
  case kDevicePointer:
    return put(data, address);
  case kHostPointer:
    if (!host_visible)
      return CUDA_ERROR_INVALID_VALUE;
    return put(data, address);
  case kSyncMemops:
  case kRdmaCapable:
  case kDecompress:
    return put(data, 0);
  case kIpcCapable:
    return put(data, is_ipc_capable(block) ? 1 : 0);
  case kBufferId:
  case kBlockId:
    return put(data, block.id);
  case kIsManaged:
    return put(data, block.origin == Origin::kManaged ? 1 : 0);
  case kDeviceOrdinal:
    return put(data, block.device);
  case kRangeStart:
    return put(data, whole_range(address, block).base);
  case kRangeSize:
    return put(data, whole_range(address, block).bytes);
  case kMappingBase:
    return put(data, block.base);
  case kMappingSize:
    return put(data, block.bytes);
  case kMapped:
    return put(data, 1);
  case kHandleTypes:
    return put(data, allowed_handle_types(block)); // a mask of 64 bits
  case kAccessFlags:
    return put(data, access_of(block));
  case kMempool:
    return put(data, block.pool);
  case kLocalityDomain:
    return put(data, -1); // one domain, so none is named
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

} // namespace

namespace api {

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address) {
  started();
  Block block;
  if (!data)
    return CUDA_ERROR_INVALID_VALUE;
  return find_block(address, &block) ? pointer_attribute(data, attribute, address, block)
                                     : reserved_attribute(data, attribute, address);
}

CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr address) {
  started();
  Block block;
  const bool known = find_block(address, &block);
  for (unsigned i = 0; i < count; ++i) {
    if (!data[i])
      return CUDA_ERROR_INVALID_VALUE;
    if (known && pointer_attribute(data[i], attributes[i], address, block) == CUDA_SUCCESS)
      continue;
    // What cannot be answered is zero here, not an error; two of them have another "none".
    switch (attributes[i]) {
    case kMemoryType:
    case kSyncMemops:
    case kIsManaged:
    case kIpcCapable:
    case kMapped:
    case kRdmaCapable:
    case kAccessFlags:
      put(data[i], 0);
      break;
    case kDeviceOrdinal:
      put(data[i], -2);
      break;
    case kDecompress:
      put(data[i], 0);
      break;
    default:
      put<uint64_t>(data[i], 0);
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  started();
  Block block;
  if (!value || attribute != kSyncMemops || !find_block(address, &block))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS; // every copy waits here anyway
}

} // namespace api
} // namespace va
