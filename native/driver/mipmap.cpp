// Mipmapped arrays: a row of arrays, each half as large as the one before.  Copies and surfaces
// reach each level; textures of the whole are refused where they are made.
#include <algorithm>
#include <vector>

#include "arrays.h"
#include "driver_api.h"

namespace va {
namespace {

struct Mipmap {
  CUmipmappedArray handle = nullptr;
  std::vector<CUarray> levels;
};

HandleTable<Mipmap, CUmipmappedArray, Kind::kMipmap> &mipmaps() {
  static auto *const table = new HandleTable<Mipmap, CUmipmappedArray, Kind::kMipmap>;
  return *table;
}

Mipmap &mipmap_of(CUmipmappedArray handle) {
  healthy_context();
  Mipmap *const mipmap = mipmaps().find(handle);
  if (!mipmap)
    fail(CUDA_ERROR_INVALID_HANDLE);
  return *mipmap;
}

bool has_layers(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  return shape.flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
}

// Levels down to one texel.
unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR &shape) {
  size_t extent = std::max(shape.width, shape.height);
  if (!has_layers(shape))
    extent = std::max(extent, shape.depth);
  unsigned count = 0;
  for (; extent; extent >>= 1)
    ++count;
  return count;
}

size_t half(size_t extent) { return extent ? std::max<size_t>(extent / 2, 1) : 0; }

CUDA_ARRAY3D_DESCRIPTOR next_level(CUDA_ARRAY3D_DESCRIPTOR shape) {
  shape.width = half(shape.width);
  shape.height = half(shape.height);
  if (!has_layers(shape))
    shape.depth = half(shape.depth);
  return shape;
}

// Levels may have gone with their context.
void destroy_levels(const Mipmap &mipmap) {
  for (const CUarray level : mipmap.levels)
    if (driver().arrays.find(level))
      destroy_array(level);
}

} // namespace

namespace api {

CUresult cuMipmappedArrayCreate(CUmipmappedArray *handle, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                                unsigned int levels) {
  healthy_context();
  const unsigned count = std::min(std::max(levels, 1u), most_levels(*shape));
  auto mipmap = std::make_unique<Mipmap>();
  CUDA_ARRAY3D_DESCRIPTOR level = *shape;
  try {
    do {
      Array &array = make_array(level);
      array.is_level = true;
      mipmap->levels.push_back(array.handle);
      level = next_level(level);
    } while (mipmap->levels.size() < count);
  } catch (...) {
    destroy_levels(*mipmap);
    throw;
  }
  mipmap->handle = mipmaps().add(mipmap.get());
  if (!mipmap->handle) {
    destroy_levels(*mipmap);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *handle = mipmap.release()->handle;
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  mipmap_of(handle);
  const std::unique_ptr<Mipmap> gone(mipmaps().remove(handle));
  if (!gone)
    return CUDA_ERROR_INVALID_HANDLE;
  destroy_levels(*gone);
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetLevel(CUarray *array, CUmipmappedArray handle, unsigned int level) {
  const Mipmap &mipmap = mipmap_of(handle);
  if (level >= mipmap.levels.size())
    return CUDA_ERROR_INVALID_VALUE;
  *array = mipmap.levels[level];
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
