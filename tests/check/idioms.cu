// Patterns that programs are made of, each with the mistake that is easy to make in it.
#include "planted.cuh"

// The value is right whoever comes first.
BUG(hidden) { __shared__ int s[64]; s[T] = T; out[T] = T >= 32 ? s[T - 32] : s[T]; }
FIX(hidden) { __shared__ int s[64]; s[T] = T; __syncthreads(); out[T] = T >= 32 ? s[T - 32] : s[T]; }

__device__ inline int warp_sum(int x) {
  for (int k = 16; k; k >>= 1) x += __shfl_down_sync(0xffffffff, x, k);
  return x;
}
BUG(warp_partials) {
  __shared__ int s[2]; int x = warp_sum(in[T]); if (T % 32 == 0) s[T / 32] = x;
  if (T == 0) out[0] = s[0] + s[1];
}
FIX(warp_partials) {
  __shared__ int s[2]; int x = warp_sum(in[T]); if (T % 32 == 0) s[T / 32] = x; __syncthreads();
  if (T == 0) out[0] = s[0] + s[1];
}

BUG(scan_one_buffer) {
  __shared__ int s[64]; s[T] = in[T]; __syncthreads();
  for (int k = 1; k < 64; k *= 2) { int x = T >= k ? s[T - k] : 0; s[T] += x; __syncthreads(); }
  out[T] = s[T];
}
FIX(scan_one_buffer) {
  __shared__ int s[64]; s[T] = in[T]; __syncthreads();
  for (int k = 1; k < 64; k *= 2) {
    int x = T >= k ? s[T - k] : 0; __syncthreads(); s[T] += x; __syncthreads();
  }
  out[T] = s[T];
}

__device__ inline void exchange(int *s, int j, int k) {
  int other = T ^ j;
  if (other > T && (s[T] > s[other]) == !(T & k)) { int x = s[T]; s[T] = s[other]; s[other] = x; }
}
BUG(bitonic) {
  __shared__ int s[64]; s[T] = in[T]; __syncthreads();
  for (int k = 2; k <= 64; k *= 2) { for (int j = k / 2; j; j /= 2) exchange(s, j, k); __syncthreads(); }
  out[T] = s[T];
}
FIX(bitonic) {
  __shared__ int s[64]; s[T] = in[T]; __syncthreads();
  for (int k = 2; k <= 64; k *= 2) for (int j = k / 2; j; j /= 2) { exchange(s, j, k); __syncthreads(); }
  out[T] = s[T];
}

// One part of shared memory for two phases.
BUG(room_reused) {
  __shared__ int s[64]; s[T] = in[T]; __syncthreads(); int x = s[63 - T];
  s[(T + 7) % 64] = x; __syncthreads(); out[T] = s[T];
}
FIX(room_reused) {
  __shared__ int s[64]; s[T] = in[T]; __syncthreads(); int x = s[63 - T]; __syncthreads();
  s[(T + 7) % 64] = x; __syncthreads(); out[T] = s[T];
}

BUG(loop_flag) {
  __shared__ int go; int i = 0;
  do { if (T == 0) go = i < in[1]; __syncthreads(); i++; } while (go);
  out[T] = i;
}
FIX(loop_flag) {
  __shared__ int go; int i = 0; bool again;
  do { if (T == 0) go = i < in[1]; __syncthreads(); again = go; __syncthreads(); i++; } while (again);
  out[T] = i;
}

BUG(vote_of_a_warp) { __shared__ int s[64]; s[T] = in[T]; out[T] = __any_sync(0xffffffff, in[T]) + s[T ^ 32]; }
FIX(vote_of_a_warp) { __shared__ int s[64]; s[T] = in[T]; out[T] = __syncthreads_or(in[T]) + s[T ^ 32]; }

BUG(bins_zeroed) {
  __shared__ int bins[8]; if (T < 8) bins[T] = 0; atomicAdd(&bins[in[T] & 7], 1);
  __syncthreads(); if (T < 8) atomicAdd(&out[T], bins[T]);
}
FIX(bins_zeroed) {
  __shared__ int bins[8]; if (T < 8) bins[T] = 0; __syncthreads(); atomicAdd(&bins[in[T] & 7], 1);
  __syncthreads(); if (T < 8) atomicAdd(&out[T], bins[T]);
}

// Warp 0 fills a buffer, warp 1 empties it, by two named barriers.
__device__ inline void give(int id) { asm volatile("bar.arrive %0, 64;" ::"r"(id) : "memory"); }
__device__ inline void take(int id) { asm volatile("bar.sync %0, 64;" ::"r"(id) : "memory"); }
BUG(pipeline_full) {
  __shared__ int s[32];
  if (T < 32) { s[T] = in[T]; give(1); } else { out[T] = s[T - 32]; take(1); }
}
FIX(pipeline_full) {
  __shared__ int s[32];
  if (T < 32) { s[T] = in[T]; give(1); } else { take(1); out[T] = s[T - 32]; }
}
BUG(pipeline_empty) {
  __shared__ int s[32]; int x = 0;
  for (int i = 0; i < 2; i++)
    if (T < 32) { s[T] = in[T] + i; give(1); } else { take(1); x += s[T - 32]; }
  out[T] = x;
}
FIX(pipeline_empty) {
  __shared__ int s[32]; int x = 0;
  for (int i = 0; i < 2; i++)
    if (T < 32) { s[T] = in[T] + i; give(1); take(2); } else { take(1); x += s[T - 32]; give(2); }
  out[T] = x;
}

