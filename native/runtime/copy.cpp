// Copies and fills of the runtime.
#include <algorithm>
#include <cstring>

#include "runtime_api.h"
#include "runtime_entry.h"

namespace va::rt {
namespace {

CUdeviceptr address(const void *pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// The driver's memory type of each side, by the direction the caller names.
unsigned source_type(cudaMemcpyKind kind) {
  if (kind < kHostToHost || kind > kDefault)
    fail(cudaErrorInvalidMemcpyDirection);
  if (kind == kHostToDevice)
    return CU_MEMORYTYPE_HOST;
  return kind == kDeviceToHost || kind == kDeviceToDevice ? CU_MEMORYTYPE_DEVICE
                                                          : CU_MEMORYTYPE_UNIFIED;
}

unsigned target_type(cudaMemcpyKind kind) {
  if (kind < kHostToHost || kind > kDefault)
    fail(cudaErrorInvalidMemcpyDirection);
  if (kind == kDeviceToHost)
    return CU_MEMORYTYPE_HOST;
  return kind == kHostToDevice || kind == kDeviceToDevice ? CU_MEMORYTYPE_DEVICE
                                                          : CU_MEMORYTYPE_UNIFIED;
}

CUresult copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, CUstream s) {
  switch (kind) {
  case kHostToDevice:
    return cuMemcpyHtoDAsync_v2(address(to), from, bytes, s);
  case kDeviceToHost:
    return cuMemcpyDtoHAsync_v2(to, address(from), bytes, s);
  case kDeviceToDevice:
    return cuMemcpyDtoDAsync_v2(address(to), address(from), bytes, s);
  case kHostToHost:
  case kDefault:
    return cuMemcpyAsync(address(to), address(from), bytes, s);
  default:
    fail(cudaErrorInvalidMemcpyDirection);
  }
}

// Copies that wait: all but those within a device.
cudaError_t wait_unless_within(cudaMemcpyKind kind, CUresult result, CUstream s) {
  if (result == CUDA_SUCCESS && kind != kDeviceToDevice)
    result = cuStreamSynchronize(s);
  return from_driver(result);
}

CUDA_MEMCPY2D rectangle(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                        size_t width, size_t height, cudaMemcpyKind kind) {
  CUDA_MEMCPY2D c{};
  c.src_type = source_type(kind);
  c.src_host = from;
  c.src_device = address(from);
  c.src_pitch = from_pitch;
  c.dst_type = target_type(kind);
  c.dst_host = to;
  c.dst_device = address(to);
  c.dst_pitch = to_pitch;
  c.width = width;
  c.height = height;
  return c;
}

// One side of each kind, no more and no less.
void require_one(CUarray array, const cudaPitchedPtr &pointer) {
  if (!array == !pointer.ptr)
    fail(cudaErrorInvalidValue);
}

// Where an array takes part, widths and its own offsets count texels.
void use_arrays(const cudaMemcpy3DParms &p, CUDA_MEMCPY3D *c) {
  require_one(p.src_array, p.src);
  require_one(p.dst_array, p.dst);
  size_t texel = 1;
  if (p.src_array) {
    texel = texel_bytes_of(p.src_array);
    c->src_x *= texel;
    c->src_type = CU_MEMORYTYPE_ARRAY;
    c->src_array = p.src_array;
  }
  if (p.dst_array) {
    const size_t own = texel_bytes_of(p.dst_array);
    if (p.src_array && own != texel)
      fail(cudaErrorInvalidValue);
    texel = own;
    c->dst_x *= texel;
    c->dst_type = CU_MEMORYTYPE_ARRAY;
    c->dst_array = p.dst_array;
  }
  c->width *= texel;
}

CUDA_MEMCPY3D box(const cudaMemcpy3DParms &p) {
  CUDA_MEMCPY3D c{};
  c.src_x = p.src_pos.x;
  c.src_y = p.src_pos.y;
  c.src_z = p.src_pos.z;
  c.src_type = source_type(p.kind);
  c.src_host = p.src.ptr;
  c.src_device = address(p.src.ptr);
  c.src_pitch = p.src.pitch;
  c.src_height = p.src.ysize;
  c.dst_x = p.dst_pos.x;
  c.dst_y = p.dst_pos.y;
  c.dst_z = p.dst_pos.z;
  c.dst_type = target_type(p.kind);
  c.dst_host = p.dst.ptr;
  c.dst_device = address(p.dst.ptr);
  c.dst_pitch = p.dst.pitch;
  c.dst_height = p.dst.ysize;
  c.width = p.extent.width;
  c.height = p.extent.height;
  c.depth = p.extent.depth;
  if (p.src_array || p.dst_array)
    use_arrays(p, &c);
  return c;
}

// A piece of a variable, which must lie inside it.
CUdeviceptr piece_of(const void *symbol, size_t bytes, size_t offset) {
  size_t size = 0;
  const CUdeviceptr base = variable_of(symbol, &size);
  if (offset > size || bytes > size - offset)
    fail(cudaErrorInvalidValue);
  return base + offset;
}

void require_to_symbol(cudaMemcpyKind kind) {
  if (kind != kHostToDevice && kind != kDeviceToDevice && kind != kDefault)
    fail(cudaErrorInvalidMemcpyDirection);
}

void require_from_symbol(cudaMemcpyKind kind) {
  if (kind != kDeviceToHost && kind != kDeviceToDevice && kind != kDefault)
    fail(cudaErrorInvalidMemcpyDirection);
}

CUresult to_symbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                   cudaMemcpyKind kind, CUstream s) {
  require_to_symbol(kind);
  return copy(reinterpret_cast<void *>(piece_of(symbol, bytes, offset)), from, bytes, kind, s);
}

CUresult from_symbol(void *to, const void *symbol, size_t bytes, size_t offset,
                     cudaMemcpyKind kind, CUstream s) {
  require_from_symbol(kind);
  return copy(to, reinterpret_cast<void *>(piece_of(symbol, bytes, offset)), bytes, kind, s);
}

CUresult fill_box(const cudaPitchedPtr &p, int value, const cudaExtent &e, CUstream s) {
  if (e.height == p.ysize || e.depth == 1)
    return cuMemsetD2D8Async(address(p.ptr), p.pitch, static_cast<unsigned char>(value), e.width,
                             e.height * e.depth, s);
  for (size_t z = 0; z < e.depth; ++z)
    check(cuMemsetD2D8Async(address(p.ptr) + z * p.pitch * p.ysize, p.pitch,
                            static_cast<unsigned char>(value), e.width, e.height, s));
  return CUDA_SUCCESS;
}

// What the runtime knows one side of a copy by.
cudaPitchedPtr pitched(unsigned type, const void *host, CUdeviceptr device, size_t pitch,
                       size_t height) {
  void *const pointer = type == CU_MEMORYTYPE_HOST ? const_cast<void *>(host)
                                                   : reinterpret_cast<void *>(device);
  return {type == CU_MEMORYTYPE_ARRAY ? nullptr : pointer, pitch, 0, height};
}

cudaMemcpyKind kind_of(unsigned to, unsigned from) {
  if (to == CU_MEMORYTYPE_UNIFIED || from == CU_MEMORYTYPE_UNIFIED)
    return kDefault;
  if (to == CU_MEMORYTYPE_HOST)
    return from == CU_MEMORYTYPE_HOST ? kHostToHost : kDeviceToHost;
  return from == CU_MEMORYTYPE_HOST ? kHostToDevice : kDeviceToDevice;
}

} // namespace

