// Races in shared memory, each beside its correct twin.
#include "planted.cuh"

BUG(shared_raw) { __shared__ int s[64]; s[T] = in[T]; out[T] = s[T ^ 33]; }
FIX(shared_raw) { __shared__ int s[64]; s[T] = in[T]; __syncthreads(); out[T] = s[T ^ 33]; }

BUG(shared_war) {
  __shared__ int s[64]; s[T] = in[T]; __syncthreads();
  int x = s[63 - T]; s[T] = x + 1; __syncthreads(); out[T] = s[T];
}
FIX(shared_war) {
  __shared__ int s[64]; s[T] = in[T]; __syncthreads();
  int x = s[63 - T]; __syncthreads(); s[T] = x + 1; __syncthreads(); out[T] = s[T];
}

BUG(shared_waw) { __shared__ int s[32]; s[T % 32] = T; __syncthreads(); out[T] = s[T % 32]; }
FIX(shared_waw) { __shared__ int s[32]; if (T < 32) s[T] = T; __syncthreads(); out[T] = s[T % 32]; }

BUG(warp_raw) { __shared__ int s[64]; s[T] = in[T]; out[T] = s[T ^ 1]; }
FIX(warp_raw) { __shared__ int s[64]; s[T] = in[T]; __syncwarp(); out[T] = s[T ^ 1]; }

BUG(warp_war) {
  __shared__ int s[64]; s[T] = in[T]; __syncwarp();
  int x = s[T ^ 1]; s[T] = x + 2; __syncwarp(); out[T] = s[T];
}
FIX(warp_war) {
  __shared__ int s[64]; s[T] = in[T]; __syncwarp();
  int x = s[T ^ 1]; __syncwarp(); s[T] = x + 2; __syncwarp(); out[T] = s[T];
}

BUG(warp_waw) { __shared__ int s; s = T; __syncthreads(); out[T] = s; }
FIX(warp_waw) { __shared__ int s; if (T == 0) s = T; __syncthreads(); out[T] = s; }

BUG(reduce_tree) {
  __shared__ int s[64]; s[T] = in[T]; __syncthreads();
  for (int k = 32; k; k >>= 1) { if (T < k) s[T] += s[T + k]; }
  __syncthreads(); out[T] = s[0];
}
FIX(reduce_tree) {
  __shared__ int s[64]; s[T] = in[T]; __syncthreads();
  for (int k = 32; k; k >>= 1) { if (T < k) s[T] += s[T + k]; __syncthreads(); }
  out[T] = s[0];
}

// The last warp of a reduction without a barrier among its lanes.
BUG(reduce_warp) {
  __shared__ int s[64]; s[T] = in[T]; __syncthreads();
  if (T < 32) for (int k = 32; k; k >>= 1) { int x = s[T + k]; s[T] += x; }
  __syncthreads(); out[T] = s[0];
}
FIX(reduce_warp) {
  __shared__ int s[96]; s[T] = in[T]; if (T < 32) s[64 + T] = 0; __syncthreads();
  if (T < 32) for (int k = 32; k; k >>= 1) {
    int x = s[T + k]; __syncwarp(); s[T] += x; __syncwarp();
  }
  __syncthreads(); out[T] = s[0];
}

BUG(volatile_warp) {
  __shared__ volatile int s[96]; s[T] = in[T]; s[T + 32] = in[T]; __syncthreads();
  if (T < 32) { s[T] += s[T + 16]; s[T] += s[T + 8]; }
  __syncthreads(); out[T] = s[0];
}
FIX(volatile_warp) {
  __shared__ volatile int s[96]; s[T] = in[T]; __syncthreads(); s[T + 32] = in[T]; __syncthreads();
  if (T < 32) {
    int x = s[T + 16]; __syncwarp(); s[T] += x; __syncwarp();
    x = s[T + 8]; __syncwarp(); s[T] += x;
  }
  __syncthreads(); out[T] = s[0];
}

