// Work of a stream, checked and run: what calls do at once, and graphs when they are launched.
#pragma once

#include "graph_types.h"
#include "objects.h"

namespace va {

struct Shape {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  bool cooperative;
};

// Fails unless a kernel may be launched in this shape.
void require_launchable(const Device &device, const Function &function, const Shape &shape);
// Write a parameter block, from one pointer a parameter or from a buffer the caller packed.
void pack_parameters(const Function &function, void **parameters, void **extra, uint8_t *out);
// Run a kernel, and what it launches, to the end; a fault sticks to the context.
void run_kernel(Stream &stream, Function &function, const Shape &shape, const uint8_t *parameters);

void require_copy(const CUDA_MEMCPY3D &copy);
void run_copy(Stream &stream, const CUDA_MEMCPY3D &copy);

void require_fill(const CUDA_MEMSET_NODE_PARAMS &fill);
void run_fill(Stream &stream, const CUDA_MEMSET_NODE_PARAMS &fill);

void require_memory_operation(const CUstreamBatchMemOpParams &operation);
// Fails with NOT_SUPPORTED when a wait does not hold: nothing runs beside it that could end it.
void run_memory_operation(Stream &stream, const CUstreamBatchMemOpParams &operation);

void run_host_call(Stream &stream, CUhostFn call, void *data);
void run_record(Stream &stream, CUevent event);
void run_wait(Stream &stream, CUevent event);

} // namespace va