// Each block adds what the ones before it have, as soon as they tell: in[] is 0 or 1, so 2 + sum is a flag.
__device__ inline int seen(int *p) { return atomicAdd(p, 0); }
BUG(look_back) {
  if (T) return;
  if (B) while (seen(&out[B - 1]) < 2) {}
  out[64 + B] = in[B] + (B ? out[64 + B - 1] : 0);
  atomicExch(&out[B], 2);
}
FIX(look_back) {
  if (T) return;
  if (B) while (seen(&out[B - 1]) < 2) {}
  __threadfence();
  out[64 + B] = in[B] + (B ? out[64 + B - 1] : 0);
  __threadfence();
  atomicExch(&out[B], 2);
}
// The value and the flag in one word need no fence.
BUG(packed_flag) {
  if (T) return;
  int sum = 0; if (B) do sum = out[B - 1]; while (B > 7 && sum < 2);
  atomicExch(&out[B], 2 + in[B] + sum);
}
FIX(packed_flag) {
  if (T) return;
  int sum = 0; if (B) do sum = *(volatile int *)&out[B - 1]; while (sum < 2);
  atomicExch(&out[B], 2 + in[B] + sum - (B ? 2 : 0));
}

BUG(volatile_flag) {
  if (T) return;
  if (B == 0) { in[0] = 42; *(volatile int *)out = 1; }
  else { while (!*(volatile int *)out) {} __threadfence(); out[1] = in[0]; }
}
FIX(volatile_flag) {
  if (T) return;
  if (B == 0) { in[0] = 42; __threadfence(); *(volatile int *)out = 1; }
  else { while (!*(volatile int *)out) {} __threadfence(); out[1] = in[0]; }
}

__device__ inline int acquire_block(int *p) {
  int v; asm volatile("ld.acquire.cta.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v;
}
__device__ inline int acquire_gpu(int *p) {
  int v; asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v;
}
__device__ inline void release_gpu(int *p, int v) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
BUG(narrow_acquire) {
  if (T) return;
  if (B == 0) { in[0] = 42; release_gpu(out, 1); } else { while (!acquire_block(out)) {} out[1] = in[0]; }
}
FIX(narrow_acquire) {
  if (T) return;
  if (B == 0) { in[0] = 42; release_gpu(out, 1); } else { while (!acquire_gpu(out)) {} out[1] = in[0]; }
}

// A second row of blocks does the same work.
BUG(rows_of_blocks) { out[I] = (int)blockIdx.y; }
FIX(rows_of_blocks) { out[I + (int)(blockIdx.y * gridDim.x * blockDim.x)] = (int)blockIdx.y; }

BUG(stencil_in_place) { if (T && T < 63) in[T] = in[T - 1] + in[T + 1]; }
FIX(stencil_in_place) { if (T && T < 63) out[T] = in[T - 1] + in[T + 1]; }

BUG(early_break) {
  __shared__ int s[64];
  for (int i = 0; i < 4; i++) { if (T >= 32 && i == 2) break; s[T] = i; __syncthreads(); }
  out[T] = s[T];
}
FIX(early_break) {
  __shared__ int s[64];
  for (int i = 0; i < 4; i++) { if (i == 2) break; s[T] = i; __syncthreads(); }
  out[T] = s[T];
}
BUG(reduce_caller) { out[T] = __reduce_add_sync(0xfffffffe, in[T]); }
FIX(reduce_caller) { if (T % 32) out[T] = __reduce_add_sync(0xfffffffe, in[T]); }
BUG(syncwarp_diverged) { if (T % 32 < 8) { __syncwarp(); } out[T] = T; }
FIX(syncwarp_diverged) { if (T % 32 < 8) { __syncwarp(0xff); } out[T] = T; }

BUG(last_vector) { for (int i = 4 * T; i < n; i += 256) ((int4 *)(out + i))[0] = make_int4(i, 1, 2, 3); }
FIX(last_vector) { for (int i = 4 * T; i + 3 < n; i += 256) ((int4 *)(out + i))[0] = make_int4(i, 1, 2, 3); }
BUG(double_at_word) { double *p = (double *)(out + 1); p[T] = 1.0; }
FIX(double_at_word) { double *p = (double *)(out + 2); p[T] = 1.0; }
BUG(shared_atomic_past) { __shared__ int s[16]; if (T < 16) s[T] = 0; __syncthreads(); atomicAdd(&s[in[T] + n - 49], 1); }
FIX(shared_atomic_past) { __shared__ int s[16]; if (T < 16) s[T] = 0; __syncthreads(); atomicAdd(&s[in[T] + n - 50], 1); }
BUG(index_overflow) { unsigned i = (unsigned)T - 1u; out[i] = T; }
FIX(index_overflow) { unsigned i = (unsigned)T - 1u; if (i < 64u) out[i] = T; }

BUG(padding_column) {
  __shared__ int s[8][9]; s[T / 8][T % 8] = in[T]; __syncthreads(); out[T] = s[T % 8][T / 8 + n - 63];
}
FIX(padding_column) {
  __shared__ int s[8][9]; s[T / 8][T % 8] = in[T]; __syncthreads(); out[T] = s[T % 8][T / 8 + n - 64];
}
BUG(sum_not_zeroed) { __shared__ int s; atomicAdd(&s, in[T]); __syncthreads(); out[T] = s; }
FIX(sum_not_zeroed) { __shared__ int s; if (!T) s = 0; __syncthreads(); atomicAdd(&s, in[T]); __syncthreads(); out[T] = s; }
BUG(half_of_double) { in[2 * T] = T; ((double *)out)[T] = ((double *)in)[T]; }
FIX(half_of_double) { in[2 * T] = T; in[2 * T + 1] = 0; ((double *)out)[T] = ((double *)in)[T]; }
