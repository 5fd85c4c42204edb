// Memory and events of one process in another, by handles of 64 bytes.
//
// An allocation that is exported moves into a file in memory; its handle says where the exporter
// has that file open.  So the exporter has to live when a handle is opened, as on the card, and
// nothing is left behind whichever process dies.  The processes have to be the same user's.
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

#include "driver_api.h"
#include "fabric.h"
#include "physical.h"
#include "va100/outside.h"

namespace va {
namespace {

constexpr uint64_t kMemoryMagic = 0x4D43504930303161; // "a100IPCM"
constexpr uint64_t kEventMagic = 0x4543504930303161;
constexpr unsigned kLazyPeerAccess = 1;
constexpr unsigned kDisableTiming = 2, kInterprocess = 4;

struct MemoryHandle {
  uint64_t magic;
  int32_t process, fd;
  uint64_t inode, offset, bytes;
  int32_t device, gpu; // as the exporter numbers it, and by place in the node
};

struct EventHandle {
  uint64_t magic;
  int32_t process;
  uint32_t flags;
  uint64_t id;
};

static_assert(sizeof(MemoryHandle) <= sizeof(CUipcMemHandle), "a handle's room");

template <typename Content, typename Handle> Handle packed(const Content &content) {
  Handle handle{};
  std::memcpy(handle.bytes, &content, sizeof content);
  return handle;
}

template <typename Content, typename Handle> Content unpacked(const Handle &handle) {
  Content content{};
  std::memcpy(&content, handle.bytes, sizeof content);
  return content;
}

uint64_t inode_of(int fd) {
  struct stat status;
  return fstat(fd, &status) ? 0 : static_cast<uint64_t>(status.st_ino);
}

// The file of a handle, opened anew; null when its process is gone, or has another file there.
std::shared_ptr<SharedFile> file_of(const MemoryHandle &handle) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.process, handle.fd);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0)
    return nullptr;
  std::shared_ptr<SharedFile> file;
  if (inode_of(fd) == handle.inode)
    file = SharedFile::adopt(fd);
  close(fd);
  return file && file->holds(handle.offset, handle.bytes) ? file : nullptr;
}

// What is open already: a context opens an allocation once, and counts.
using OpenKey = std::tuple<CUcontext, uint64_t, uint64_t>; // context, file, offset

struct Opened {
  uint64_t address = 0, users = 0;
};

struct OpenHandles {
  std::mutex mutex;
  std::map<OpenKey, Opened> by_key;
};

OpenHandles &open_handles() {
  static OpenHandles *const instance = new OpenHandles;
  return *instance;
}

// Destroying a context closes what it opened without telling.
bool is_open(const Opened &opened, const OpenKey &key) {
  Block block;
  return opened.users && find_block(opened.address, &block) && block.origin == Origin::kImported &&
         block.context == std::get<0>(key) && block.offset == std::get<2>(key);
}

CUresult open_memory(CUdeviceptr *address, const CUipcMemHandle &packed_handle, unsigned flags) {
  Context &context = healthy_context();
  const auto handle = unpacked<MemoryHandle>(packed_handle);
  if (flags != kLazyPeerAccess)
    return CUDA_ERROR_INVALID_VALUE;
  if (handle.magic != kMemoryMagic || !handle.bytes)
    return CUDA_ERROR_INVALID_HANDLE;
  if (handle.process == getpid())
    return CUDA_ERROR_INVALID_CONTEXT; // it has the memory already
  const OpenKey key{context.handle, handle.inode, handle.offset};
  OpenHandles &all = open_handles();
  const std::lock_guard<std::mutex> lock(all.mutex);
  Opened &opened = all.by_key[key];
  if (!is_open(opened, key)) {
    const std::shared_ptr<SharedFile> file = file_of(handle);
    if (!file) {
      all.by_key.erase(key);
      return CUDA_ERROR_INVALID_HANDLE;
    }
    opened = {import_piece(context, handle.bytes, file, handle.offset), 0};
    note_foreign(opened.address, handle.bytes, handle.gpu);
  }
  ++opened.users;
  *address = opened.address;
  return CUDA_SUCCESS;
}

} // namespace

namespace api {

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address) {
  healthy_context();
  Block block;
  if (!find_block(address, &block) || block.origin != Origin::kDevice || block.pool || !block.id)
    return CUDA_ERROR_INVALID_VALUE;
  MemoryHandle content{kMemoryMagic, getpid(), -1, 0, 0, block.bytes, block.device,
                       va_fabric_gpu(block.device)};
  if (va_arena_share(block.base, &content.fd, &content.offset))
    return CUDA_ERROR_OUT_OF_MEMORY;
  content.inode = inode_of(content.fd);
  *handle = packed<MemoryHandle, CUipcMemHandle>(content);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags) {
  return open_memory(address, handle, flags);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags) {
  return open_memory(address, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  current_context();
  OpenHandles &all = open_handles();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (auto it = all.by_key.begin(); it != all.by_key.end(); ++it) {
    if (it->second.address != address || !is_open(it->second, it->first))
      continue;
    if (--it->second.users == 0) {
      all.by_key.erase(it);
      flush_device_output();
      release_import(address);
    }
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event_handle) {
  const Event &event = event_of(event_handle);
  if (!(event.flags & kInterprocess))
    return CUDA_ERROR_INVALID_HANDLE;
  const EventHandle content{kEventMagic, getpid(), event.flags,
                            reinterpret_cast<uint64_t>(event_handle)};
  *handle = packed<EventHandle, CUipcEventHandle>(content);
  return CUDA_SUCCESS;
}

// Work is done when the call that records an event returns, so another process that hears of the
// event has nothing to wait for: it gets an event of its own.
CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle) {
  healthy_context();
  const auto content = unpacked<EventHandle>(handle);
  if (content.magic != kEventMagic)
    return CUDA_ERROR_INVALID_HANDLE;
  if (content.process == getpid())
    return CUDA_ERROR_INVALID_CONTEXT;
  return cuEventCreate(event, kDisableTiming | kInterprocess | (content.flags & 1));
}

} // namespace api
} // namespace va
