// Barriers and masks that some thread does not come to, each beside its correct twin.
#include "planted.cuh"

BUG(half_warp) { __shared__ int s[64]; s[T] = in[T]; if (T < 16) __syncthreads(); out[T] = in[T] + s[T]; }
FIX(half_warp) { __shared__ int s[64]; s[T] = in[T]; __syncthreads(); if (T < 16) out[T] = s[T ^ 1]; }

BUG(one_warp) { if (T < 32) __syncthreads(); out[T] = in[T]; }
FIX(one_warp) { __syncthreads(); if (T < 32) out[T] = in[T]; }

BUG(trip_count) { int x = 0; for (int i = 0; i < (T & 3); i++) { x += in[i]; __syncthreads(); } out[T] = x; }
FIX(trip_count) { int x = 0; for (int i = 0; i < 3; i++) { if (i < (T & 3)) x += in[i]; __syncthreads(); } out[T] = x; }

BUG(both_branches) {
  __shared__ int s[64]; s[T] = in[T];
  if (T & 1) { __syncthreads(); out[T] = s[T ^ 1]; } else { s[T] += 1; __syncthreads(); out[T] = 2 * s[T]; }
}
FIX(both_branches) {
  __shared__ int s[64]; s[T] = in[T]; if (!(T & 1)) s[T] += 1; __syncthreads();
  if (T & 1) out[T] = s[T ^ 1]; else out[T] = 2 * s[T];
}

BUG(counts_differ) {
  if (T < 32) asm volatile("bar.sync 1, 64;" ::: "memory");
  else asm volatile("bar.sync 1, 96;" ::: "memory");
  out[T] = T;
}
FIX(counts_differ) {
  if (T < 32) asm volatile("bar.sync 1, 96;" ::: "memory");
  else asm volatile("bar.sync 1, 96;" ::: "memory");
  out[T] = T;
}

// The first warp's barrier opens before the others come, or after: nothing says which.
BUG(counts_in_turn) {
  if (T < 32) asm volatile("bar.sync 1, 32;" ::: "memory");
  else asm volatile("bar.sync 1, 64;" ::: "memory");
  out[T] = T;
}
FIX(counts_in_turn) {
  if (T < 32) asm volatile("bar.sync 1, 32;" ::: "memory");
  __syncthreads();
  if (T >= 32) asm volatile("bar.sync 1, 64;" ::: "memory");
  out[T] = T;
}

BUG(count_too_high) { asm volatile("bar.sync 2, 128;" ::: "memory"); out[T] = T; }
FIX(count_too_high) { asm volatile("bar.sync 2, 64;" ::: "memory"); out[T] = T; }

BUG(count_uneven) { asm volatile("bar.sync 2, %0;" ::"r"(n) : "memory"); out[T] = T; }
FIX(count_uneven) { asm volatile("bar.sync 2, %0;" ::"r"(n * 2 - 16) : "memory"); out[T] = T; }

BUG(barrier_number) { asm volatile("bar.sync %0;" ::"r"(n) : "memory"); out[T] = T; }
FIX(barrier_number) { asm volatile("bar.sync %0;" ::"r"(n & 15) : "memory"); out[T] = T; }

BUG(exited_warp) { if (T >= 32) return; asm volatile("bar.sync 1, 64;" ::: "memory"); out[T] = T; }
FIX(exited_warp) { if (T >= 32) return; asm volatile("bar.sync 1, 32;" ::: "memory"); out[T] = T; }

// A thread that has left counts as having come.
BUG(early_exit) { if (T < 20) { __syncthreads(); } out[T] = in[T]; }
FIX(early_exit) { if (T >= 20) return; __syncthreads(); out[T] = in[T]; }

BUG(guarded) {
  asm volatile("{ .reg .pred p; setp.lt.s32 p, %0, 16; @p bar.sync 0; }" ::"r"(T) : "memory");
  out[T] = T;
}
FIX(guarded) {
  asm volatile("{ .reg .pred p; setp.lt.s32 p, %0, 64; @p bar.sync 0; }" ::"r"(T) : "memory");
  out[T] = T;
}

BUG(syncwarp_caller) { __syncwarp(0x0000ffff); out[T] = T; }
FIX(syncwarp_caller) { if (T % 32 < 16) __syncwarp(0x0000ffff); out[T] = T; }

BUG(shuffle_caller) { out[T] = __shfl_xor_sync(0x7fffffff, in[T], 1); }
FIX(shuffle_caller) { out[T] = __shfl_xor_sync(0xffffffff, in[T], 1); }

BUG(shuffle_diverged) {
  int x = in[T]; if (T % 32 < 16) x += __shfl_down_sync(0xffffffff, x, 8); out[T] = x;
}
FIX(shuffle_diverged) {
  int x = in[T]; if (T % 32 < 16) x += __shfl_down_sync(0x0000ffff, x, 8); out[T] = x;
}

BUG(ballot_masks) { unsigned m = T % 2 ? 0xffffffff : 0x55555555; out[T] = __ballot_sync(m, in[T]); }
FIX(ballot_masks) { unsigned m = T % 2 ? 0xaaaaaaaa : 0x55555555; out[T] = __ballot_sync(m, in[T]); }

BUG(vote_caller) { out[T] = __any_sync(1u << ((T + 1) % 32), in[T]); }
FIX(vote_caller) { out[T] = __any_sync(1u << (T % 32), in[T]); }

BUG(spin) { if (T == 0) while (atomicAdd(out, 0) == 0) {} out[1 + T] = T; }
FIX(spin) { if (T == 63) atomicExch(out, 1); if (T == 0) while (atomicAdd(out, 0) == 0) {} out[1 + T] = T; }

// Each waits for a barrier that the other comes to later.
BUG(crossed) {
  if (T < 32) { asm volatile("bar.sync 1, 64;" ::: "memory"); asm volatile("bar.sync 2, 64;" ::: "memory"); }
  else { asm volatile("bar.sync 2, 64;" ::: "memory"); asm volatile("bar.sync 1, 64;" ::: "memory"); }
  out[T] = T;
}
FIX(crossed) {
  if (T < 32) { asm volatile("bar.sync 1, 64;" ::: "memory"); asm volatile("bar.sync 2, 64;" ::: "memory"); }
  else { asm volatile("bar.sync 1, 64;" ::: "memory"); asm volatile("bar.sync 2, 64;" ::: "memory"); }
  out[T] = T;
}
