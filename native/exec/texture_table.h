// What a kernel's texture or surface object stands for.
#pragma once

#include "va100/exec.h"
#include "va100/texture.h"

namespace va {

// Null when the number stands for nothing.
const va_texture *find_texture(uint64_t number);

inline uint32_t channel_bytes(uint32_t format) {
  if (format == VA_TEXEL_U8 || format == VA_TEXEL_S8) return 1;
  return format == VA_TEXEL_U32 || format == VA_TEXEL_S32 || format == VA_TEXEL_F32 ? 4 : 2;
}

// What a number stands for, to a lane that needs an object of a kind; faults when there is none.
const va_texture *texture_of(va_warp *w, uint32_t site, uint32_t lane, uint64_t number,
                             uint32_t kind);

}  // namespace va
