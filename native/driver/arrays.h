// Arrays: device memory with extents and a format, addressed by texel.
#pragma once

#include "objects.h"
#include "va100/texture.h"

namespace va {

struct Array {
  CUarray handle = nullptr;
  CUcontext context = nullptr;
  uint64_t base = 0;
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  uint64_t texel_bytes = 0;
  uint64_t pitch = 0;
  bool is_level = false; // of a mipmapped array, with which it goes

  uint64_t row_bytes() const { return shape.width * texel_bytes; }
  uint64_t rows() const { return shape.height ? shape.height : 1; }
  uint64_t slices() const { return shape.depth ? shape.depth : 1; }
  uint64_t bytes() const { return row_bytes() * rows() * slices(); }
};

// Fails with `code` on an unknown handle.
Array &array_of(CUarray handle, CUresult code = CUDA_ERROR_INVALID_HANDLE);

// Fails as cuArray3DCreate and cuArrayDestroy do.
Array &make_array(const CUDA_ARRAY3D_DESCRIPTOR &shape);
void destroy_array(CUarray handle);

// Bytes of a channel, or 0 for a format that is not taken; says so by name.
uint64_t channel_bytes_of(unsigned format);

} // namespace va
