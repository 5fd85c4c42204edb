// Matrices moved between memory and the registers of a warp: ldmatrix, wmma.load, wmma.store; and
// the faults of instructions that all lanes must execute together.  Products are in mma*.cpp.
//
// Registers of a warp lie one after another, 32 lanes each.  Which lane holds what comes with the
// call, as a table made from src/va100/numerics/tiles.py.
#include <cstdio>
#include <cstring>

#include "worker.h"

extern "C" {
void va_h_missing(va_warp *w, uint32_t site, uint32_t mask, const char *name);
uint64_t va_h_same(va_warp *w, uint32_t site, uint32_t mask, const uint64_t *value,
                   const char *what);
void va_h_fraction(va_warp *w, uint32_t site, uint64_t stride, uint32_t bits);
void va_h_metadata(va_warp *w, uint32_t site, uint32_t lane, const uint32_t *metadata,
                   uint64_t shape);
void va_h_ldmatrix(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *address,
                   uint32_t *out, uint32_t transposed);
}

namespace va {
namespace {

enum Space : uint32_t { kGeneric = 0, kGlobal = 1, kShared = 2 };

constexpr uint32_t kRows = 8;       // of a matrix of ldmatrix
constexpr uint32_t kRowBytes = 16;  // 8 elements of 16 bits
constexpr size_t kTileBytes = 4096;

// How a tile lies in memory, and which of its words each lane holds.  `place` counts words of the
// tile without the gaps between its lines; word w of lane l is place[w * 32 + l].
struct Geometry {
  uint16_t words, lines, line_bytes, per_register;
  uint16_t place[];
};

inline bool owned(uint64_t address) {
  uint64_t t = address - VA_ARENA_BASE;
  if (t >> VA_ARENA_SHIFT) return false;
  return *reinterpret_cast<const uint8_t *>(VA_SHADOW_BASE + (t >> VA_GRANULE_SHIFT)) != 0;
}

// Whether the tile may be touched whole: every line aligned and inside what is allowed.
template <Space S>
bool allowed(const va_warp *w, uint64_t base, uint64_t pitch, const Geometry &g, uint32_t unit) {
  if ((base | pitch) & (unit - 1)) return false;
  for (uint32_t line = 0; line < g.lines; line++) {
    uint64_t at = base + line * pitch;
    if (S == kShared) {
      if (at >> 32 || at + g.line_bytes > w->shared_bytes) return false;
    } else if (!owned(at) || !owned(at + g.line_bytes - 1)) {
      return false;
    }
  }
  return true;
}

// Word by word, as the lanes would: blames the first that may not be touched.
template <Space S>
void check_words(va_warp *w, uint64_t info, uint64_t base, uint64_t pitch, const Geometry &g,
                 uint32_t unit, bool write) {
  uint32_t site = static_cast<uint32_t>(info), units = g.line_bytes / unit;
  for (uint32_t word = 0; word < g.words; word++) {
    for (uint32_t pass = 0; pass < 2 * VA_LANES; pass++) {
      uint32_t lane = pass % VA_LANES, place = g.place[word * VA_LANES + lane];
      uint64_t at = base + place / units * pitch + place % units * unit;
      bool alignment = pass < VA_LANES;
      bool inside = S == kShared ? !(at >> 32) && at + unit <= w->shared_bytes
                                 : va_arena_accessible(at, unit) != 0;
      if (alignment ? !(at & (unit - 1)) : inside) continue;
      fault(w, alignment ? VA_FAULT_MISALIGNED : VA_FAULT_ILLEGAL_ADDRESS, site, lane, at, unit,
            static_cast<uint32_t>(info >> 36) & 7, write, nullptr);
    }
  }
}

// Register of a word's part: words of one register stand side by side in it.
inline uint32_t slot(const Geometry &g, uint32_t i) {
  if (g.per_register == 1) return i;
  uint32_t word = i / VA_LANES, lane = i % VA_LANES;
  return (word / g.per_register * VA_LANES + lane) * g.per_register + word % g.per_register;
}

template <typename T, Space S>
void load_tile(va_warp *w, uint64_t info, uint32_t mask, uint64_t base, uint64_t pitch,
               const Geometry *geometry, T *out) {
  if (!mask) return;
  const Geometry &g = *geometry;
  if (!allowed<S>(w, base, pitch, g, sizeof(T)))
    check_words<S>(w, info, base, pitch, g, sizeof(T), false);
  alignas(64) T tile[kTileBytes / sizeof(T)];
  auto *bytes = reinterpret_cast<uint8_t *>(tile);
  const uint8_t *from = S == kShared ? w->shared + base : reinterpret_cast<const uint8_t *>(base);
  for (uint32_t line = 0; line < g.lines; line++)
    std::memcpy(bytes + line * g.line_bytes, from + line * pitch, g.line_bytes);
  if (g.per_register == 1) {
    for (uint32_t i = 0; i < g.words * VA_LANES; i++) out[i] = tile[g.place[i]];
  } else {
    for (uint32_t i = 0; i < g.words * VA_LANES; i++) out[slot(g, i)] = tile[g.place[i]];
  }
}

template <typename T, Space S>
void store_tile(va_warp *w, uint64_t info, uint32_t mask, uint64_t base, uint64_t pitch,
                const Geometry *geometry, const T *in) {
  if (!mask) return;
  const Geometry &g = *geometry;
  if (!allowed<S>(w, base, pitch, g, sizeof(T)))
    check_words<S>(w, info, base, pitch, g, sizeof(T), true);
  alignas(64) T tile[kTileBytes / sizeof(T)];
  auto *bytes = reinterpret_cast<uint8_t *>(tile);
  for (uint32_t i = 0; i < g.words * VA_LANES; i++) tile[g.place[i]] = in[slot(g, i)];
  uint8_t *to = S == kShared ? w->shared + base : reinterpret_cast<uint8_t *>(base);
  for (uint32_t line = 0; line < g.lines; line++)
    std::memcpy(to + line * pitch, bytes + line * g.line_bytes, g.line_bytes);
}

}  // namespace
}  // namespace va

