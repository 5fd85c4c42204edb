// What device code calls by name: printf, assert, malloc and free.
#include <cinttypes>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_set>

#include "check_state.h"
#include "worker.h"

namespace va {
namespace {

constexpr size_t kStringLimit = 65536;

// A C string in device memory, cut at the first byte a kernel could not read.
std::string read_string(uint64_t address) {
  std::string text;
  while (text.size() < kStringLimit && va_arena_accessible(address, 1)) {
    char c = *reinterpret_cast<const char *>(address++);
    if (!c) return text;
    text += c;
  }
  return text;
}

struct Arguments {
  uint64_t next;

  template <typename T>
  bool take(T *out) {
    next = (next + sizeof(T) - 1) & ~uint64_t{sizeof(T) - 1};
    if (!va_arena_accessible(next, sizeof(T))) return false;
    std::memcpy(out, reinterpret_cast<const void *>(next), sizeof(T));
    next += sizeof(T);
    return true;
  }
};

template <typename T>
void append(std::string *out, const std::string &spec, T value) {
  char buffer[512];
  int n = snprintf(buffer, sizeof buffer, spec.c_str(), value);
  if (n > 0) out->append(buffer, std::min<size_t>(static_cast<size_t>(n), sizeof buffer - 1));
}

// One conversion of a format, args taken in order; false when the arguments run out.
bool convert(std::string *out, std::string spec, char kind, bool wide, Arguments *args) {
  switch (kind) {
    case 'd': case 'i': {
      if (wide) {
        int64_t v;
        if (!args->take(&v)) return false;
        append(out, spec + "ll" + kind, static_cast<long long>(v));
      } else {
        int32_t v;
        if (!args->take(&v)) return false;
        append(out, spec + kind, v);
      }
      return true;
    }
    case 'u': case 'o': case 'x': case 'X': {
      if (wide) {
        uint64_t v;
        if (!args->take(&v)) return false;
        append(out, spec + "ll" + kind, static_cast<unsigned long long>(v));
      } else {
        uint32_t v;
        if (!args->take(&v)) return false;
        append(out, spec + kind, v);
      }
      return true;
    }
    case 'c': {
      spec.erase(std::min(spec.find('h'), spec.size()));
      int32_t v;
      if (!args->take(&v)) return false;
      append(out, spec + kind, v);
      return true;
    }
    case 'a': case 'A': case 'e': case 'E': case 'f': case 'F': case 'g': case 'G': {
      double v;
      if (!args->take(&v)) return false;
      append(out, spec + kind, v);
      return true;
    }
    case 'p': {
      uint64_t v;
      if (!args->take(&v)) return false;
      append(out, spec + 'p', reinterpret_cast<void *>(v));
      return true;
    }
    case 's': {
      uint64_t v;
      if (!args->take(&v)) return false;
      std::string text = read_string(v);
      char buffer[1024];
      int n = snprintf(buffer, sizeof buffer, (spec + 's').c_str(), text.c_str());
      if (n > 0) out->append(buffer, std::min<size_t>(static_cast<size_t>(n), sizeof buffer - 1));
      return true;
    }
    default:
      return false;
  }
}

// Returns the number of arguments converted, as device printf does.
int format(std::string *out, const std::string &text, Arguments args) {
  int taken = 0;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '%') {
      *out += text[i++];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '%') {
      *out += '%';
      i += 2;
      continue;
    }
    std::string spec = "%";
    size_t j = i + 1;
    bool wide = false;
    while (j < text.size() && std::strchr("-+ #0123456789.*", text[j])) {
      if (text[j] == '*') {
        int32_t width;
        if (!args.take(&width)) return -1;
        spec += std::to_string(width);
      } else {
        spec += text[j];
      }
      j++;
    }
    while (j < text.size() && std::strchr("hlLjzt", text[j])) {
      if (text[j] == 'h')
        spec += 'h';
      else if (text[j] != 'L')
        wide = true;
      j++;
    }
    if (j >= text.size() || spec.size() > 32 || !convert(out, spec, text[j], wide, &args)) {
      out->append(text, i, j - i + 1);  // as written: not a conversion this printf knows
    } else {
      taken++;
    }
    i = j + 1;
  }
  return taken;
}

}  // namespace


}  // namespace va

