// Included by mma_fast.cpp and mma_plain.cpp: products of a warp's registers, for machine code.
// mma.h says what there is, va100.numerics.fragments where elements are.
#pragma once

#include "mma_exact.h"
#include "mma_unpack.h"

namespace va {
namespace mma {
namespace {

constexpr uint32_t kLanes = VA_LANES;

// ------------------------------------------------------------------ registers to matrices

// Four lanes of a register hold 16 bytes of one row.
template <int Rows>
VA_INLINE void gather_a(const void *registers, uint32_t count, uint32_t row_bytes, void *to) {
  auto *from = static_cast<const uint8_t *>(registers);
  auto *out = static_cast<uint8_t *>(to);
  constexpr uint32_t kTall = Rows / 8;
  for (uint32_t r = 0; r < count; r++)
    for (uint32_t g = 0; g < 8; g++)
      __builtin_memcpy(out + (g + 8 * (r % kTall)) * row_bytes + 16 * (r / kTall),
                       from + (r * 8 + g) * 16, 16);
}

// To rows of eight columns.
template <typename Raw>
VA_INLINE void gather_b(const void *registers, uint32_t count, Raw *to) {
  constexpr uint32_t kPer = 16 / sizeof(Raw);  // elements of four lanes
  auto *from = static_cast<const Raw *>(registers);
  for (uint32_t r = 0; r < count; r++)
    for (uint32_t g = 0; g < 8; g++)
      for (uint32_t k = 0; k < kPer; k++) to[(kPer * r + k) * 8 + g] = from[(r * 8 + g) * kPer + k];
}

// 32-bit sums: register i of lane 4g + t is row g + 8 (i / 2), column 2t + i % 2.
template <int Rows, typename Word>
VA_INLINE void gather_c(const void *registers, Word *to) {
  auto *from = static_cast<const Word *>(registers);
  for (uint32_t tile = 0; tile < Rows / 8; tile++)
    for (uint32_t lane = 0; lane < kLanes; lane++)
      for (uint32_t i = 0; i < 2; i++)
        to[tile * 64 + 2 * lane + i] = from[(2 * tile + i) * kLanes + lane];
}
template <int Rows, typename Word>
VA_INLINE void scatter_c(const Word *from, void *registers) {
  auto *to = static_cast<Word *>(registers);
  for (uint32_t tile = 0; tile < Rows / 8; tile++)
    for (uint32_t i = 0; i < 2; i++)
      for (uint32_t lane = 0; lane < kLanes; lane++)
        to[(2 * tile + i) * kLanes + lane] = from[tile * 64 + 2 * lane + i];
}

// f16 sums: a register holds eight rows of eight as they lie in the matrix.
VA_INLINE void gather_half_c(const void *registers, float *to) {
  auto *from = static_cast<const uint16_t *>(registers);
  for (uint32_t i = 0; i < 128; i++) to[i] = widen<F16>(from[i]);
}
VA_INLINE void scatter_half_c(const float *from, void *registers) {
  auto *to = static_cast<uint16_t *>(registers);
  for (uint32_t i = 0; i < 128; i++) to[i] = static_cast<uint16_t>(half_bits(from[i]));
}

// ------------------------------------------------------------------ sparse metadata

struct Pattern {
  uint32_t chunk;     // dense elements a nibble speaks of
  uint32_t chunks;    // of a row
  bool word_rows;     // a word holds row g in its lower half and row g + 8 in its upper
};

// The dense k of compressed element i of a row; false where the nibble names no pair.
VA_INLINE bool decode_nibble(uint32_t chunk, uint32_t nibble, bool ordered, uint32_t base,
                             uint32_t *to) {
  uint32_t low = nibble & 3, high = nibble >> 2;
  if (chunk == 2) {
    to[0] = base + (low >> 1);
    return nibble == 0x4 || nibble == 0xe;
  }
  uint32_t width = chunk / 4;
  for (uint32_t j = 0; j < width; j++) {
    to[j] = base + width * low + j;
    to[width + j] = base + width * high + j;
  }
  return ordered ? low < high : low != high;
}

// Fills 16 rows of indices; returns the first lane with bad metadata, or -1.
VA_INLINE int32_t decode_metadata(const Pattern &p, const uint32_t *words, uint32_t selector,
                                  uint32_t *index) {
  bool ordered = selector & kOrderedMetadata;
  uint32_t f = selector & 0xff, kept = p.chunk / 2, row_count = p.chunks * kept;
  uint32_t per_lane = p.word_rows ? 4 : 8;
  uint32_t lanes_a_row = p.chunks / per_lane;
  int32_t bad = -1;
  for (uint32_t row = 0; row < 16; row++)
    for (uint32_t c = 0; c < p.chunks; c++) {
      uint32_t h = c / per_lane, g = row % 8, upper = row / 8;
      uint32_t lane, shift = 4 * (c % per_lane);
      if (p.word_rows) {
        lane = 4 * g + lanes_a_row * f + h;
        shift += 16 * upper;
      } else {
        lane = 4 * g + (lanes_a_row == 2 ? 2 * h : 2 * f) + upper;
      }
      uint32_t nibble = words[lane] >> shift & 15;
      bool good = decode_nibble(p.chunk, nibble, ordered, p.chunk * c,
                                index + row * row_count + kept * c);
      if (!good && bad < 0) bad = static_cast<int32_t>(lane);
    }
  return bad;
}

// ------------------------------------------------------------------ floating point

template <int Rows, int Depth, int B>
struct Unpacked {
  alignas(32) float a_value[Rows * Depth], b_value[B * 8];
  alignas(32) int32_t a_exponent[Rows * Depth], b_exponent[B * 8];
  alignas(32) float a_significand[Rows * Depth], b_significand[B * 8];
  alignas(32) float a_special[Rows * Depth], b_special[B * 8];

