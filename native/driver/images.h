// Module images as clients hand them over, and the PTX text inside.
#pragma once

#include <string>
#include <vector>

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
// Every PTX text in a host object file or an archive of them, as nvcc leaves it for linking: one
// for each fatbin inside that has any.
std::vector<FoundPtx> find_embedded_ptx(const void *file, size_t bytes);

} // namespace va