CUDA_MEMCPY3D node_copy(const cudaMemcpy3DParms &parameters) { return box(parameters); }

CUDA_MEMCPY3D node_copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  CUDA_MEMCPY3D c{};
  c.src_type = source_type(kind);
  c.src_host = from;
  c.src_device = address(from);
  c.dst_type = target_type(kind);
  c.dst_host = to;
  c.dst_device = address(to);
  c.width = bytes;
  c.height = c.depth = 1;
  return c;
}

CUDA_MEMCPY3D node_copy_to_symbol(const void *symbol, const void *from, size_t bytes,
                                  size_t offset, cudaMemcpyKind kind) {
  require_to_symbol(kind);
  return node_copy(reinterpret_cast<void *>(piece_of(symbol, bytes, offset)), from, bytes, kind);
}

CUDA_MEMCPY3D node_copy_from_symbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind) {
  require_from_symbol(kind);
  return node_copy(to, reinterpret_cast<void *>(piece_of(symbol, bytes, offset)), bytes, kind);
}

cudaMemcpy3DParms runtime_copy(const CUDA_MEMCPY3D &c) {
  cudaMemcpy3DParms p{};
  p.src = pitched(c.src_type, c.src_host, c.src_device, c.src_pitch, c.src_height);
  p.dst = pitched(c.dst_type, c.dst_host, c.dst_device, c.dst_pitch, c.dst_height);
  p.src_array = c.src_type == CU_MEMORYTYPE_ARRAY ? c.src_array : nullptr;
  p.dst_array = c.dst_type == CU_MEMORYTYPE_ARRAY ? c.dst_array : nullptr;
  const size_t from = p.src_array ? texel_bytes_of(p.src_array) : 1;
  const size_t to = p.dst_array ? texel_bytes_of(p.dst_array) : 1;
  p.src_pos = {c.src_x / from, c.src_y, c.src_z};
  p.dst_pos = {c.dst_x / to, c.dst_y, c.dst_z};
  p.extent = {c.width / std::max(from, to), c.height, c.depth};
  p.kind = kind_of(c.dst_type, c.src_type);
  return p;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  enter();
  return wait_unless_within(kind, copy(to, from, bytes, kind, stream(nullptr)), stream(nullptr));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t handle) {
  enter();
  return from_driver(copy(to, from, bytes, kind, stream(handle)));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t handle) {
  enter();
  const CUDA_MEMCPY2D c = rectangle(to, to_pitch, from, from_pitch, width, height, kind);
  return from_driver(cuMemcpy2DAsync_v2(&c, stream(handle)));
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  enter();
  const CUDA_MEMCPY2D c = rectangle(to, to_pitch, from, from_pitch, width, height, kind);
  const CUstream s = stream(nullptr);
  return wait_unless_within(kind, cuMemcpy2DAsync_v2(&c, s), s);
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *parameters, cudaStream_t handle) {
  enter();
  const CUDA_MEMCPY3D c = box(*parameters);
  return from_driver(cuMemcpy3DAsync_v2(&c, stream(handle)));
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *parameters) {
  enter();
  const CUDA_MEMCPY3D c = box(*parameters);
  const CUstream s = stream(nullptr);
  return wait_unless_within(parameters->kind, cuMemcpy3DAsync_v2(&c, s), s);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t handle) {
  enter();
  int count = 0;
  check(cuDeviceGetCount(&count));
  if (to_device < 0 || to_device >= count || from_device < 0 || from_device >= count)
    return cudaErrorInvalidDevice;
  return from_driver(cuMemcpyDtoDAsync_v2(address(to), address(from), bytes, stream(handle)));
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
                           size_t bytes) {
  return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, nullptr);
}

