// Included by mma_fast.cpp and mma_plain.cpp, last: the kernels and helpers of one build.
#pragma once

#include "mma_kernels.h"
#include "mma_warp.h"

namespace va {
namespace mma {
namespace {

template <typename Kind>
bool unpack_kind(const void *raw, size_t count, const Terms &to) {
  return unpack<typename Kind::Bits>(static_cast<const typename Kind::Raw *>(raw), count, to);
}
bool unpack_any(uint32_t kind, const void *raw, size_t count, const Terms &to) {
  if (kind == VA_MMA_BF16_F32) return unpack_kind<BrainToSingle>(raw, count, to);
  if (kind == VA_MMA_TF32_F32) return unpack_kind<Tf32ToSingle>(raw, count, to);
  return unpack_kind<HalfToSingle>(raw, count, to);
}

template <typename Kind>
void prepare_kind(const void *raw, size_t count, const Terms &to) {
  unpack_wide<typename Kind::Bits>(static_cast<const typename Kind::Raw *>(raw), count, to);
}
void prepare_any(uint32_t kind, const void *raw, size_t count, const Terms &to) {
  if (kind == VA_MMA_BF16_F32) return prepare_kind<BrainToSingle>(raw, count, to);
  if (kind == VA_MMA_TF32_F32) return prepare_kind<Tf32ToSingle>(raw, count, to);
  return prepare_kind<HalfToSingle>(raw, count, to);
}

template <typename Kind>
void rows_of_kind(bool wide, const Terms &a, size_t stride, const Terms &b, const uint32_t *index,
                  size_t count, size_t depth, float *sums) {
  if (wide)
    rows<Kind, true>(a, stride, b, index, count, depth, sums);
  else
    rows<Kind, false>(a, stride, b, index, count, depth, sums);
}
void rows_of_any(uint32_t kind, bool wide, const Terms &a, size_t stride, const Terms &b,
                 const uint32_t *index, size_t count, size_t depth, float *sums) {
  switch (kind) {
    case VA_MMA_F16_F16:
      return rows_of_kind<HalfToHalf>(wide, a, stride, b, index, count, depth, sums);
    case VA_MMA_TF32_F32:
      return rows_of_kind<Tf32ToSingle>(wide, a, stride, b, index, count, depth, sums);
    default:  // f16 and bf16 differ in how they are unpacked
      return rows_of_kind<HalfToSingle>(wide, a, stride, b, index, count, depth, sums);
  }
}

void double_rows_any(uint32_t flags, const double *a, size_t stride, const double *b, size_t count,
                     size_t depth, double *sums) {
  if (flags & VA_MMA_RZ) return double_rows<kZero>(a, stride, b, count, depth, sums);
  if (flags & VA_MMA_RM) return double_rows<kDown>(a, stride, b, count, depth, sums);
  if (flags & VA_MMA_RP) return double_rows<kUp>(a, stride, b, count, depth, sums);
  return double_rows<kNearest>(a, stride, b, count, depth, sums);
}

void integer_rows_any(bool sat, const float *a, size_t stride, const float *b,
                      const uint32_t *index, size_t count, size_t depth, size_t step,
                      int32_t *sums) {
  if (sat)
    integer_rows<true>(a, stride, b, index, count, depth, step, sums);
  else
    integer_rows<false>(a, stride, b, index, count, depth, step, sums);
}

void bit_rows_any(bool conjunction, const uint64_t *a, const uint64_t *b, size_t count,
                  size_t words, int32_t *sums) {
  if (conjunction)
    bit_rows<true>(a, b, count, words, sums);
  else
    bit_rows<false>(a, b, count, words, sums);
}

void volta_rows_any(bool half, const float *a, size_t stride, const float *b, size_t count,
                    size_t depth, float *sums) {
  if (half)
    volta_rows<true>(a, stride, b, count, depth, sums);
  else
    volta_rows<false>(a, stride, b, count, depth, sums);
}

void widen_halves(const uint16_t *from, size_t count, float *to) {
  for (size_t i = 0; i < count; i++) to[i] = widen<F16>(from[i]);
}
void narrow_halves(const float *from, size_t count, uint16_t *to) {
  for (size_t i = 0; i < count; i++) to[i] = static_cast<uint16_t>(half_bits(from[i]));
}

#define VA_ADDRESS(...) reinterpret_cast<const void *>(static_cast<MmaHelper>(&__VA_ARGS__))
#define VA_SPARSE_ADDRESS(...) \
  reinterpret_cast<const void *>(static_cast<MmaSparseHelper>(&__VA_ARGS__))

#define VA_ALIGNED16(name, Kind)                                                        \
  {"va_mma_m16n8k8_" name, VA_ADDRESS(aligned_warp<Kind, 8>)},                          \
      {"va_mma_m16n8k16_" name, VA_ADDRESS(aligned_warp<Kind, 16>)},                    \
      {"va_mma_sp_m16n8k16_" name, VA_SPARSE_ADDRESS(aligned_sparse<Kind, 16>)},        \
      {"va_mma_sp_m16n8k32_" name, VA_SPARSE_ADDRESS(aligned_sparse<Kind, 32>)},

#define VA_INTEGER_SAT(name, B, A1, B1, S, K1, K2, K3)                                       \
  {"va_mma_m8n8k" #K1 "_" name, VA_ADDRESS(integer_warp<B, A1, B1, S, 8, K1>)},              \
      {"va_mma_m16n8k" #K1 "_" name, VA_ADDRESS(integer_warp<B, A1, B1, S, 16, K1>)},        \
      {"va_mma_m16n8k" #K2 "_" name, VA_ADDRESS(integer_warp<B, A1, B1, S, 16, K2>)},        \
      {"va_mma_sp_m16n8k" #K2 "_" name, VA_SPARSE_ADDRESS(integer_sparse<B, A1, B1, S, K2>)}, \
      {"va_mma_sp_m16n8k" #K3 "_" name, VA_SPARSE_ADDRESS(integer_sparse<B, A1, B1, S, K3>)},
#define VA_INTEGER(name, B, A1, B1, K1, K2, K3)             \
  VA_INTEGER_SAT(name, B, A1, B1, false, K1, K2, K3)        \
  VA_INTEGER_SAT(name "_sat", B, A1, B1, true, K1, K2, K3)

#define VA_BITS(name, And)                                                   \
  {"va_mma_m8n8k128_" name, VA_ADDRESS(bit_warp<And, 8, 128>)},              \
      {"va_mma_m16n8k128_" name, VA_ADDRESS(bit_warp<And, 16, 128>)},        \
      {"va_mma_m16n8k256_" name, VA_ADDRESS(bit_warp<And, 16, 256>)},

#define VA_VOLTA(name, HalfD, HalfC)                                                           \
  {"va_mma_m8n8k4_f16_" name "_row_row", VA_ADDRESS(volta_warp<HalfD, HalfC, true, true>)},    \
      {"va_mma_m8n8k4_f16_" name "_row_col", VA_ADDRESS(volta_warp<HalfD, HalfC, true, false>)}, \
      {"va_mma_m8n8k4_f16_" name "_col_row", VA_ADDRESS(volta_warp<HalfD, HalfC, false, true>)}, \
      {"va_mma_m8n8k4_f16_" name "_col_col", VA_ADDRESS(volta_warp<HalfD, HalfC, false, false>)},

const HelperEntry kHelpers[] = {
    VA_ALIGNED16("f16_f32", HalfToSingle)
    VA_ALIGNED16("f16_f16", HalfToHalf)
    VA_ALIGNED16("bf16_f32", BrainToSingle)
    {"va_mma_m16n8k4_tf32_f32", VA_ADDRESS(aligned_warp<Tf32ToSingle, 4>)},
    {"va_mma_m16n8k8_tf32_f32", VA_ADDRESS(aligned_warp<Tf32ToSingle, 8>)},
    {"va_mma_sp_m16n8k8_tf32_f32", VA_SPARSE_ADDRESS(aligned_sparse<Tf32ToSingle, 8>)},
    {"va_mma_sp_m16n8k16_tf32_f32", VA_SPARSE_ADDRESS(aligned_sparse<Tf32ToSingle, 16>)},
    {"va_mma_m8n8k4_f64", VA_ADDRESS(double_warp<kNearest>)},
    {"va_mma_m8n8k4_f64_rz", VA_ADDRESS(double_warp<kZero>)},
    {"va_mma_m8n8k4_f64_rm", VA_ADDRESS(double_warp<kDown>)},
    {"va_mma_m8n8k4_f64_rp", VA_ADDRESS(double_warp<kUp>)},
    VA_INTEGER("s8_s32", 8, true, true, 16, 32, 64)
    VA_INTEGER("s8_u8_s32", 8, true, false, 16, 32, 64)
    VA_INTEGER("u8_s8_s32", 8, false, true, 16, 32, 64)
    VA_INTEGER("u8_s32", 8, false, false, 16, 32, 64)
    VA_INTEGER("s4_s32", 4, true, true, 32, 64, 128)
    VA_INTEGER("s4_u4_s32", 4, true, false, 32, 64, 128)
    VA_INTEGER("u4_s4_s32", 4, false, true, 32, 64, 128)
    VA_INTEGER("u4_s32", 4, false, false, 32, 64, 128)
    VA_BITS("b1_xor", false)
    VA_BITS("b1_and", true)
    VA_VOLTA("f32_f32", false, false)
    VA_VOLTA("f32_f16", false, true)
    VA_VOLTA("f16_f16", true, true)
    {nullptr, nullptr}};

constexpr Kernels kKernels = {unpack_any,       prepare_any,  rows_of_any,    double_rows_any,
                              integer_rows_any, bit_rows_any, volta_rows_any, widen_halves,
                              narrow_halves};

}  // namespace
}  // namespace mma
}  // namespace va
