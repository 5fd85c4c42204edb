// Loads from and stores to surfaces, formatted stores, and reductions, for a warp.
//
// Offsets along a row are in bytes, but for formatted stores and reductions, which count texels.
// Chosen where nothing is stated: a formatted store clamps an integer into the texel's range.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "check_state.h"
#include "math_half_format.h"
#include "texture_table.h"
#include "worker.h"

namespace va {
namespace {

enum Geometry : uint32_t { k1D, k2D, k3D, kA1D, kA2D };
enum Boundary : uint32_t { kTrap, kClamp, kZero };
enum Combine : uint32_t { kAdd, kMin, kMax, kAnd, kOr };

constexpr uint32_t kSurfaceSpace = 6;  // of a fault

// What is constant at an instruction, as the compiler packs it.
struct Use {
  uint32_t site, geometry, log_size, elements, boundary, combine, type;
  bool formatted;

  explicit Use(uint64_t info)
      : site(static_cast<uint32_t>(info)), geometry(info >> 32 & 7), log_size(info >> 35 & 3),
        elements((info >> 37 & 3) == 3 ? 4 : (info >> 37 & 3)), boundary(info >> 40 & 3),
        combine(info >> 42 & 7), type(info >> 45 & 3), formatted(info >> 47 & 1) {}
};
// `type`: 0 bits, 1 unsigned, 2 signed, 3 floating.

uint32_t texel_type(uint32_t format) {
  if (format == VA_TEXEL_F16 || format == VA_TEXEL_F32) return 3;
  return format == VA_TEXEL_S8 || format == VA_TEXEL_S16 || format == VA_TEXEL_S32 ? 2 : 1;
}

[[noreturn]] void outside(va_warp *w, const Use &u, uint32_t lane, const va_texture &t,
                          const int64_t at[3], uint32_t bytes, bool write) {
  char text[160];
  snprintf(text, sizeof text,
           "byte %lld, row %lld, slice %lld of a surface of %u bytes, %u rows, %u slices",
           static_cast<long long>(at[0]), static_cast<long long>(at[1]),
           static_cast<long long>(at[2]), t.width * t.channels * channel_bytes(t.format),
           std::max(t.height, 1u), std::max(t.is_cube ? 6 * std::max(t.layers, 1u) : t.layers,
                                            std::max(t.depth, 1u)));
  fault(w, VA_FAULT_ILLEGAL_ADDRESS, u.site, lane, t.base, bytes, kSurfaceSpace, write, text);
}

// Where a lane's bytes are; null when its access is to be left out.
uint8_t *place_of(va_warp *w, const Use &u, uint32_t lane, const va_texture &t,
                  const int32_t *coords, uint32_t bytes, TexelAccess access) {
  bool write = access != TexelAccess::kLoad;
  int64_t layer = static_cast<uint32_t>(coords[lane]);
  int64_t at[3] = {coords[VA_LANES + lane], 0, 0};
  if (u.formatted) at[0] *= int64_t{t.channels} * channel_bytes(t.format);
  if (u.geometry == k2D || u.geometry == k3D || u.geometry == kA2D)
    at[1] = coords[2 * VA_LANES + lane];
  if (u.geometry == k3D) at[2] = coords[3 * VA_LANES + lane];
  if (u.geometry == kA1D || u.geometry == kA2D) at[2] = layer;
  int64_t slices = t.is_cube ? 6 * std::max(t.layers, 1u)
                             : std::max({t.layers, t.depth, 1u});
  int64_t row = int64_t{t.width} * t.channels * channel_bytes(t.format);
  const int64_t most[3] = {row - bytes, int64_t{std::max(t.height, 1u)} - 1, slices - 1};
  bool inside = most[0] >= 0;
  for (int d = 0; d < 3; d++) inside = inside && at[d] >= 0 && at[d] <= most[d];
  if (!inside) {
    if (u.boundary == kTrap) outside(w, u, lane, t, at, bytes, write);
    if (u.boundary == kZero || most[0] < 0) return nullptr;
    for (int d = 0; d < 3; d++) at[d] = std::min(std::max<int64_t>(at[d], 0), most[d]);
    at[0] -= at[0] % bytes;
  }
  if (at[0] % bytes)
    fault(w, VA_FAULT_MISALIGNED, u.site, lane, static_cast<uint64_t>(at[0]), bytes,
          kSurfaceSpace, write, nullptr);
  uint64_t address = t.base + static_cast<uint64_t>(at[0]) +
                     static_cast<uint64_t>(at[1]) * t.pitch + static_cast<uint64_t>(at[2]) * t.slice;
  if (!va_arena_accessible(address, bytes))
    fault(w, VA_FAULT_ILLEGAL_ADDRESS, u.site, lane, address, bytes, 1, write, nullptr);
  check_texel(w, u.site, lane, address, bytes, access);
  return reinterpret_cast<uint8_t *>(address);
}

template <typename Act>
void each_lane(va_warp *w, const Use &u, uint32_t mask, const uint64_t *numbers, Act act) {
  for (uint32_t m = mask; m; m &= m - 1) {
    uint32_t lane = static_cast<uint32_t>(__builtin_ctz(m));
    act(lane, *texture_of(w, u.site, lane, numbers[lane], VA_SURFACE));
  }
}

const char *const kTypeNames[] = {"bits", "unsigned integers", "signed integers", "floats"};

// One channel of a formatted store.
void put_channel(const va_texture &t, uint32_t bits, uint8_t *to) {
  int32_t number = static_cast<int32_t>(bits);
  uint32_t stored = bits;
  switch (t.format) {
    case VA_TEXEL_U8: stored = std::min(bits, 0xffu); break;
    case VA_TEXEL_U16: stored = std::min(bits, 0xffffu); break;
    case VA_TEXEL_S8: stored = static_cast<uint32_t>(std::min(std::max(number, -128), 127)); break;
    case VA_TEXEL_S16:
      stored = static_cast<uint32_t>(std::min(std::max(number, -32768), 32767));
      break;
    case VA_TEXEL_F16: stored = nearest_f16(bits_as<float>(bits)); break;
    default: break;
  }
  std::memcpy(to, &stored, channel_bytes(t.format));
}

template <typename T>
void combine(T *place, T value, uint32_t how) {
  T old = __atomic_load_n(place, __ATOMIC_RELAXED), made;
  do {
    switch (how) {
      case kAdd: made = static_cast<T>(static_cast<uint64_t>(old) + static_cast<uint64_t>(value)); break;
      case kMin: made = std::min(old, value); break;
      case kMax: made = std::max(old, value); break;
      case kAnd: made = old & value; break;
      default: made = old | value; break;
    }
  } while (!__atomic_compare_exchange_n(place, &old, made, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
}

void reduce(uint8_t *place, uint64_t value, const Use &u, bool is_signed) {
  if (u.log_size == 3) {
    if (is_signed)
      combine(reinterpret_cast<int64_t *>(place), static_cast<int64_t>(value), u.combine);
    else
      combine(reinterpret_cast<uint64_t *>(place), value, u.combine);
  } else if (is_signed) {
    combine(reinterpret_cast<int32_t *>(place), static_cast<int32_t>(value), u.combine);
  } else {
    combine(reinterpret_cast<uint32_t *>(place), static_cast<uint32_t>(value), u.combine);
  }
}

}  // namespace
}  // namespace va

extern "C" {

// coords: layer, x, y and z, 32 lanes each; data: 32 lanes an element, each in 64 bits.
void va_h_surface_load(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *numbers,
                       const int32_t *coords, uint64_t *data) {
  const va::Use u(info);
  const uint32_t size = 1u << u.log_size, bytes = size * u.elements;
  va::each_lane(w, u, mask, numbers, [&](uint32_t lane, const va_texture &t) {
    const uint8_t *place = va::place_of(w, u, lane, t, coords, bytes, va::TexelAccess::kLoad);
    for (uint32_t n = 0; n < u.elements; n++) {
      uint64_t value = 0;
      if (place) std::memcpy(&value, place + n * size, size);
      data[n * VA_LANES + lane] = value;
    }
  });
}

void va_h_surface_store(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *numbers,
                        const int32_t *coords, const uint64_t *data) {
  const va::Use u(info);
  const uint32_t size = 1u << u.log_size, bytes = size * u.elements;
  va::each_lane(w, u, mask, numbers, [&](uint32_t lane, const va_texture &t) {
    uint8_t *place = va::place_of(w, u, lane, t, coords, bytes, va::TexelAccess::kStore);
    if (!place) return;
    for (uint32_t n = 0; n < u.elements; n++)
      std::memcpy(place + n * size, &data[n * VA_LANES + lane], size);
  });
}

void va_h_surface_put(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *numbers,
                      const int32_t *coords, const uint64_t *data) {
  const va::Use u(info);
  va::each_lane(w, u, mask, numbers, [&](uint32_t lane, const va_texture &t) {
    const uint32_t size = va::channel_bytes(t.format), kind = va::texel_type(t.format);
    if (u.type && u.type != kind) {
      char text[96];
      snprintf(text, sizeof text, "a store of %s to a surface of %s", va::kTypeNames[u.type],
               va::kTypeNames[kind]);
      va::fault(w, VA_FAULT_ILLEGAL_INSTRUCTION, u.site, lane, 0, 0, 0, false, text);
    }
    uint8_t *place =
        va::place_of(w, u, lane, t, coords, size * t.channels, va::TexelAccess::kStore);
    if (!place) return;
    for (uint32_t c = 0; c < t.channels; c++) {
      uint64_t bits = c < u.elements ? data[c * VA_LANES + lane] : 0;
      va::put_channel(t, static_cast<uint32_t>(bits), place + c * size);
    }
  });
}

void va_h_surface_reduce(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *numbers,
                         const int32_t *coords, const uint64_t *data) {
  const va::Use u(info);
  va::each_lane(w, u, mask, numbers, [&](uint32_t lane, const va_texture &t) {
    uint32_t bytes = 1u << u.log_size;
    if (u.formatted && t.channels * va::channel_bytes(t.format) != bytes)
      va::fault(w, VA_FAULT_ILLEGAL_INSTRUCTION, u.site, lane, 0, 0, 0, false,
                "a formatted reduction whose operand is not as wide as a texel");
    uint8_t *place = va::place_of(w, u, lane, t, coords, bytes, va::TexelAccess::kReduce);
    bool is_signed = u.formatted ? va::texel_type(t.format) == 2 : u.type == 2;
    if (place) va::reduce(place, data[lane], u, is_signed);
  });
}

}  // extern "C"

namespace va {

#define VA_ADDRESS(...) reinterpret_cast<const void *>(&__VA_ARGS__)

extern const HelperEntry kSurfaceHelpers[] = {
    {"va_h_surface_load", VA_ADDRESS(va_h_surface_load)},
    {"va_h_surface_store", VA_ADDRESS(va_h_surface_store)},
    {"va_h_surface_put", VA_ADDRESS(va_h_surface_put)},
    {"va_h_surface_reduce", VA_ADDRESS(va_h_surface_reduce)},
    {nullptr, nullptr}};

}  // namespace va