cudaError_t cudaGetSymbolAddress(void **pointer, const void *symbol) {
  *pointer = reinterpret_cast<void *>(variable_of(symbol, nullptr));
  return cudaSuccess;
}

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol) {
  variable_of(symbol, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  enter();
  const CUstream s = stream(nullptr);
  return wait_unless_within(kind, to_symbol(symbol, from, bytes, offset, kind, s), s);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes,
                                    size_t offset, cudaMemcpyKind kind, cudaStream_t handle) {
  enter();
  return from_driver(to_symbol(symbol, from, bytes, offset, kind, stream(handle)));
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
  enter();
  const CUstream s = stream(nullptr);
  return wait_unless_within(kind, from_symbol(to, symbol, bytes, offset, kind, s), s);
}

cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t handle) {
  enter();
  return from_driver(from_symbol(to, symbol, bytes, offset, kind, stream(handle)));
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t handle) {
  enter();
  return from_driver(cuMemsetD8Async(address(pointer), static_cast<unsigned char>(value), bytes,
                                     stream(handle)));
}

cudaError_t cudaMemset(void *pointer, int value, size_t bytes) {
  return cudaMemsetAsync(pointer, value, bytes, nullptr);
}

cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t handle) {
  enter();
  return from_driver(cuMemsetD2D8Async(address(pointer), pitch, static_cast<unsigned char>(value),
                                       width, height, stream(handle)));
}

cudaError_t cudaMemset2D(void *pointer, size_t pitch, int value, size_t width, size_t height) {
  return cudaMemset2DAsync(pointer, pitch, value, width, height, nullptr);
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr pitched, int value, cudaExtent extent,
                              cudaStream_t handle) {
  enter();
  return from_driver(fill_box(pitched, value, extent, stream(handle)));
}

cudaError_t cudaMemset3D(cudaPitchedPtr pitched, int value, cudaExtent extent) {
  return cudaMemset3DAsync(pitched, value, extent, nullptr);
}

} // namespace va::rt