// A tile is filled again before all have read it.
BUG(tile_loop) {
  __shared__ int s[64]; int sum = 0;
  for (int i = 0; i < n; i++) { s[T] = in[T] + i; __syncthreads(); sum += s[63 - T]; }
  out[T] = sum;
}
FIX(tile_loop) {
  __shared__ int s[64]; int sum = 0;
  for (int i = 0; i < n; i++) {
    s[T] = in[T] + i; __syncthreads(); sum += s[63 - T]; __syncthreads();
  }
  out[T] = sum;
}

BUG(half_mask) {
  __shared__ int s[32]; if (T >= 32) return;
  s[T] = in[T]; if (T < 16) { __syncwarp(0xffff); out[T] = s[T + 16]; }
}
FIX(half_mask) {
  __shared__ int s[32]; if (T >= 32) return;
  s[T] = in[T]; __syncwarp(); if (T < 16) out[T] = s[T + 16];
}

BUG(atomic_read) {
  __shared__ int s; if (T == 0) s = 0; __syncthreads();
  atomicAdd(&s, in[T]); out[T] = s;
}
FIX(atomic_read) {
  __shared__ int s; if (T == 0) s = 0; __syncthreads();
  atomicAdd(&s, in[T]); __syncthreads(); out[T] = s;
}

BUG(atomic_write) { __shared__ int s; if (T == 0) s = 0; atomicAdd(&s, 1); __syncthreads(); out[T] = s; }
FIX(atomic_write) {
  __shared__ int s; if (T == 0) s = 0; __syncthreads(); atomicAdd(&s, 1); __syncthreads(); out[T] = s;
}

BUG(halo) {
  __shared__ int s[66]; s[T + 1] = in[T]; if (T == 0) { s[0] = 0; s[65] = 0; }
  out[T] = s[T] + s[T + 2];
}
FIX(halo) {
  __shared__ int s[66]; s[T + 1] = in[T]; if (T == 0) { s[0] = 0; s[65] = 0; }
  __syncthreads(); out[T] = s[T] + s[T + 2];
}

BUG(transpose_tile) {
  __shared__ int s[8][9]; int x = T % 8, y = T / 8; s[y][x] = in[T]; out[T] = s[x][y];
}
FIX(transpose_tile) {
  __shared__ int s[8][9]; int x = T % 8, y = T / 8;
  s[y][x] = in[T]; __syncthreads(); out[T] = s[x][y];
}

// Neighbours in one word are no race; two threads of one byte are.
BUG(bytes) { __shared__ char s[64]; s[T / 2] = (char)(T + in[T]); __syncthreads(); out[T] = s[T / 2]; }
FIX(bytes) { __shared__ char s[64]; s[T] = (char)(T + in[T]); __syncthreads(); out[T] = s[T / 2]; }

BUG(half_of_word) {
  __shared__ unsigned s[64]; unsigned short *h = (unsigned short *)s;
  s[T] = in[T]; out[T] = h[2 * (T ^ 32) + 1];
}
FIX(half_of_word) {
  __shared__ unsigned s[64]; unsigned short *h = (unsigned short *)s;
  s[T] = in[T]; __syncthreads(); out[T] = h[2 * (T ^ 32) + 1];
}

BUG(overlap) {
  __shared__ __align__(16) int s[256]; int *p = s + (T & ~1) * 4;
  *(int4 *)p = make_int4(T, T, T, T); __syncthreads(); out[T] = s[T * 4];
}
FIX(overlap) {
  __shared__ __align__(16) int s[256];
  *(int4 *)(s + T * 4) = make_int4(T, T, T, T); __syncthreads(); out[T] = s[(255 - T * 4)];
}