extern "C" {

void va_h_missing(va_warp *w, uint32_t site, uint32_t mask, const char *name) {
  char text[256];
  snprintf(text, sizeof text,
           "%s needs all 32 lanes of the warp; lanes 0x%08x execute it, lane %d does not", name,
           mask, __builtin_ctz(~mask));
  va::fault(w, VA_FAULT_ILLEGAL_INSTRUCTION, site, static_cast<uint32_t>(__builtin_ctz(mask)), 0,
            0, 0, false, text);
}

// Says which chunk of compressed A is wrong; `shape` packs k, the bits of an element, the selector
// and whether pairs must ascend, eight bits each but k, which has sixteen.
void va_h_metadata(va_warp *w, uint32_t site, uint32_t lane, const uint32_t *metadata,
                   uint64_t shape) {
  uint32_t k = shape & 0xffff, bits = shape >> 16 & 0xff, selector = shape >> 24 & 0xff;
  bool ordered = shape >> 32 & 1;
  uint32_t chunks = bits == 32 ? k / 2 : bits == 4 ? k / 8 : k / 4;
  uint32_t nibble = 0, value = 0;
  for (; nibble < 8; nibble++) {
    value = metadata[lane] >> (4 * nibble) & 15;
    uint32_t first = value & 3, second = value >> 2;
    bool legal = bits == 32 ? value == 0x4 || value == 0xe : ordered ? first < second
                                                                     : first != second;
    if (!legal) break;
  }
  uint32_t row = lane / 4 + 8 * (bits >= 16 ? nibble / 4 : lane & 1);
  uint32_t chunk = nibble;
  if (bits >= 16) chunk = nibble % 4 + 4 * (lane % 4 - chunks / 4 * selector);
  if (bits < 16 && chunks > 8) chunk += 8 * (lane >> 1 & 1);
  char text[160];
  snprintf(text, sizeof text, "metadata 0x%x of row %u, chunk %u, in lane %u: %s", value, row,
           chunk, lane,
           bits == 32 ? "tf32 takes 0x4 and 0xe"
           : ordered  ? "its two positions must ascend"
                      : "its two positions must differ");
  va::fault(w, VA_FAULT_ILLEGAL_INSTRUCTION, site, lane, 0, 0, 0, false, text);
}

// The value that all lanes must give alike.
uint64_t va_h_same(va_warp *w, uint32_t site, uint32_t mask, const uint64_t *value,
                   const char *what) {
  for (uint32_t lane = 1; mask && lane < VA_LANES; lane++) {
    if (value[lane] == value[0]) continue;
    char text[160];
    snprintf(text, sizeof text,
             "lane %u gives %s 0x%llx, lane 0 0x%llx; all lanes must give the same", lane, what,
             static_cast<unsigned long long>(value[lane]),
             static_cast<unsigned long long>(value[0]));
    va::fault(w, VA_FAULT_ILLEGAL_INSTRUCTION, site, lane, 0, 0, 0, false, text);
  }
  return value[0];
}

void va_h_fraction(va_warp *w, uint32_t site, uint64_t stride, uint32_t bits) {
  char text[160];
  snprintf(text, sizeof text,
           "a stride of %llu elements of %u bits is no whole number of bytes",
           static_cast<unsigned long long>(stride), bits);
  va::fault(w, VA_FAULT_ILLEGAL_INSTRUCTION, site, 0, 0, 0, 0, false, text);
}

// Lanes 8m to 8m + 7 give the rows of matrix m; a lane gets two neighbours of a row, or of a column
// when `transposed`.
void va_h_ldmatrix(va_warp *w, uint64_t info, uint32_t mask, const uint64_t *address,
                   uint32_t *out, uint32_t transposed) {
  if (!mask) return;
  uint32_t rows = (static_cast<uint32_t>(info >> 32) & 15) * va::kRows;
  bool generic = (static_cast<uint32_t>(info >> 36) & 7) == va::kGeneric;
  uint64_t window = generic ? reinterpret_cast<uint64_t>(w->shared) : 0;
  const uint8_t *shared = w->shared;
  uint64_t room = w->shared_bytes;
  for (uint32_t lane = 0; lane < rows; lane++) {
    if (!(address[lane] & (va::kRowBytes - 1))) continue;
    va::fault(w, VA_FAULT_MISALIGNED, static_cast<uint32_t>(info), lane, address[lane] - window,
              va::kRowBytes, va::kShared, false, nullptr);
  }
  for (uint32_t lane = 0; lane < rows; lane++) {
    uint64_t at = address[lane] - window;
    if (__builtin_expect(at >> 32 || at + va::kRowBytes > room, 0))
      va::fault(w, VA_FAULT_ILLEGAL_ADDRESS, static_cast<uint32_t>(info), lane, at,
                va::kRowBytes, va::kShared, false, nullptr);
    if (!transposed) std::memcpy(out + 4 * lane, shared + at, va::kRowBytes);
  }
  if (!transposed) return;
  for (uint32_t matrix = 0; matrix < rows / va::kRows; matrix++) {
    auto *to = reinterpret_cast<uint16_t *>(out + matrix * VA_LANES);
    for (uint32_t row = 0; row < va::kRows; row++) {
      uint16_t line[8];
      std::memcpy(line, shared + (address[matrix * va::kRows + row] - window), sizeof line);
      for (uint32_t column = 0; column < 8; column++) to[8 * column + row] = line[column];
    }
  }
}

}  // extern "C"

