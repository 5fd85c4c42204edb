// Module images as clients hand them over, and the PTX text inside.
#pragma once

#include <string>

#include "cuda_types.h"

namespace va {

// What came of looking for PTX in an image.
struct FoundPtx {
  CUresult result = CUDA_SUCCESS;
  std::string text;    // PTX
  std::string problem; // for people, when result is no success
};

// Images carry no length of their own: text ends at a NUL, containers say how long they are.
FoundPtx find_ptx(const void *image);
// The same for an image whose length is known.
FoundPtx find_ptx(const void *image, size_t bytes);

} // namespace va