// Warps 0 and 1 meet; what they read comes from warp 2.
BUG(named_subset) {
  __shared__ int s[96]; s[T] = in[T];
  if (T < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
  if (T < 32) out[T] = s[T + 64];
}
FIX(named_subset) {
  __shared__ int s[96]; s[T] = in[T];
  asm volatile("bar.sync 1, 96;" ::: "memory");
  if (T < 32) out[T] = s[T + 64];
}

// A consumer that calls its slot empty before it has read it.
BUG(ring) {
  __shared__ int s[32]; int sum = 0;
  for (int i = 0; i < 4; i++) {
    if (T < 32) {
      if (i) asm volatile("bar.sync 2, 64;" ::: "memory");
      s[T] = in[T] + i; asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      if (i < 3) asm volatile("bar.arrive 2, 64;" ::: "memory");
      sum += s[63 - T];
    }
  }
  out[T] = sum;
}
FIX(ring) {
  __shared__ int s[32]; int sum = 0;
  for (int i = 0; i < 4; i++) {
    if (T < 32) {
      if (i) asm volatile("bar.sync 2, 64;" ::: "memory");
      s[T] = in[T] + i; asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 64;" ::: "memory"); sum += s[63 - T];
      if (i < 3) asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  }
  out[T] = sum;
}

BUG(histogram) { __shared__ int s[4]; if (T < 4) s[T] = 0; __syncthreads();
  s[in[T] & 3]++; __syncthreads(); if (T < 4) out[T] = s[T]; }
FIX(histogram) { __shared__ int s[4]; if (T < 4) s[T] = 0; __syncthreads();
  atomicAdd(&s[in[T] & 3], 1); __syncthreads(); if (T < 4) out[T] = s[T]; }

// Two paths of a warp that part and use one place.
BUG(divergent_paths) {
  __shared__ int s[32]; if (T >= 32) return; s[T] = 0; __syncwarp();
  if (T < 16) s[T] = in[T]; else out[T] = s[T - 16];
}
FIX(divergent_paths) {
  __shared__ int s[32]; if (T >= 32) return; s[T] = 0; __syncwarp();
  if (T < 16) s[T] = in[T]; __syncwarp(); if (T >= 16) out[T] = s[T - 16];
}

// Generic addresses reach shared memory too.
__device__ __noinline__ int peek(int *p) { return *p; }
BUG(generic) { __shared__ int s[64]; s[T] = in[T]; out[T] = peek(s + (T ^ 32)); }
FIX(generic) { __shared__ int s[64]; s[T] = in[T]; __syncthreads(); out[T] = peek(s + (T ^ 32)); }

BUG(async_unwaited) {
  __shared__ int s[64]; copy_async(s + T, in + T); out[T] = s[T];
}
FIX(async_unwaited) {
  __shared__ int s[64]; copy_async(s + T, in + T);
  asm volatile("cp.async.wait_all;" ::: "memory"); out[T] = s[T];
}

BUG(async_no_barrier) {
  __shared__ int s[64]; copy_async(s + T, in + T);
  asm volatile("cp.async.wait_all;" ::: "memory"); out[T] = s[63 - T];
}
FIX(async_no_barrier) {
  __shared__ int s[64]; copy_async(s + T, in + T);
  asm volatile("cp.async.wait_all;" ::: "memory"); __syncthreads(); out[T] = s[63 - T];
}

// One group may still be under way, and it is the one that is read.
BUG(async_group) {
  __shared__ int s[128];
  copy_async(s + T, in + T); asm volatile("cp.async.commit_group;");
  copy_async(s + 64 + T, in + 64 + T); asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 1;" ::: "memory"); __syncthreads();
  out[T] = s[T] + s[127 - T];
  asm volatile("cp.async.wait_group 0;" ::: "memory");
}
FIX(async_group) {
  __shared__ int s[128];
  copy_async(s + T, in + T); asm volatile("cp.async.commit_group;");
  copy_async(s + 64 + T, in + 64 + T); asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 1;" ::: "memory"); __syncthreads();
  int x = s[63 - T];
  asm volatile("cp.async.wait_group 0;" ::: "memory"); __syncthreads();
  out[T] = x + s[127 - T];
}

BUG(mbarrier) {
  __shared__ unsigned long long bar; __shared__ int s[64]; unsigned b = place(&bar);
  if (T == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(b) : "memory");
  __syncthreads(); s[T] = in[T]; unsigned long long token;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(b) : "memory");
  out[T] = s[63 - T];
}
FIX(mbarrier) {
  __shared__ unsigned long long bar; __shared__ int s[64]; unsigned b = place(&bar);
  if (T == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(b) : "memory");
  __syncthreads(); s[T] = in[T]; unsigned long long token;
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(b) : "memory");
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(b), "l"(token) : "memory");
  out[T] = s[63 - T];
}