namespace va {

#define VA_ADDRESS(...) reinterpret_cast<const void *>(&__VA_ARGS__)
#define VA_TILE(bits, T)                                              \
  {"va_h_ldtile_generic_" #bits, VA_ADDRESS(load_tile<T, kGeneric>)},   \
      {"va_h_ldtile_global_" #bits, VA_ADDRESS(load_tile<T, kGlobal>)}, \
      {"va_h_ldtile_shared_" #bits, VA_ADDRESS(load_tile<T, kShared>)}, \
      {"va_h_sttile_generic_" #bits, VA_ADDRESS(store_tile<T, kGeneric>)}, \
      {"va_h_sttile_global_" #bits, VA_ADDRESS(store_tile<T, kGlobal>)},   \
      {"va_h_sttile_shared_" #bits, VA_ADDRESS(store_tile<T, kShared>)},

extern const HelperEntry kMatrixHelpers[];
const HelperEntry kMatrixHelpers[] = {
    VA_TILE(8, uint8_t)
    VA_TILE(16, uint16_t)
    VA_TILE(32, uint32_t)
    VA_TILE(64, uint64_t)
    {"va_h_missing", VA_ADDRESS(va_h_missing)},
    {"va_h_same", VA_ADDRESS(va_h_same)},
    {"va_h_fraction", VA_ADDRESS(va_h_fraction)},
    {"va_h_metadata", VA_ADDRESS(va_h_metadata)},
    {"va_h_ldmatrix", VA_ADDRESS(va_h_ldmatrix)},
    {nullptr, nullptr}};

}  // namespace va