extern "C" {

void va_h_vprintf(va_warp *w, uint32_t mask, const uint64_t *fmt, const uint64_t *args,
                  uint32_t *out);
void va_h_assertfail(va_warp *w, uint32_t site, uint32_t mask, const uint64_t *message,
                     const uint64_t *file, const uint32_t *line, const uint64_t *function);
void va_h_malloc(va_warp *w, uint32_t mask, const uint64_t *bytes, uint64_t *out);
void va_h_free(va_warp *w, uint32_t site, uint32_t mask, const uint64_t *address);

void va_h_vprintf(va_warp *w, uint32_t mask, const uint64_t *fmt, const uint64_t *args,
                  uint32_t *out) {
  std::string text;
  for (uint32_t m = mask; m; m &= m - 1) {
    int lane = __builtin_ctz(m);
    out[lane] = static_cast<uint32_t>(
        va::format(&text, va::read_string(fmt[lane]), va::Arguments{args[lane]}));
  }
  va::print(w, text);
}

void va_h_assertfail(va_warp *w, uint32_t site, uint32_t mask, const uint64_t *message,
                     const uint64_t *file, const uint32_t *line, const uint64_t *function) {
  uint32_t lane = static_cast<uint32_t>(__builtin_ctz(mask));
  std::string text = va::read_string(message[lane]);
  text += "|" + va::read_string(file[lane]) + "|" + std::to_string(line[lane]) + "|" +
          va::read_string(function[lane]);
  va::fault(w, VA_FAULT_ASSERT, site, lane, 0, 0, 0, false, text.c_str());
}

// What device code has allocated and not freed: it may free nothing else.
std::mutex g_heap_mutex;
std::unordered_set<uint64_t> g_heap;

// Device heap: allocations of the window region, so that every kernel may touch them.
void va_h_malloc(va_warp *, uint32_t mask, const uint64_t *bytes, uint64_t *out) {
  for (uint32_t m = mask; m; m &= m - 1) {
    int lane = __builtin_ctz(m);
    out[lane] = bytes[lane] ? va_arena_alloc(VA_WINDOW_DEVICE, bytes[lane], 256) : 0;
    std::lock_guard<std::mutex> lock(g_heap_mutex);
    if (out[lane]) g_heap.insert(out[lane]);
    if (out[lane]) va_check_allocated(out[lane], bytes[lane], 0);
  }
}

void va_h_free(va_warp *w, uint32_t site, uint32_t mask, const uint64_t *address) {
  for (uint32_t m = mask; m; m &= m - 1) {
    int lane = __builtin_ctz(m);
    if (!address[lane]) continue;
    bool ours;
    {
      std::lock_guard<std::mutex> lock(g_heap_mutex);
      ours = g_heap.erase(address[lane]) != 0;
    }
    if (ours) va_check_released(address[lane]);
    const bool freed = ours && !va_arena_free(address[lane]);
    if (!freed) va::check_bad_device_free(w, site, static_cast<uint32_t>(lane), address[lane]);
    if (!freed)
      va::fault(w, VA_FAULT_ILLEGAL_ADDRESS, site, static_cast<uint32_t>(lane), address[lane], 1,
                0, true, nullptr);
  }
}

}  // extern "C"

namespace va {

void forget_device_allocation(uint64_t address) {
  const std::lock_guard<std::mutex> lock(g_heap_mutex);
  g_heap.erase(address);
}

#define VA_ADDRESS(f) reinterpret_cast<const void *>(&f)

extern const HelperEntry kRuntimeHelpers[] = {{"va_h_vprintf", VA_ADDRESS(va_h_vprintf)},
                                              {"va_h_assertfail", VA_ADDRESS(va_h_assertfail)},
                                              {"va_h_malloc", VA_ADDRESS(va_h_malloc)},
                                              {"va_h_free", VA_ADDRESS(va_h_free)},
                                              {nullptr, nullptr}};

}  // namespace va