  Terms a() { return {a_value, a_exponent, a_significand, a_special}; }
  Terms b() { return {b_value, b_exponent, b_significand, b_special}; }
};

// Depth is that of a, which is half of b's where a is sparse.
template <typename Kind, int Depth, bool Sparse>
void aligned_product(const void *a, const void *b, const void *c, void *d, const uint32_t *index) {
  using Raw = typename Kind::Raw;
  using Bits = typename Kind::Bits;
  constexpr int kB = Sparse ? 2 * Depth : Depth;
  constexpr uint32_t kRegisterDepth = 16 / sizeof(Raw);
  alignas(32) Raw raw_a[16 * Depth], raw_b[kB * 8];
  alignas(32) float sums[128];
  Unpacked<16, Depth, kB> parts;
  gather_a<16>(a, 2 * Depth / kRegisterDepth, Depth * sizeof(Raw), raw_a);
  gather_b<Raw>(b, kB / kRegisterDepth, raw_b);
  if constexpr (Kind::kHalfSum)
    gather_half_c(c, sums);
  else
    gather_c<16, float>(c, sums);
  bool wide = unpack<Bits>(raw_a, 16 * Depth, parts.a());
  wide |= unpack<Bits>(raw_b, kB * 8, parts.b());
  if (wide) {
    unpack_wide<Bits>(raw_a, 16 * Depth, parts.a());
    unpack_wide<Bits>(raw_b, kB * 8, parts.b());
    rows<Kind, true>(parts.a(), Depth, parts.b(), Sparse ? index : nullptr, 16, Depth, sums);
  } else {
    rows<Kind, false>(parts.a(), Depth, parts.b(), Sparse ? index : nullptr, 16, Depth, sums);
  }
  if constexpr (Kind::kHalfSum)
    scatter_half_c(sums, d);
  else
    scatter_c<16, float>(sums, d);
}

template <typename Kind, int Depth>
void aligned_warp(const void *a, const void *b, const void *c, void *d) {
  aligned_product<Kind, Depth, false>(a, b, c, d, nullptr);
}

template <typename Kind, int Dense>
int32_t aligned_sparse(const void *a, const void *b, const void *c, void *d, const void *metadata,
                       uint32_t selector) {
  constexpr uint32_t kChunk = sizeof(typename Kind::Raw) == 2 ? 4 : 2;
  uint32_t index[16 * Dense / 2];
  int32_t bad = decode_metadata({kChunk, Dense / kChunk, true},
                                static_cast<const uint32_t *>(metadata), selector, index);
  if (bad < 0) aligned_product<Kind, Dense / 2, true>(a, b, c, d, index);
  return bad;
}

// ------------------------------------------------------------------ f64 and the Volta shape

template <unsigned Mode>
void double_warp(const void *a, const void *b, const void *c, void *d) {
  auto *x = static_cast<const double *>(a), *y = static_cast<const double *>(b);
  alignas(32) double columns[4 * 8], sums[64];
  for (uint32_t k = 0; k < 4; k++)
    for (uint32_t n = 0; n < 8; n++) columns[8 * k + n] = y[4 * n + k];
  gather_c<8, double>(c, sums);
  double_rows<Mode>(x, 4, columns, 8, 4, sums);
  scatter_c<8, double>(sums, d);
}

template <bool RowMajor>
VA_INLINE void volta_gather(const void *registers, uint32_t quad, float *to, uint32_t k_step,
                            uint32_t other_step) {
  auto *from = static_cast<const uint16_t *>(registers);
  for (uint32_t high = 0; high < 2; high++)
    for (uint32_t q = 0; q < 4; q++)
      for (uint32_t i = 0; i < 4; i++) {
        uint32_t lane = 16 * high + 4 * quad + q;
        float value = widen<F16>(from[2 * (i / 2 * kLanes + lane) + i % 2]);
        uint32_t k = RowMajor ? i : q, other = (RowMajor ? q : i) + 4 * high;
        to[k * k_step + other * other_step] = value;
      }
}

// Offset of element i of a lane in an 8 x 8 matrix, f32 or f16.
VA_INLINE uint32_t volta_place(bool half, uint32_t high, uint32_t q, uint32_t i) {
  if (half) return 8 * (q + 4 * high) + i;
  return 8 * ((q & 1) + (i & 2) + 4 * high) + (i & 4) + (q & 2) + (i & 1);
}

template <bool HalfD, bool HalfC, bool ARow, bool BRow>
void volta_warp(const void *a, const void *b, const void *c, void *d) {
  for (uint32_t quad = 0; quad < 4; quad++) {
    float x[8 * 4], y[4 * 8], sums[64];
    volta_gather<ARow>(a, quad, x, 1, 4);
    volta_gather<!BRow>(b, quad, y, 8, 1);
    for (uint32_t high = 0; high < 2; high++)
      for (uint32_t q = 0; q < 4; q++)
        for (uint32_t i = 0; i < 8; i++) {
          uint32_t lane = 16 * high + 4 * quad + q;
          float *to = sums + volta_place(HalfC, high, q, i);
          if constexpr (HalfC)
            *to = widen<F16>(static_cast<const uint16_t *>(c)[2 * (i / 2 * kLanes + lane) + i % 2]);
          else
            *to = static_cast<const float *>(c)[i * kLanes + lane];
        }
    volta_rows<HalfD>(x, 4, y, 8, 4, sums);
    for (uint32_t high = 0; high < 2; high++)
      for (uint32_t q = 0; q < 4; q++)
        for (uint32_t i = 0; i < 8; i++) {
          uint32_t lane = 16 * high + 4 * quad + q;
          float sum = sums[volta_place(HalfD, high, q, i)];
          if constexpr (HalfD)
            static_cast<uint16_t *>(d)[2 * (i / 2 * kLanes + lane) + i % 2] =
                static_cast<uint16_t>(half_bits(sum));
          else
            static_cast<uint32_t *>(d)[i * kLanes + lane] = canonical(sum);
        }
  }
}

// ------------------------------------------------------------------ integers and bits

// Elements of four or eight bits as floats, which hold their sums exactly.
template <int Bits, bool Signed>
VA_INLINE void unpack_integers(const uint8_t *from, uint32_t count, float *to) {
  if constexpr (Bits == 8) {
    for (uint32_t i = 0; i < count; i++)
      to[i] = Signed ? static_cast<float>(static_cast<int8_t>(from[i])) : static_cast<float>(from[i]);
  } else {
    for (uint32_t i = 0; i < count / 2; i++)
      for (uint32_t j = 0; j < 2; j++) {
        auto up = static_cast<uint8_t>(j ? from[i] & 0xf0 : from[i] << 4);
        int32_t value = Signed ? static_cast<int8_t>(up) / 16 : up / 16;
        to[2 * i + j] = static_cast<float>(value);
      }
  }
}

template <int Bits, bool ASigned, bool BSigned, bool Sat, int Rows, int Depth, bool Sparse>
void integer_product(const void *a, const void *b, const void *c, void *d, const uint32_t *index) {
  constexpr int kB = Sparse ? 2 * Depth : Depth;
  constexpr uint32_t kRegisterDepth = 128 / Bits;
  constexpr uint32_t kTall = Rows / 8;
  alignas(32) uint8_t raw_a[Rows * Depth * Bits / 8], raw_b[kB * Bits];
  alignas(32) float x[Rows * Depth], across[8 * kB], y[kB * 8];
  alignas(32) int32_t sums[Rows * 8];
  gather_a<Rows>(a, kTall * Depth / kRegisterDepth, Depth * Bits / 8, raw_a);
  gather_a<8>(b, kB / kRegisterDepth, kB * Bits / 8, raw_b);  // its columns as rows
  unpack_integers<Bits, ASigned>(raw_a, Rows * Depth, x);
  unpack_integers<Bits, BSigned>(raw_b, kB * 8, across);
  for (uint32_t k = 0; k < kB; k++)
    for (uint32_t n = 0; n < 8; n++) y[8 * k + n] = across[n * kB + k];
  gather_c<Rows, int32_t>(c, sums);
  integer_rows<Sat>(x, Depth, y, Sparse ? index : nullptr, Rows, Depth, Depth, sums);
  scatter_c<Rows, int32_t>(sums, d);
}

template <int Bits, bool ASigned, bool BSigned, bool Sat, int Rows, int Depth>
void integer_warp(const void *a, const void *b, const void *c, void *d) {
  integer_product<Bits, ASigned, BSigned, Sat, Rows, Depth, false>(a, b, c, d, nullptr);
}

template <int Bits, bool ASigned, bool BSigned, bool Sat, int Dense>
int32_t integer_sparse(const void *a, const void *b, const void *c, void *d, const void *metadata,
                       uint32_t selector) {
  constexpr uint32_t kChunk = Bits == 8 ? 4 : 8;
  uint32_t index[16 * Dense / 2];
  int32_t bad = decode_metadata({kChunk, Dense / kChunk, false},
                                static_cast<const uint32_t *>(metadata), selector, index);
  if (bad < 0)
    integer_product<Bits, ASigned, BSigned, Sat, 16, Dense / 2, true>(a, b, c, d, index);
  return bad;
}

template <bool And, int Rows, int Depth>
void bit_warp(const void *a, const void *b, const void *c, void *d) {
  constexpr uint32_t kWords = Depth / 64, kTall = Rows / 8;
  alignas(32) uint64_t x[Rows * kWords], y[8 * kWords];
  alignas(32) int32_t sums[Rows * 8];
  gather_a<Rows>(a, kTall * Depth / 128, Depth / 8, x);
  gather_a<8>(b, Depth / 128, Depth / 8, y);
  gather_c<Rows, int32_t>(c, sums);
  bit_rows<And>(x, y, Rows, kWords, sums);
  scatter_c<Rows, int32_t>(sums, d);
}

}  // namespace
}  // namespace mma
}  // namespace va
