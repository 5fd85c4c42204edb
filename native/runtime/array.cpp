// Arrays of the runtime, and textures and surfaces made from them.
#include <cstring>

#include "runtime_api.h"
#include "runtime_entry.h"

namespace va::rt {
namespace {

enum Format { kU8 = 0x01, kU16 = 0x02, kU32 = 0x03, kS8 = 0x08, kS16 = 0x09, kS32 = 0x0a,
              kF16 = 0x10, kF32 = 0x20 };

struct Texel {
  unsigned format, channels;
};

// What the driver calls a channel description.
Texel texel_of(const cudaChannelFormatDesc &desc) {
  unsigned channels = 0;
  while (channels < 4 && desc.bits[channels])
    ++channels;
  bool legal = channels == 1 || channels == 2 || channels == 4;
  for (unsigned c = 0; c < 4; ++c)
    legal = legal && desc.bits[c] == (c < channels ? desc.bits[0] : 0);
  const int bits = desc.bits[0];
  if (!legal || desc.kind < kChannelSigned)
    fail(cudaErrorInvalidChannelDescriptor);
  if (desc.kind > kChannelFloat)
    fail(cudaErrorNotSupported); // compressed and planar ones
  if (desc.kind == kChannelFloat && (bits == 16 || bits == 32))
    return {static_cast<unsigned>(bits == 16 ? kF16 : kF32), channels};
  const bool is_signed = desc.kind == kChannelSigned;
  if (desc.kind != kChannelFloat && bits == 8)
    return {static_cast<unsigned>(is_signed ? kS8 : kU8), channels};
  if (desc.kind != kChannelFloat && bits == 16)
    return {static_cast<unsigned>(is_signed ? kS16 : kU16), channels};
  if (desc.kind != kChannelFloat && bits == 32)
    return {static_cast<unsigned>(is_signed ? kS32 : kU32), channels};
  fail(cudaErrorInvalidChannelDescriptor);
}

int bits_of(unsigned format) {
  if (format == kU8 || format == kS8)
    return 8;
  return format == kU16 || format == kS16 || format == kF16 ? 16 : 32;
}

cudaChannelFormatDesc channels_of(unsigned format, unsigned channels) {
  cudaChannelFormatDesc desc{};
  for (unsigned c = 0; c < channels; ++c)
    desc.bits[c] = bits_of(format);
  desc.kind = format == kF16 || format == kF32                     ? kChannelFloat
              : format == kS8 || format == kS16 || format == kS32 ? kChannelSigned
                                                                  : kChannelUnsigned;
  return desc;
}

CUDA_ARRAY3D_DESCRIPTOR shape_of(CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  check(cuArray3DGetDescriptor_v2(&shape, array));
  return shape;
}

size_t row_bytes(CUarray array) {
  const CUDA_ARRAY3D_DESCRIPTOR shape = shape_of(array);
  return shape.width * shape.channels * static_cast<size_t>(bits_of(shape.format)) / 8;
}

CUdeviceptr address(const void *pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

CUDA_RESOURCE_DESC to_driver(const cudaResourceDesc &from) {
  CUDA_RESOURCE_DESC to{};
  to.type = from.type;
  if (from.type == CU_RESOURCE_TYPE_LINEAR) {
    const Texel texel = texel_of(from.linear.channels);
    to.linear.address = address(from.linear.pointer);
    to.linear.format = texel.format;
    to.linear.channels = texel.channels;
    to.linear.bytes = from.linear.bytes;
  } else if (from.type == CU_RESOURCE_TYPE_PITCH2D) {
    const Texel texel = texel_of(from.pitched.channels);
    to.pitched.address = address(from.pitched.pointer);
    to.pitched.format = texel.format;
    to.pitched.channels = texel.channels;
    to.pitched.width = from.pitched.width;
    to.pitched.height = from.pitched.height;
    to.pitched.pitch = from.pitched.pitch;
  } else {
    to.array = from.array;
  }
  return to;
}

cudaResourceDesc to_runtime(const CUDA_RESOURCE_DESC &from) {
  cudaResourceDesc to;
  std::memset(&to, 0, sizeof to);
  to.type = from.type;
  if (from.type == CU_RESOURCE_TYPE_LINEAR) {
    to.linear.pointer = reinterpret_cast<void *>(from.linear.address);
    to.linear.channels = channels_of(from.linear.format, from.linear.channels);
    to.linear.bytes = from.linear.bytes;
  } else if (from.type == CU_RESOURCE_TYPE_PITCH2D) {
    to.pitched.pointer = reinterpret_cast<void *>(from.pitched.address);
    to.pitched.channels = channels_of(from.pitched.format, from.pitched.channels);
    to.pitched.width = from.pitched.width;
    to.pitched.height = from.pitched.height;
    to.pitched.pitch = from.pitched.pitch;
  } else {
    to.array = from.array;
  }
  return to;
}

CUDA_TEXTURE_DESC to_driver(const cudaTextureDesc &from) {
  CUDA_TEXTURE_DESC to{};
  std::memcpy(to.address, from.address, sizeof to.address);
  to.filter = from.filter;
  const auto flag = [](int set, unsigned bit) { return set ? bit : 0u; };
  to.flags = flag(!from.read_normalized, CU_TRSF_READ_AS_INTEGER) |
             flag(from.normalized, CU_TRSF_NORMALIZED_COORDINATES) |
             flag(from.srgb, CU_TRSF_SRGB) |
             flag(from.no_trilinear_optimization, CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) |
             flag(from.seamless_cubemap, CU_TRSF_SEAMLESS_CUBEMAP);
  to.max_anisotropy = from.max_anisotropy;
  to.mipmap_filter = from.mipmap_filter;
  to.mipmap_bias = from.mipmap_bias;
  to.mipmap_least = from.mipmap_least;
  to.mipmap_most = from.mipmap_most;
  std::memcpy(to.border, from.border, sizeof to.border);
  return to;
}

cudaTextureDesc to_runtime(const CUDA_TEXTURE_DESC &from) {
  cudaTextureDesc to{};
  std::memcpy(to.address, from.address, sizeof to.address);
  to.filter = from.filter;
  to.read_normalized = !(from.flags & CU_TRSF_READ_AS_INTEGER);
  to.normalized = (from.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  to.srgb = (from.flags & CU_TRSF_SRGB) != 0;
  to.no_trilinear_optimization = (from.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0;
  to.seamless_cubemap = (from.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
  to.max_anisotropy = from.max_anisotropy;
  to.mipmap_filter = from.mipmap_filter;
  to.mipmap_bias = from.mipmap_bias;
  to.mipmap_least = from.mipmap_least;
  to.mipmap_most = from.mipmap_most;
  std::memcpy(to.border, from.border, sizeof to.border);
  return to;
}

// ------------------------------------------------------------------ copies

unsigned memory_type(cudaMemcpyKind kind, cudaMemcpyKind host, cudaMemcpyKind device) {
  if (kind == host)
    return CU_MEMORYTYPE_HOST;
  if (kind == device)
    return CU_MEMORYTYPE_DEVICE;
  if (kind != kDefault)
    fail(cudaErrorInvalidMemcpyDirection);
  return CU_MEMORYTYPE_UNIFIED;
}

struct Corner {
  size_t x, y; // bytes, rows
};

CUDA_MEMCPY2D to_array(CUarray to, Corner at, const void *from, size_t pitch, size_t width,
                       size_t height, cudaMemcpyKind kind) {
  CUDA_MEMCPY2D c{};
  c.src_type = memory_type(kind, kHostToDevice, kDeviceToDevice);
  c.src_host = from;
  c.src_device = address(from);
  c.src_pitch = pitch;
  c.dst_type = CU_MEMORYTYPE_ARRAY;
  c.dst_array = to;
  c.dst_x = at.x;
  c.dst_y = at.y;
  c.width = width;
  c.height = height;
  return c;
}

CUDA_MEMCPY2D from_array(void *to, size_t pitch, CUarray from, Corner at, size_t width,
                         size_t height, cudaMemcpyKind kind) {
  CUDA_MEMCPY2D c{};
  c.src_type = CU_MEMORYTYPE_ARRAY;
  c.src_array = from;
  c.src_x = at.x;
  c.src_y = at.y;
  c.dst_type = memory_type(kind, kDeviceToHost, kDeviceToDevice);
  c.dst_host = to;
  c.dst_device = address(to);
  c.dst_pitch = pitch;
  c.width = width;
  c.height = height;
  return c;
}

// Copies that wait: all but those within a device.
cudaError_t rectangle(const CUDA_MEMCPY2D &c, cudaMemcpyKind kind, CUstream s, bool wait) {
  CUresult result = cuMemcpy2DAsync_v2(&c, s);
  if (result == CUDA_SUCCESS && wait && kind != kDeviceToDevice)
    result = cuStreamSynchronize(s);
  return from_driver(result);
}

// Where a place is, counting rows one after another.
size_t run_offset(CUarray array, Corner at) { return at.y * row_bytes(array) + at.x; }

cudaError_t run_to(CUarray to, Corner at, const void *from, size_t bytes, cudaMemcpyKind kind,
                   CUstream s, bool wait) {
  const size_t offset = run_offset(to, at);
  if (memory_type(kind, kHostToDevice, kDeviceToDevice) == CU_MEMORYTYPE_DEVICE)
    return from_driver(cuMemcpyDtoA_v2(to, offset, address(from), bytes));
  CUresult result = cuMemcpyHtoAAsync_v2(to, offset, from, bytes, s);
  return from_driver(result == CUDA_SUCCESS && wait ? cuStreamSynchronize(s) : result);
}

cudaError_t run_from(void *to, CUarray from, Corner at, size_t bytes, cudaMemcpyKind kind,
                     CUstream s, bool wait) {
  const size_t offset = run_offset(from, at);
  if (memory_type(kind, kDeviceToHost, kDeviceToDevice) == CU_MEMORYTYPE_DEVICE)
    return from_driver(cuMemcpyAtoD_v2(address(to), from, offset, bytes));
  CUresult result = cuMemcpyAtoHAsync_v2(to, from, offset, bytes, s);
  return from_driver(result == CUDA_SUCCESS && wait ? cuStreamSynchronize(s) : result);
}

void require_between_arrays(cudaMemcpyKind kind) {
  if (kind != kDeviceToDevice && kind != kDefault)
    fail(cudaErrorInvalidMemcpyDirection);
}

} // namespace

size_t texel_bytes_of(CUarray array) {
  const CUDA_ARRAY3D_DESCRIPTOR shape = shape_of(array);
  return shape.channels * static_cast<size_t>(bits_of(shape.format)) / 8;
}

// ------------------------------------------------------------------ arrays

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const cudaChannelFormatDesc *desc,
                              cudaExtent extent, unsigned int flags) {
  enter();
  const Texel texel = texel_of(*desc);
  const CUDA_ARRAY3D_DESCRIPTOR shape{extent.width, extent.height,  extent.depth,
                                      texel.format, texel.channels, flags};
  return from_driver(cuArray3DCreate_v2(array, &shape));
}

cudaError_t cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *desc, size_t width,
                            size_t height, unsigned int flags) {
  return cudaMalloc3DArray(array, desc, {width, height, 0}, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  enter();
  return array ? from_driver(cuArrayDestroy(array)) : cudaSuccess;
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc *desc, cudaExtent *extent, unsigned int *flags,
                             cudaArray_t array) {
  enter();
  const CUDA_ARRAY3D_DESCRIPTOR shape = shape_of(array);
  if (desc)
    *desc = channels_of(shape.format, shape.channels);
  if (extent)
    *extent = {shape.width, shape.height, shape.depth};
  if (flags)
    *flags = shape.flags;
  return cudaSuccess;
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                            cudaChannelFormatKind format) {
  return {{x, y, z, w}, format};
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc *desc, cudaArray_const_t array) {
  return cudaArrayGetInfo(desc, nullptr, nullptr, array);
}

// ------------------------------------------------------------------ copies

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                size_t width, size_t height, cudaMemcpyKind kind) {
  enter();
  return rectangle(to_array(to, {x, y}, from, pitch, width, height, kind), kind, stream(nullptr),
                   true);
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from,
                                     size_t pitch, size_t width, size_t height,
                                     cudaMemcpyKind kind, cudaStream_t handle) {
  enter();
  return rectangle(to_array(to, {x, y}, from, pitch, width, height, kind), kind, stream(handle),
                   false);
}

cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x,
                                  size_t y, size_t width, size_t height, cudaMemcpyKind kind) {
  enter();
  return rectangle(from_array(to, pitch, from, {x, y}, width, height, kind), kind,
                   stream(nullptr), true);
}

cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x,
                                       size_t y, size_t width, size_t height, cudaMemcpyKind kind,
                                       cudaStream_t handle) {
  enter();
  return rectangle(from_array(to, pitch, from, {x, y}, width, height, kind), kind, stream(handle),
                   false);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y,
                                     cudaArray_const_t from, size_t from_x, size_t from_y,
                                     size_t width, size_t height, cudaMemcpyKind kind) {
  enter();
  require_between_arrays(kind);
  CUDA_MEMCPY2D c{};
  c.src_type = c.dst_type = CU_MEMORYTYPE_ARRAY;
  c.src_array = from;
  c.src_x = from_x;
  c.src_y = from_y;
  c.dst_array = to;
  c.dst_x = to_x;
  c.dst_y = to_y;
  c.width = width;
  c.height = height;
  return rectangle(c, kDeviceToDevice, stream(nullptr), false);
}

cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t bytes,
                              cudaMemcpyKind kind) {
  enter();
  return run_to(to, {x, y}, from, bytes, kind, stream(nullptr), true);
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from,
                                   size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  enter();
  return run_to(to, {x, y}, from, bytes, kind, stream(handle), false);
}

cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                                cudaMemcpyKind kind) {
  enter();
  return run_from(to, from, {x, y}, bytes, kind, stream(nullptr), true);
}

cudaError_t cudaMemcpyFromArrayAsync(void *to, cudaArray_const_t from, size_t x, size_t y,
                                     size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  enter();
  return run_from(to, from, {x, y}, bytes, kind, stream(handle), false);
}

cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t to_x, size_t to_y,
                                   cudaArray_const_t from, size_t from_x, size_t from_y,
                                   size_t bytes, cudaMemcpyKind kind) {
  enter();
  require_between_arrays(kind);
  return from_driver(cuMemcpyAtoA_v2(to, run_offset(to, {to_x, to_y}), from,
                                     run_offset(from, {from_x, from_y}), bytes));
}

// ------------------------------------------------------------------ textures and surfaces

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *number, const cudaResourceDesc *resource,
                                    const cudaTextureDesc *sampling,
                                    const cudaResourceViewDesc *view) {
  enter();
  const CUDA_RESOURCE_DESC r = to_driver(*resource);
  const CUDA_TEXTURE_DESC s = to_driver(*sampling);
  return from_driver(cuTexObjectCreate(number, &r, &s, view));
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t number) {
  enter();
  return from_driver(cuTexObjectDestroy(number));
}

cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc *resource,
                                             cudaTextureObject_t number) {
  enter();
  CUDA_RESOURCE_DESC r{};
  check(cuTexObjectGetResourceDesc(&r, number));
  *resource = to_runtime(r);
  return cudaSuccess;
}

cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc *sampling,
                                            cudaTextureObject_t number) {
  enter();
  CUDA_TEXTURE_DESC s{};
  check(cuTexObjectGetTextureDesc(&s, number));
  *sampling = to_runtime(s);
  return cudaSuccess;
}

cudaError_t cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc *view,
                                                 cudaTextureObject_t number) {
  enter();
  return from_driver(cuTexObjectGetResourceViewDesc(view, number));
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *number,
                                    const cudaResourceDesc *resource) {
  enter();
  const CUDA_RESOURCE_DESC r = to_driver(*resource);
  return from_driver(cuSurfObjectCreate(number, &r));
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t number) {
  enter();
  return from_driver(cuSurfObjectDestroy(number));
}

cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc *resource,
                                             cudaSurfaceObject_t number) {
  enter();
  CUDA_RESOURCE_DESC r{};
  check(cuSurfObjectGetResourceDesc(&r, number));
  *resource = to_runtime(r);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *width, const cudaChannelFormatDesc *desc,
                                                 int device) {
  enter();
  const Texel texel = texel_of(*desc);
  return from_driver(cuDeviceGetTexture1DLinearMaxWidth(width, static_cast<int>(texel.format),
                                                        texel.channels, device));
}

} // namespace va::rt
