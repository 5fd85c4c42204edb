// What machine code and Python call for matrix multiply-accumulate; the arithmetic's rules are in
// src/va100/numerics/mma_rules.py, and these functions give the same bits.
//
// Machine code.  A warp's registers lie one after another: lane l of register r at [32 * r + l], 32
// bits each (f64: 64).  Which element a lane holds is in src/va100/numerics/fragments.py.
//
//   va_mma_<shape>_<kind>          MmaHelper: a, b, c, d; d may be c
//     m16n8k8 m16n8k16             f16_f32 f16_f16 bf16_f32
//     m16n8k4 m16n8k8              tf32_f32
//     m8n8k4                       f64 f64_rz f64_rm f64_rp
//     m8n8k16 m16n8k16 m16n8k32    s8_s32 s8_u8_s32 u8_s8_s32 u8_s32, each also with _sat
//     m8n8k32 m16n8k32 m16n8k64    s4_s32 s4_u4_s32 u4_s4_s32 u4_s32, each also with _sat
//     m8n8k128 m16n8k128 m16n8k256 b1_xor b1_and
//   va_mma_m8n8k4_f16_<d>_<c>_<a layout>_<b layout>   MmaHelper; <d>_<c> is f32_f32, f32_f16 or
//                                  f16_f16, a layout is row or col
//   va_mma_sp_<shape>_<kind>       MmaSparseHelper; the shape's K is the dense one
//     m16n8k16 m16n8k32            f16_f32 f16_f16 bf16_f32
//     m16n8k8 m16n8k16             tf32_f32
//     m16n8k32 m16n8k64            the eight-bit kinds
//     m16n8k64 m16n8k128           the four-bit kinds
//
// A wmma is made of these; its 8x32x16 shape with a and b, and c's rows and columns, exchanged.
#pragma once

#include <cstdint>

namespace va {

using MmaHelper = void (*)(const void *a, const void *b, const void *c, void *d);

// `metadata` is one register; `selector` the instruction's, with kOrderedMetadata where pairs must
// ascend.  Returns -1, or the lane whose metadata names no pair of elements; d is not written then.
constexpr uint32_t kOrderedMetadata = 0x100;
using MmaSparseHelper = int32_t (*)(const void *a, const void *b, const void *c, void *d,
                                    const void *metadata, uint32_t selector);

}  // namespace va

extern "C" {

enum va_mma_kind : uint32_t {
  VA_MMA_F16_F32,
  VA_MMA_F16_F16,
  VA_MMA_BF16_F32,
  VA_MMA_TF32_F32,
  VA_MMA_F64,
  VA_MMA_INT8,
  VA_MMA_INT4,
  VA_MMA_B1_XOR,
  VA_MMA_B1_AND,
  VA_MMA_VOLTA_F32,
  VA_MMA_VOLTA_F16,
};

enum va_mma_flag : uint32_t {
  VA_MMA_A_SIGNED = 1,
  VA_MMA_B_SIGNED = 2,
  VA_MMA_SATFINITE = 4,
  VA_MMA_RZ = 8,  // f64 only, as the next two
  VA_MMA_RM = 16,
  VA_MMA_RP = 32,
  VA_MMA_PORTABLE = 64,  // use what any processor runs
};

// Stacks of matrices in rows, each without gaps; d = a b + c.  Integers of eight or four bits and
// the zeros and ones of b1 take a byte.  A stride counts matrices' elements from one to the next
// and is zero where one serves all.  With `index`, a is compressed, (m, k) of it: element kk of row
// i meets row index[i * k + kk] of b, which has 2 k rows.
struct va_mma_product {
  uint32_t kind, flags;
  uint64_t batch, m, n, k;
  uint64_t a_stride, b_stride, c_stride;
  const void *a, *b, *c;
  void *d;
  const uint32_t *index;
};

// Returns 0; 1 for an unknown kind or no memory.
int va_mma_multiply(const va_mma_product *product);
}
