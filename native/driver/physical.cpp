// Physical memory: made, held, shared between processes by file descriptors.
//
// Memory that cannot be exported comes out of one file a region, so that it costs no descriptor.
#include "physical.h"

#include <array>
#include <cstdio>
#include <unordered_map>

#include "driver_api.h"
#include "pools.h"

namespace va {
namespace {

struct Held {
  std::shared_ptr<Physical> physical;
  uint64_t users = 1;
};

struct Holdings {
  std::mutex mutex;
  std::unordered_map<CUmemGenericAllocationHandle, Held> by_handle;
  std::array<std::shared_ptr<SharedFile>, VA_DEVICES + 1> files;
  uint64_t serial = 0;
};

Holdings &holdings() {
  static Holdings *const instance = new Holdings;
  return *instance;
}

CUmemGenericAllocationHandle hold(const std::shared_ptr<Physical> &physical) {
  Holdings &all = holdings();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (!physical->handle)
    physical->handle = static_cast<uint64_t>(Kind::kPhysical) << 52 | ++all.serial << 4;
  const auto [it, fresh] = all.by_handle.try_emplace(physical->handle, Held{physical});
  if (!fresh)
    ++it->second.users;
  return physical->handle;
}

std::shared_ptr<SharedFile> common_file(int region) {
  Holdings &all = holdings();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::shared_ptr<SharedFile> &file = all.files[static_cast<size_t>(region)];
  if (!file)
    file = SharedFile::make("private");
  return file;
}

// What the file of exported memory is called: where it lies, and its size.
std::string export_name(const Physical &physical) {
  char text[64];
  snprintf(text, sizeof text, "memory:%d:%llu", physical.region,
           static_cast<unsigned long long>(physical.bytes));
  return text;
}

void require_properties(const CUmemAllocationProp &p) {
  constexpr unsigned short kTilePool = 1;
  if (p.type != CU_MEM_ALLOCATION_TYPE_PINNED || p.compression_type > 1 || p.usage & ~kTilePool)
    fail(CUDA_ERROR_INVALID_VALUE);
  if (p.requested_handle_types & CU_MEM_HANDLE_TYPE_FABRIC)
    fail(CUDA_ERROR_NOT_SUPPORTED); // an A100 is on no fabric
  if (p.requested_handle_types & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    fail(CUDA_ERROR_INVALID_VALUE); // what remains is Windows'
  if (p.location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
    fail(CUDA_ERROR_INVALID_VALUE);
}

} // namespace

Physical::~Physical() {
  if (!charged)
    return; // another process's
  file->give(offset, bytes);
  va_arena_discharge(region, bytes);
}

int region_of(const CUmemLocation &location) {
  switch (location.type) {
  case CU_MEM_LOCATION_TYPE_DEVICE:
    return device_of(location.id).ordinal;
  case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    if (location.id)
      fail(CUDA_ERROR_INVALID_VALUE); // one node
    return VA_HOST_DEVICE;
  case CU_MEM_LOCATION_TYPE_HOST:
  case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
    return VA_HOST_DEVICE;
  default:
    fail(CUDA_ERROR_INVALID_VALUE);
  }
}

std::shared_ptr<Physical> physical_of(CUmemGenericAllocationHandle handle) {
  Holdings &all = holdings();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto it = all.by_handle.find(handle);
  if (it == all.by_handle.end())
    fail(CUDA_ERROR_INVALID_VALUE);
  return it->second.physical;
}

void retain(const std::shared_ptr<Physical> &physical) { hold(physical); }

namespace api {

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option) {
  started();
  require_properties(*properties);
  region_of(properties->location);
  if (option < 0 || option > 1)
    return CUDA_ERROR_INVALID_VALUE;
  *granularity = VA_VIRTUAL_UNIT;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *properties, uint64_t flags) {
  started();
  if (!bytes || bytes % VA_VIRTUAL_UNIT || flags)
    return CUDA_ERROR_INVALID_VALUE;
  require_properties(*properties);
  auto made = std::make_shared<Physical>();
  made->region = region_of(properties->location);
  made->properties = *properties;
  made->bytes = bytes;
  const bool shared = properties->requested_handle_types != CU_MEM_HANDLE_TYPE_NONE;
  made->file = shared ? SharedFile::make(export_name(*made)) : common_file(made->region);
  if (va_arena_charge(made->region, bytes) &&
      (!empty_pools(made->region) || va_arena_charge(made->region, bytes)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  try {
    made->offset = made->file->take(bytes);
  } catch (...) {
    va_arena_discharge(made->region, bytes);
    throw;
  }
  made->charged = true;
  *handle = hold(made);
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  started();
  Holdings &all = holdings();
  std::shared_ptr<Physical> last; // freed without the lock
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto it = all.by_handle.find(handle);
  if (it == all.by_handle.end())
    return CUDA_ERROR_INVALID_VALUE;
  if (--it->second.users == 0) {
    last = std::move(it->second.physical);
    all.by_handle.erase(it);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address) {
  started();
  const std::shared_ptr<Physical> found = mapped_at(reinterpret_cast<uint64_t>(address));
  if (!found)
    return CUDA_ERROR_INVALID_VALUE;
  *handle = hold(found);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                CUmemGenericAllocationHandle handle) {
  started();
  *properties = physical_of(handle)->properties;
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, uint64_t flags) {
  started();
  const std::shared_ptr<Physical> physical = physical_of(handle);
  if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
      !(physical->properties.requested_handle_types & type))
    return CUDA_ERROR_INVALID_VALUE;
  *static_cast<int *>(out) = physical->file->duplicate();
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *os_handle,
                                        CUmemAllocationHandleType type) {
  started();
  if (type == CU_MEM_HANDLE_TYPE_FABRIC)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_shared<Physical>();
  made->file = SharedFile::adopt(static_cast<int>(reinterpret_cast<intptr_t>(os_handle)));
  unsigned long long bytes = 0;
  if (!made->file ||
      std::sscanf(made->file->name().c_str(), "memory:%d:%llu", &made->region, &bytes) != 2)
    return CUDA_ERROR_INVALID_VALUE;
  made->bytes = bytes;
  made->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  made->properties.requested_handle_types = type;
  made->properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  if (made->region != VA_HOST_DEVICE)
    made->properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_of(made->region).ordinal};
  *handle = hold(made);
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
