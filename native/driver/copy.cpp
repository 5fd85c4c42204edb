// Copies between host and devices, in one, two and three dimensions.
#include <algorithm>
#include <cstring>

#include "board.h"
#include "arrays.h"
#include "blocks.h"
#include "capture.h"
#include "driver_api.h"
#include "fabric.h"
#include "physical.h"
#include "pools.h"
#include "transfers.h"
#include "va100/check.h"
#include "va100/outside.h"

namespace va {
namespace {

// One side of a copy.
struct Side {
  uint64_t address;
  unsigned type; // CU_MEMORYTYPE_*
  uint64_t pitch = 0, height = 0;
  const Array *array = nullptr;
};

int device_holding(uint64_t address) {
  va_allocation found;
  if (is_virtual(address))
    return va_arena_find(address, &found) && found.device < VA_DEVICES ? found.device : -1;
  const int region = static_cast<int>((address - VA_ARENA_BASE) >> VA_DEVICE_SHIFT);
  return in_arena(address) && region < VA_DEVICES ? region : -1;
}

Way way_between(uint64_t to, uint64_t from) {
  const int target = device_holding(to), source = device_holding(from);
  if (target < 0)
    return source < 0 ? Way::kHostToHost : Way::kDeviceToHost;
  if (source < 0)
    return Way::kHostToDevice;
  return target == source ? Way::kWithinDevice : Way::kBetweenDevices;
}

// Host memory of the client's own is not ours to check.
void require_range(const Side &side, uint64_t bytes) {
  if (side.type == CU_MEMORYTYPE_DEVICE || in_arena(side.address))
    require_device_range(side.address, bytes);
  else if (!side.address)
    fail(CUDA_ERROR_INVALID_VALUE);
}

// What passed between two devices, for who counts: over their links, or over PCIe at both ends.
void count_between(int from, int to, bool linked, uint64_t bytes) {
  if (from == to)
    return; // another process's memory, whose device is not one of ours
  if (linked)
    return sent_over_links(from, to, bytes);
  copied_over_pcie(from, 0, bytes);
  copied_over_pcie(to, bytes, 0);
}

void account(Stream &stream, uint64_t to, uint64_t from, uint64_t bytes) {
  const Way way = way_between(to, from);
  const int device = stream.context->device->ordinal;
  if (way != Way::kWithinDevice && way != Way::kBetweenDevices)
    return log_transfer(stream.track, device, bytes, way);
  const int source = device_holding(from), target = device_holding(to);
  const int source_gpu = gpu_holding(from, source), target_gpu = gpu_holding(to, target);
  if (source_gpu == target_gpu)
    return log_transfer(stream.track, device, bytes, Way::kWithinDevice);
  count_between(source, target, va_fabric_links(source_gpu, target_gpu), bytes);
  log_transfer_lasting(stream.track, device, bytes, Way::kBetweenDevices,
                       peer_copy_s(source_gpu, target_gpu, bytes));
}

void use(Side side, unsigned *type, void **host, CUdeviceptr *device) {
  *type = side.type;
  *(side.type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr *>(host) : device) =
      side.address;
}

// A copy of bytes that lie together, as a node holds it.
CUDA_MEMCPY3D boxed(Side to, Side from, uint64_t bytes) {
  CUDA_MEMCPY3D box{};
  use(to, &box.dst_type, &box.dst_host, &box.dst_device);
  use(from, &box.src_type, const_cast<void **>(&box.src_host), &box.src_device);
  box.width = bytes;
  box.height = box.depth = 1;
  return box;
}

// Whether a copy is a node's from now on; one that the host would wait for cannot be.
bool is_captured(Stream &stream, const CUDA_MEMCPY3D &box, bool wait) {
  if (wait) {
    require_wait_allowed(stream);
    require_unsafe_allowed();
  }
  if (!in_capture(stream))
    return false;
  capture(stream, CopyWork{box, stream.context->handle});
  return true;
}

// Copies between peers may go through the host, and ask no pool.
enum class Between { kAny, kPeers };

CUresult copy(Side to, Side from, uint64_t bytes, CUstream handle, bool wait,
              Between between = Between::kAny) {
  const Context &context = healthy_context();
  Stream &stream = stream_of(handle);
  if (!bytes)
    return CUDA_SUCCESS;
  require_range(to, bytes);
  require_range(from, bytes);
  if (between == Between::kAny) {
    require_granted(*context.device, to.address);
    require_granted(*context.device, from.address);
  }
  if (capturing_anywhere() && is_captured(stream, boxed(to, from, bytes), wait))
    return CUDA_SUCCESS;
  {
    const std::lock_guard<std::recursive_mutex> lock(stream.order);
    std::memmove(reinterpret_cast<void *>(to.address), reinterpret_cast<void *>(from.address),
                 bytes);
    va_check_copied(to.address, from.address, bytes);
  }
  account(stream, to.address, from.address, bytes);
  if (wait) {
    log_join(stream.track);
    flush_device_output();
  }
  return CUDA_SUCCESS;
}

Side device(CUdeviceptr address) { return {address, CU_MEMORYTYPE_DEVICE}; }
Side host(const void *pointer) { return {reinterpret_cast<uint64_t>(pointer), CU_MEMORYTYPE_HOST}; }
Side unified(CUdeviceptr address) { return {address, CU_MEMORYTYPE_UNIFIED}; }

Side array_side(CUarray handle) {
  const Array &array = array_of(handle, CUDA_ERROR_INVALID_VALUE);
  return {array.base, CU_MEMORYTYPE_DEVICE, array.pitch, array.rows(), &array};
}

Side side_of(unsigned type, const void *host_pointer, CUdeviceptr address, CUarray array,
             uint64_t pitch, uint64_t height) {
  if (type == CU_MEMORYTYPE_ARRAY)
    return array_side(array);
  Side side{address, type, pitch, height};
  if (type == CU_MEMORYTYPE_HOST)
    side.address = reinterpret_cast<uint64_t>(host_pointer);
  else if (type < CU_MEMORYTYPE_HOST || type > CU_MEMORYTYPE_UNIFIED)
    fail(CUDA_ERROR_INVALID_VALUE);
  return side;
}

// A box lies within an array, in whole texels.
void require_inside(const Array &array, uint64_t x, uint64_t y, uint64_t z,
                    const CUDA_MEMCPY3D &c) {
  const auto within = [](uint64_t first, uint64_t count, uint64_t extent) {
    return first <= extent && count <= extent - first;
  };
  if (!within(x, c.width, array.row_bytes()) || !within(y, c.height, array.rows()) ||
      !within(z, c.depth, array.slices()) || x % array.texel_bytes || c.width % array.texel_bytes)
    fail(CUDA_ERROR_INVALID_VALUE);
}

// Where a side's first byte is, after its bounds are checked.
uint64_t first_byte(Side side, uint64_t x, uint64_t y, uint64_t z, const CUDA_MEMCPY3D &c) {
  if (side.array)
    require_inside(*side.array, x, y, z, c);
  const uint64_t slice = side.pitch * side.height;
  side.address += z * slice + y * side.pitch + x;
  const uint64_t span = (c.depth - 1) * slice + (c.height - 1) * side.pitch + c.width;
  require_range(side, span);
  return side.address;
}

void complete(Side *side, const CUDA_MEMCPY3D &c, uint64_t x, uint64_t y) {
  if (side->array)
    return;
  if (!side->pitch && c.height == 1 && c.depth == 1)
    side->pitch = x + c.width;
  if (!side->height)
    side->height = c.depth == 1 ? y + c.height : 0;
  if (side->pitch < x + c.width || (c.depth > 1 && side->height < c.height))
    fail(CUDA_ERROR_INVALID_VALUE);
}

// Both sides of a copy of a box, and where each one's first byte is.
struct Box {
  Side to, from;
  uint64_t target, source;
};

Box placed(const CUDA_MEMCPY3D &c) {
  Side from = side_of(c.src_type, c.src_host, c.src_device, c.src_array, c.src_pitch, c.src_height);
  Side to = side_of(c.dst_type, c.dst_host, c.dst_device, c.dst_array, c.dst_pitch, c.dst_height);
  complete(&from, c, c.src_x, c.src_y);
  complete(&to, c, c.dst_x, c.dst_y);
  return {to, from, first_byte(to, c.dst_x, c.dst_y, c.dst_z, c),
          first_byte(from, c.src_x, c.src_y, c.src_z, c)};
}

CUresult copy_box(const CUDA_MEMCPY3D &c, CUstream handle, bool wait,
                  Between between = Between::kAny) {
  const Context &context = healthy_context();
  Stream &stream = stream_of(handle);
  if (between == Between::kAny && c.width && c.height && c.depth) {
    const Box box = placed(c);
    require_granted(*context.device, box.target);
    require_granted(*context.device, box.source);
  }
  if (capturing_anywhere()) {
    require_copy(c);
    if (is_captured(stream, c, wait))
      return CUDA_SUCCESS;
  }
  run_copy(stream, c);
  if (wait && c.width && c.height && c.depth) {
    log_join(stream.track);
    flush_device_output();
  }
  return CUDA_SUCCESS;
}

// Bytes of a run that lie together from an offset on: to the end of the row, in an array.
uint64_t piece_of(const Side &side, uint64_t offset, uint64_t bytes) {
  if (!side.array)
    return bytes;
  return std::min(bytes, side.array->row_bytes() - offset % side.array->row_bytes());
}

uint64_t byte_at(const Side &side, uint64_t offset) {
  if (!side.array)
    return side.address + offset;
  const uint64_t row = side.array->row_bytes();
  return side.address + offset / row * side.pitch + offset % row;
}

// The box of a run within one row of each side, as a node holds it.
CUDA_MEMCPY3D boxed_run(const Side &to, uint64_t to_offset, const Side &from,
                        uint64_t from_offset, uint64_t bytes) {
  if (piece_of(to, to_offset, bytes) < bytes || piece_of(from, from_offset, bytes) < bytes)
    fail(CUDA_ERROR_NOT_SUPPORTED);
  CUDA_MEMCPY3D box = boxed(to, from, bytes);
  if (to.array) {
    box.dst_type = CU_MEMORYTYPE_ARRAY;
    box.dst_array = to.array->handle;
    box.dst_x = to_offset % to.array->row_bytes();
    box.dst_y = to_offset / to.array->row_bytes();
  }
  if (from.array) {
    box.src_type = CU_MEMORYTYPE_ARRAY;
    box.src_array = from.array->handle;
    box.src_x = from_offset % from.array->row_bytes();
    box.src_y = from_offset / from.array->row_bytes();
  }
  return box;
}

// Bytes one after another, which in an array are its rows one after another.
CUresult copy_run(const Side &to, uint64_t to_offset, const Side &from, uint64_t from_offset,
                  uint64_t bytes, CUstream handle, bool wait) {
  const Context &context = healthy_context();
  Stream &stream = stream_of(handle);
  const std::pair<const Side *, uint64_t> sides[] = {{&to, to_offset}, {&from, from_offset}};
  for (const auto &[side, offset] : sides) {
    if (!side->array)
      require_range(*side, bytes);
    else if (offset > side->array->bytes() || bytes > side->array->bytes() - offset ||
             offset % side->array->texel_bytes || bytes % side->array->texel_bytes)
      fail(CUDA_ERROR_INVALID_VALUE);
  }
  require_granted(*context.device, to.address);
  require_granted(*context.device, from.address);
  if (capturing_anywhere() &&
      is_captured(stream, boxed_run(to, to_offset, from, from_offset, bytes), wait))
    return CUDA_SUCCESS;
  {
    const std::lock_guard<std::recursive_mutex> lock(stream.order);
    for (uint64_t done = 0; done < bytes;) {
      const uint64_t piece = std::min(piece_of(to, to_offset + done, bytes - done),
                                      piece_of(from, from_offset + done, bytes - done));
      const uint64_t there = byte_at(to, to_offset + done);
      const uint64_t here = byte_at(from, from_offset + done);
      std::memmove(reinterpret_cast<void *>(there), reinterpret_cast<void *>(here), piece);
      va_check_copied(there, here, piece);
      done += piece;
    }
  }
  account(stream, to.address, from.address, bytes);
  if (wait) {
    log_join(stream.track);
    flush_device_output();
  }
  return CUDA_SUCCESS;
}

CUDA_MEMCPY3D lifted(const CUDA_MEMCPY2D &c) {
  CUDA_MEMCPY3D box{};
  box.src_x = c.src_x;
  box.src_y = c.src_y;
  box.src_type = c.src_type;
  box.src_host = c.src_host;
  box.src_device = c.src_device;
  box.src_array = c.src_array;
  box.src_pitch = c.src_pitch;
  box.dst_x = c.dst_x;
  box.dst_y = c.dst_y;
  box.dst_type = c.dst_type;
  box.dst_host = c.dst_host;
  box.dst_device = c.dst_device;
  box.dst_array = c.dst_array;
  box.dst_pitch = c.dst_pitch;
  box.width = c.width;
  box.height = c.height;
  box.depth = 1;
  return box;
}

} // namespace

void require_copy(const CUDA_MEMCPY3D &c) {
  if (c.width && c.height && c.depth)
    placed(c);
}

void run_copy(Stream &stream, const CUDA_MEMCPY3D &c) {
  if (!c.width || !c.height || !c.depth)
    return;
  const Box box = placed(c);
  {
    const std::lock_guard<std::recursive_mutex> lock(stream.order);
    for (uint64_t z = 0; z < c.depth; ++z)
      for (uint64_t y = 0; y < c.height; ++y) {
        const uint64_t there = box.target + (z * box.to.height + y) * box.to.pitch;
        const uint64_t here = box.source + (z * box.from.height + y) * box.from.pitch;
        std::memmove(reinterpret_cast<void *>(there), reinterpret_cast<void *>(here), c.width);
        va_check_copied(there, here, c.width);
      }
  }
  account(stream, box.target, box.source, c.width * c.height * c.depth);
}

namespace api {

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(unified(to), unified(from), bytes, nullptr, true);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(unified(to), unified(from), bytes, stream, false);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
  return copy(device(to), host(from), bytes, nullptr, true);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  return copy(device(to), host(from), bytes, stream, false);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  return copy(host(to), device(from), bytes, nullptr, true);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(host(to), device(from), bytes, stream, false);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(device(to), device(from), bytes, nullptr, false);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(device(to), device(from), bytes, stream, false);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, size_t bytes, CUstream stream) {
  context_of(to_context);
  context_of(from_context);
  return copy(device(to), device(from), bytes, stream, false, Between::kPeers);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                      CUcontext from_context, size_t bytes) {
  return cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, nullptr);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *c) { return copy_box(lifted(*c), nullptr, true); }

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *c) {
  return copy_box(lifted(*c), nullptr, true);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream) {
  return copy_box(lifted(*c), stream, false);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *c) { return copy_box(*c, nullptr, true); }

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *c, CUstream stream) {
  return copy_box(*c, stream, false);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *c) {
  return copy_box(*c, nullptr, true, Between::kPeers);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *c, CUstream stream) {
  return copy_box(*c, stream, false, Between::kPeers);
}

CUresult cuMemcpyHtoA_v2(CUarray to, size_t offset, const void *from, size_t bytes) {
  return copy_run(array_side(to), offset, host(from), 0, bytes, nullptr, true);
}

CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t offset, const void *from, size_t bytes,
                              CUstream stream) {
  return copy_run(array_side(to), offset, host(from), 0, bytes, stream, false);
}

CUresult cuMemcpyAtoH_v2(void *to, CUarray from, size_t offset, size_t bytes) {
  return copy_run(host(to), 0, array_side(from), offset, bytes, nullptr, true);
}

CUresult cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t offset, size_t bytes,
                              CUstream stream) {
  return copy_run(host(to), 0, array_side(from), offset, bytes, stream, false);
}

CUresult cuMemcpyDtoA_v2(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
  return copy_run(array_side(to), offset, device(from), 0, bytes, nullptr, false);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
  return copy_run(device(to), 0, array_side(from), offset, bytes, nullptr, false);
}

CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_offset, CUarray from, size_t from_offset,
                         size_t bytes) {
  return copy_run(array_side(to), to_offset, array_side(from), from_offset, bytes, nullptr,
                  false);
}

} // namespace api
} // namespace va
