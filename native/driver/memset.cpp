// Fills of device memory with 8-, 16- and 32-bit values.
#include <algorithm>
#include <cstring>

#include "blocks.h"
#include "capture.h"
#include "driver_api.h"
#include "pools.h"
#include "va100/check.h"

namespace va {
namespace {

template <typename Value> void write(const CUDA_MEMSET_NODE_PARAMS &f) {
  const size_t row = f.width * sizeof(Value);
  for (size_t y = 0; y < f.height; ++y) {
    Value *const first = reinterpret_cast<Value *>(f.address + y * f.pitch);
    if (sizeof(Value) == 1)
      std::memset(first, static_cast<int>(f.value), f.width);
    else
      std::fill_n(first, f.width, static_cast<Value>(f.value));
    va_check_filled(f.address + y * f.pitch, row);
  }
}

template <typename Value>
CUresult fill(CUdeviceptr address, size_t pitch, Value value, size_t width, size_t height,
              CUstream handle) {
  const Context &context = healthy_context();
  Stream &stream = stream_of(handle);
  const CUDA_MEMSET_NODE_PARAMS f{address, pitch, value, sizeof(Value), width, height};
  require_granted(*context.device, address);
  if (in_capture(stream)) {
    require_fill(f);
    capture(stream, FillWork{f, stream.context->handle});
  } else {
    run_fill(stream, f);
  }
  return CUDA_SUCCESS;
}

} // namespace

void require_fill(const CUDA_MEMSET_NODE_PARAMS &f) {
  const size_t item = f.element_bytes;
  if (item != 1 && item != 2 && item != 4)
    fail(CUDA_ERROR_INVALID_VALUE);
  if (!f.width || !f.height)
    return;
  const size_t row = f.width * item;
  if (row / item != f.width || (f.height > 1 && f.pitch < row) || f.address % item ||
      (f.height > 1 && f.pitch % item))
    fail(CUDA_ERROR_INVALID_VALUE);
  require_device_range(f.address, (f.height - 1) * f.pitch + row);
}

void run_fill(Stream &stream, const CUDA_MEMSET_NODE_PARAMS &f) {
  require_fill(f);
  if (!f.width || !f.height)
    return;
  {
    const std::lock_guard<std::recursive_mutex> lock(stream.order);
    if (f.element_bytes == 1)
      write<uint8_t>(f);
    else if (f.element_bytes == 2)
      write<uint16_t>(f);
    else
      write<uint32_t>(f);
  }
  log_transfer(stream.track, stream.context->device->ordinal, f.width * f.element_bytes * f.height,
               Way::kSet);
}

namespace api {

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return fill<uint8_t>(to, 0, value, count, 1, nullptr);
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return fill<uint16_t>(to, 0, value, count, 1, nullptr);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
  return fill<uint32_t>(to, 0, value, count, 1, nullptr);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                         size_t height) {
  return fill<uint8_t>(to, pitch, value, width, height, nullptr);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                          size_t height) {
  return fill<uint16_t>(to, pitch, value, width, height, nullptr);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                          size_t height) {
  return fill<uint32_t>(to, pitch, value, width, height, nullptr);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return fill<uint8_t>(to, 0, value, count, 1, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return fill<uint16_t>(to, 0, value, count, 1, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  return fill<uint32_t>(to, 0, value, count, 1, stream);
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream) {
  return fill<uint8_t>(to, pitch, value, width, height, stream);
}

CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream) {
  return fill<uint16_t>(to, pitch, value, width, height, stream);
}

CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                            size_t height, CUstream stream) {
  return fill<uint32_t>(to, pitch, value, width, height, stream);
}

} // namespace api
} // namespace va
