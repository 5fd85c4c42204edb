#include "windows.h"

#include <map>
#include <mutex>

#include "entry.h"
#include "va100/virtual.h"

namespace va {
namespace {

constexpr uint64_t kPage = 4096;

struct Window {
  uint64_t base, mapped_bytes, reserved_bytes;
};

struct Windows {
  std::mutex mutex;
  std::map<uint64_t, Window> by_address;
};

Windows &windows() {
  static Windows *const instance = new Windows;
  return *instance;
}

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

} // namespace

uint64_t open_window(int fd, uint64_t offset, uint64_t bytes, int device) {
  const uint64_t within = offset % kPage;
  Window window{};
  window.mapped_bytes = round_up(within + bytes, kPage);
  window.reserved_bytes = round_up(window.mapped_bytes + kPage, VA_VIRTUAL_UNIT); // one unmapped
  window.base = va_virtual_reserve(window.reserved_bytes, 0, 0);
  if (!window.base)
    fail(CUDA_ERROR_OUT_OF_MEMORY);
  const uint64_t address = window.base + within;
  if (va_virtual_map(window.base, window.mapped_bytes, fd, offset - within) ||
      va_virtual_open(address, bytes, device)) {
    va_virtual_unmap(window.base, window.mapped_bytes);
    va_virtual_release(window.base, window.reserved_bytes);
    fail(CUDA_ERROR_OUT_OF_MEMORY);
  }
  const std::lock_guard<std::mutex> lock(windows().mutex);
  windows().by_address[address] = window;
  return address;
}

void close_window(uint64_t address) {
  Window window;
  {
    const std::lock_guard<std::mutex> lock(windows().mutex);
    const auto it = windows().by_address.find(address);
    if (it == windows().by_address.end())
      return;
    window = it->second;
    windows().by_address.erase(it);
  }
  va_virtual_unmap(window.base, window.mapped_bytes);
  va_virtual_release(window.base, window.reserved_bytes);
}

} // namespace va
