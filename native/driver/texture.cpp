// Texture and surface objects: what a client asks for becomes a description that kernels read.
#include <cstring>
#include <map>

#include "arrays.h"
#include "blocks.h"
#include "driver_api.h"
#include "settings.h"

namespace va {
namespace {

constexpr int kTextureAlignment = 14; // device attributes
constexpr int kPitchAlignment = 51;
constexpr int kLinearWidth = 69, kPlaneWidth = 70, kPlaneHeight = 71, kPlanePitch = 72;
constexpr unsigned kFaces = 6;
constexpr unsigned kKnownFlags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES |
                                 CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION |
                                 CU_TRSF_SEAMLESS_CUBEMAP;

// What an object was made from, for those who ask.
struct Object {
  CUcontext context;
  CUDA_RESOURCE_DESC resource;
  CUDA_TEXTURE_DESC sampling;
  CUDA_RESOURCE_VIEW_DESC view;
};

struct Objects {
  std::mutex mutex;
  std::map<uint64_t, Object> textures, surfaces;
};

Objects &objects() {
  static Objects *const instance = new Objects;
  return *instance;
}

uint64_t limit(const Context &context, int attribute) {
  return static_cast<uint64_t>(context.device->attribute(attribute));
}

void require(bool condition) {
  if (!condition)
    fail(CUDA_ERROR_INVALID_VALUE);
}

void describe_array(const Array &array, va_texture *t) {
  const CUDA_ARRAY3D_DESCRIPTOR &shape = array.shape;
  const bool layered = shape.flags & CUDA_ARRAY3D_LAYERED;
  const uint32_t depth = static_cast<uint32_t>(shape.depth);
  t->base = array.base;
  t->pitch = array.pitch;
  t->slice = array.pitch * array.rows();
  t->layout = VA_LAYOUT_ARRAY;
  t->width = static_cast<uint32_t>(shape.width);
  t->height = static_cast<uint32_t>(shape.height);
  t->is_cube = (shape.flags & CUDA_ARRAY3D_CUBEMAP) != 0;
  if (t->is_cube)
    t->layers = layered ? depth / kFaces : 0;
  else
    (layered ? t->layers : t->depth) = depth;
  t->format = shape.format;
  t->channels = shape.channels;
}

uint64_t texel_bytes(unsigned format, unsigned channels) {
  require(channels == 1 || channels == 2 || channels == 4);
  return channel_bytes_of(format) * channels;
}

void describe_linear(const Context &context, const CUDA_RESOURCE_DESC &r, va_texture *t) {
  const uint64_t texel = texel_bytes(r.linear.format, r.linear.channels);
  const uint64_t width = r.linear.bytes / texel;
  require(r.linear.address && r.linear.address % limit(context, kTextureAlignment) == 0);
  require(width && width <= limit(context, kLinearWidth));
  require_device_range(r.linear.address, r.linear.bytes);
  t->base = r.linear.address;
  t->pitch = t->slice = r.linear.bytes;
  t->layout = VA_LAYOUT_LINEAR;
  t->width = static_cast<uint32_t>(width);
  t->format = r.linear.format;
  t->channels = r.linear.channels;
}

void describe_pitched(const Context &context, const CUDA_RESOURCE_DESC &r, va_texture *t) {
  const auto &p = r.pitched;
  const uint64_t texel = texel_bytes(p.format, p.channels);
  require(p.address && p.address % limit(context, kTextureAlignment) == 0);
  require(p.width && p.height && p.width <= limit(context, kPlaneWidth) &&
          p.height <= limit(context, kPlaneHeight));
  require(p.pitch % limit(context, kPitchAlignment) == 0 && p.pitch >= p.width * texel &&
          p.pitch <= limit(context, kPlanePitch));
  require_device_range(p.address, (p.height - 1) * p.pitch + p.width * texel);
  t->base = p.address;
  t->pitch = p.pitch;
  t->slice = p.pitch * p.height;
  t->layout = VA_LAYOUT_PITCH;
  t->width = static_cast<uint32_t>(p.width);
  t->height = static_cast<uint32_t>(p.height);
  t->format = p.format;
  t->channels = p.channels;
}

va_texture describe(const Context &context, const CUDA_RESOURCE_DESC &resource) {
  va_texture t{};
  require(resource.flags == 0);
  switch (resource.type) {
  case CU_RESOURCE_TYPE_ARRAY:
    describe_array(array_of(resource.array, CUDA_ERROR_INVALID_VALUE), &t);
    break;
  case CU_RESOURCE_TYPE_LINEAR:
    describe_linear(context, resource, &t);
    break;
  case CU_RESOURCE_TYPE_PITCH2D:
    describe_pitched(context, resource, &t);
    break;
  case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
    note("textures of mipmapped arrays are not made here");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  default:
    fail(CUDA_ERROR_INVALID_VALUE);
  }
  return t;
}

void choose_sampling(const CUDA_TEXTURE_DESC &s, va_texture *t) {
  for (int d = 0; d < 3; ++d) {
    require(s.address[d] <= VA_ADDRESS_BORDER);
    t->address[d] = s.address[d];
  }
  require(s.filter <= 1 && s.mipmap_filter <= 1 && !(s.flags & ~kKnownFlags));
  if (s.flags & CU_TRSF_SRGB) {
    note("textures that convert from sRGB are not made here");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  if ((s.flags & CU_TRSF_SEAMLESS_CUBEMAP) && s.filter && t->is_cube) {
    note("filtering across the edges of a cube map is not done here");
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  t->linear = s.filter;
  t->normalized = (s.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  t->as_integer = (s.flags & CU_TRSF_READ_AS_INTEGER) != 0;
  std::memcpy(t->border, s.border, sizeof t->border);
  const bool floats = t->format == VA_TEXEL_F16 || t->format == VA_TEXEL_F32 ||
                      (!t->as_integer && channel_bytes_of(t->format) < 4);
  require(floats || !t->linear); // only what reads as a float is interpolated
}

// A view may say again what the resource is; another one is refused.
void require_plain(const CUDA_RESOURCE_VIEW_DESC &view, const va_texture &t) {
  const bool same = view.width == t.width && view.height == t.height && !view.first_level &&
                    !view.last_level && !view.first_layer;
  if (!view.format || same)
    return;
  note("textures that view a resource in another format or extent are not made here");
  fail(CUDA_ERROR_NOT_SUPPORTED);
}

uint64_t add(const va_texture &t, std::map<uint64_t, Object> *kept, const Object &object) {
  const uint64_t number = va_texture_add(&t);
  if (!number)
    fail(CUDA_ERROR_OUT_OF_MEMORY);
  const std::lock_guard<std::mutex> lock(objects().mutex);
  (*kept)[number] = object;
  return number;
}

CUresult destroy(uint64_t number, std::map<uint64_t, Object> *kept, va_texture_kind kind) {
  healthy_context();
  flush_device_output(); // destroying waits for the device
  const std::lock_guard<std::mutex> lock(objects().mutex);
  if (!kept->erase(number))
    return CUDA_ERROR_INVALID_VALUE;
  va_texture_remove(number, kind);
  return CUDA_SUCCESS;
}

Object object_of(uint64_t number, const std::map<uint64_t, Object> &kept) {
  healthy_context();
  const std::lock_guard<std::mutex> lock(objects().mutex);
  const auto found = kept.find(number);
  require(found != kept.end());
  return found->second;
}

void forget(CUcontext context, std::map<uint64_t, Object> *kept, va_texture_kind kind) {
  for (auto it = kept->begin(); it != kept->end();) {
    if (it->second.context != context) {
      ++it;
      continue;
    }
    va_texture_remove(it->first, kind);
    it = kept->erase(it);
  }
}

} // namespace

void forget_textures_of(const Context &context) {
  Objects &all = objects();
  const std::lock_guard<std::mutex> lock(all.mutex);
  forget(context.handle, &all.textures, VA_TEXTURE);
  forget(context.handle, &all.surfaces, VA_SURFACE);
}

namespace api {

CUresult cuTexObjectCreate(CUtexObject *number, const CUDA_RESOURCE_DESC *resource,
                           const CUDA_TEXTURE_DESC *sampling,
                           const CUDA_RESOURCE_VIEW_DESC *view) {
  const Context &context = healthy_context();
  va_texture t = describe(context, *resource);
  t.kind = VA_TEXTURE;
  choose_sampling(*sampling, &t);
  if (view)
    require_plain(*view, t);
  *number = add(t, &objects().textures,
                {context.handle, *resource, *sampling, view ? *view : CUDA_RESOURCE_VIEW_DESC{}});
  return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject number) {
  return destroy(number, &objects().textures, VA_TEXTURE);
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUtexObject number) {
  *resource = object_of(number, objects().textures).resource;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *sampling, CUtexObject number) {
  *sampling = object_of(number, objects().textures).sampling;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *view, CUtexObject number) {
  *view = object_of(number, objects().textures).view;
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectCreate(CUsurfObject *number, const CUDA_RESOURCE_DESC *resource) {
  const Context &context = healthy_context();
  require(resource->type == CU_RESOURCE_TYPE_ARRAY && !resource->flags);
  const Array &array = array_of(resource->array, CUDA_ERROR_INVALID_VALUE);
  require(array.shape.flags & CUDA_ARRAY3D_SURFACE_LDST);
  va_texture t = describe(context, *resource);
  t.kind = VA_SURFACE;
  *number = add(t, &objects().surfaces, {context.handle, *resource, {}, {}});
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectDestroy(CUsurfObject number) {
  return destroy(number, &objects().surfaces, VA_SURFACE);
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *resource, CUsurfObject number) {
  *resource = object_of(number, objects().surfaces).resource;
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
