// Fills of device memory with 8-, 16- and 32-bit values.
#include <algorithm>
#include <cstring>

#include "blocks.h"
#include "driver_api.h"
#include "va100/check.h"

namespace va {
namespace {

template <typename Value>
CUresult fill(CUdeviceptr address, size_t pitch, Value value, size_t width, size_t height,
              CUstream handle) {
  healthy_context();
  Stream &stream = stream_of(handle);
  if (!width || !height)
    return CUDA_SUCCESS;
  const size_t row = width * sizeof(Value);
  if (row / sizeof(Value) != width || (height > 1 && pitch < row) || address % sizeof(Value) ||
      (height > 1 && pitch % sizeof(Value)))
    return CUDA_ERROR_INVALID_VALUE;
  require_device_range(address, (height - 1) * pitch + row);
  {
    const std::lock_guard<std::recursive_mutex> lock(stream.order);
    for (size_t y = 0; y < height; ++y) {
      Value *const first = reinterpret_cast<Value *>(address + y * pitch);
      if (sizeof(Value) == 1)
        std::memset(first, static_cast<int>(value), width);
      else
        std::fill_n(first, width, value);
      va_check_filled(address + y * pitch, row);
    }
  }
  log_transfer(stream.track, stream.context->device->ordinal, row * height, Way::kSet);
  return CUDA_SUCCESS;
}

} // namespace

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
