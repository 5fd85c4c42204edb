// Arrays: made, described, destroyed.  Rows lie one after another, padded; what an array looks
// like in memory is nobody's business but the copies' and the sampler's.
#include "arrays.h"
#include "blocks.h"
#include "driver_api.h"
#include "settings.h"

#include <vector>

namespace va {
namespace {

constexpr uint64_t kRowAlign = 32;
constexpr uint64_t kFaces = 6;
constexpr unsigned kKnownFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                                 CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER;
constexpr unsigned kOtherFlags = 0x10 | 0x20 | 0x40 | 0x80; // depth, color, sparse, deferred

// Attributes with the largest extents, by kind of array.
struct Limits {
  int width, height, depth; // 0: there is no such extent
};

Limits limits_of(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  const bool layered = shape.flags & CUDA_ARRAY3D_LAYERED;
  if (shape.flags & CUDA_ARRAY3D_CUBEMAP)
    return layered ? Limits{53, 53, 54} : Limits{52, 52, 0};
  if (layered)
    return shape.height ? Limits{27, 28, 29} : Limits{42, 0, 43};
  if (shape.depth)
    return {24, 25, 26};
  if (shape.height)
    return shape.flags & CUDA_ARRAY3D_TEXTURE_GATHER ? Limits{45, 46, 0} : Limits{22, 23, 0};
  return {21, 0, 0};
}

void require_extents(const Device &device, const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  const bool layered = shape.flags & CUDA_ARRAY3D_LAYERED;
  const bool cube = shape.flags & CUDA_ARRAY3D_CUBEMAP;
  bool legal = shape.width > 0;
  if (cube)
    legal = legal && shape.width == shape.height && shape.depth &&
            (layered ? shape.depth % kFaces == 0 : shape.depth == kFaces);
  else if (layered)
    legal = legal && shape.depth;
  else
    legal = legal && (shape.height || !shape.depth);
  if (!legal)
    fail(CUDA_ERROR_INVALID_VALUE);
  const Limits limits = limits_of(shape);
  const auto within = [&](uint64_t extent, int attribute) {
    return !attribute || extent <= static_cast<uint64_t>(device.attribute(attribute));
  };
  if (!within(shape.width, limits.width) || !within(shape.height, limits.height) ||
      !within(shape.depth, limits.depth))
    fail(CUDA_ERROR_INVALID_VALUE);
}

} // namespace

Array &make_array(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  Context &context = healthy_context();
  if (shape.channels != 1 && shape.channels != 2 && shape.channels != 4)
    fail(CUDA_ERROR_INVALID_VALUE);
  if (shape.flags & kOtherFlags) {
    note("arrays for depth, color attachments, sparse or deferred mapping are not made here");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  if (shape.flags & ~(kKnownFlags | kOtherFlags))
    fail(CUDA_ERROR_INVALID_VALUE);
  const uint64_t channel = channel_bytes_of(shape.format);
  require_extents(*context.device, shape);
  auto made = std::make_unique<Array>();
  made->context = context.handle;
  made->shape = shape;
  made->texel_bytes = channel * shape.channels;
  made->pitch = (made->row_bytes() + kRowAlign - 1) / kRowAlign * kRowAlign;
  const uint64_t bytes = made->pitch * made->rows() * made->slices();
  made->base = allocate(context, bytes, Origin::kDevice, 0);
  made->handle = driver().arrays.add(made.get());
  if (!made->handle) {
    release(made->base, false);
    fail(CUDA_ERROR_OUT_OF_MEMORY);
  }
  Array &array = *made;
  const std::lock_guard<std::mutex> lock(context.mutex);
  context.arrays.insert(made.release());
  return array;
}

void destroy_array(CUarray handle) {
  Array &array = array_of(handle);
  flush_device_output(); // destroying waits for the device
  Context &context = context_of(array.context);
  {
    const std::lock_guard<std::mutex> lock(context.mutex);
    context.arrays.erase(&array);
  }
  const std::unique_ptr<Array> gone(driver().arrays.remove(handle));
  if (!gone)
    fail(CUDA_ERROR_INVALID_HANDLE);
  release(gone->base, false);
}

uint64_t channel_bytes_of(unsigned format) {
  switch (format) {
  case VA_TEXEL_U8:
  case VA_TEXEL_S8:
    return 1;
  case VA_TEXEL_U16:
  case VA_TEXEL_S16:
  case VA_TEXEL_F16:
    return 2;
  case VA_TEXEL_U32:
  case VA_TEXEL_S32:
  case VA_TEXEL_F32:
    return 4;
  default:
    note("array format 0x%x is not taken; 8-, 16- and 32-bit integers, half and float are", format);
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
}

Array &array_of(CUarray handle, CUresult code) {
  Array *const array = started().arrays.find(handle);
  if (!array)
    fail(code);
  return *array;
}

void forget_arrays_of(Context &context) {
  std::set<Array *> arrays;
  {
    const std::lock_guard<std::mutex> lock(context.mutex);
    arrays.swap(context.arrays);
  }
  for (const Array *const array : arrays)
    delete driver().arrays.remove(array->handle);
}

namespace api {

CUresult cuArray3DCreate_v2(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR *shape) {
  *handle = make_array(*shape).handle;
  return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray *handle, const CUDA_ARRAY_DESCRIPTOR *shape) {
  const CUDA_ARRAY3D_DESCRIPTOR flat{shape->width,  shape->height,   0,
                                     shape->format, shape->channels, 0};
  *handle = make_array(flat).handle;
  return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray handle) {
  healthy_context();
  if (array_of(handle).is_level)
    return CUDA_ERROR_INVALID_HANDLE;
  destroy_array(handle);
  return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *shape, CUarray handle) {
  healthy_context();
  *shape = array_of(handle).shape;
  return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *shape, CUarray handle) {
  healthy_context();
  const CUDA_ARRAY3D_DESCRIPTOR &own = array_of(handle).shape;
  *shape = {own.width, own.height, own.format, own.channels};
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
