// Races in global memory and between CTAs, each beside its correct twin.
#include "planted.cuh"

BUG(blocks_waw) { out[T] = B; }
FIX(blocks_waw) { out[I] = B; }

BUG(blocks_raw) { out[I] = in[I]; if (B > 0) in[I] = out[I - 64]; }
FIX(blocks_raw) { out[I] = in[I]; }

BUG(blocks_war) { if (I + 64 < n) in[I] = in[I + 64]; }
FIX(blocks_war) { if (I + 64 < n) out[I] = in[I + 64]; }

BUG(global_raw) { out[T] = in[T] + 1; in[T] = out[63 - T]; }
FIX(global_raw) { out[T] = in[T] + 1; __syncthreads(); in[T] = out[63 - T]; }

BUG(global_warp) { out[T] = in[T] + 1; in[T] = out[T ^ 1]; }
FIX(global_warp) { out[T] = in[T] + 1; __syncwarp(); in[T] = out[T ^ 1]; }

BUG(global_histogram) { out[in[I] & 7]++; }
FIX(global_histogram) { atomicAdd(&out[in[I] & 7], 1); }

__device__ inline bool poll(int *flag) { return atomicAdd(flag, 0) == 0; }

// Block 0 sends a number to block 1: out[0] is the flag.
BUG(no_release) {
  if (T) return;
  if (B == 0) { in[0] = 42; atomicExch(out, 1); }
  else { while (poll(out)) {} __threadfence(); out[1] = in[0]; }
}
FIX(no_release) {
  if (T) return;
  if (B == 0) { in[0] = 42; __threadfence(); atomicExch(out, 1); }
  else { while (poll(out)) {} __threadfence(); out[1] = in[0]; }
}

BUG(no_acquire) {
  if (T) return;
  if (B == 0) { in[0] = 42; __threadfence(); atomicExch(out, 1); }
  else { while (poll(out)) {} out[1] = *(volatile int *)&in[1] + in[0]; }
}
FIX(no_acquire) {
  if (T) return;
  if (B == 0) { in[0] = 42; __threadfence(); atomicExch(out, 1); }
  else { while (poll(out)) {} __threadfence(); out[1] = *(volatile int *)&in[1] + in[0]; }
}

BUG(narrow_fence) {
  if (T) return;
  if (B == 0) { in[0] = 42; __threadfence_block(); atomicExch(out, 1); }
  else { while (poll(out)) {} __threadfence(); out[1] = in[0]; }
}
FIX(narrow_fence) {
  if (T) return;
  if (B == 0) { in[0] = 42; __threadfence_system(); atomicExch(out, 1); }
  else { while (poll(out)) {} __threadfence(); out[1] = in[0]; }
}

BUG(early_fence) {
  if (T) return;
  if (B == 0) { __threadfence(); in[0] = 42; atomicExch(out, 1); }
  else { while (poll(out)) {} __threadfence(); out[1] = in[0]; }
}
FIX(early_fence) {
  if (T) return;
  if (B == 0) { in[0] = 42; __threadfence(); atomicExch(out, 1); }
  else { while (poll(out)) {} __threadfence(); out[1] = in[0]; }
}

__device__ inline void store_relaxed(int *p, int v) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ inline void store_release(int *p, int v) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ inline int load_acquire(int *p) {
  int v; asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory"); return v;
}

BUG(relaxed_store) {
  if (T) return;
  if (B == 0) { in[0] = 42; store_relaxed(out, 1); }
  else { while (!load_acquire(out)) {} out[1] = in[0]; }
}
FIX(relaxed_store) {
  if (T) return;
  if (B == 0) { in[0] = 42; store_release(out, 1); }
  else { while (!load_acquire(out)) {} out[1] = in[0]; }
}

// The flag itself is written plainly.
BUG(plain_flag) {
  if (T) return;
  if (B == 0) { in[0] = 42; __threadfence(); out[0] = 1; }
  else { out[1] = atomicAdd(out, 0); }
}
FIX(plain_flag) {
  if (T) return;
  if (B == 0) { in[0] = 42; __threadfence(); atomicExch(out, 1); }
  else { out[1] = atomicAdd(out, 0); }
}

// The last block to come adds up what the others left.
BUG(last_block) {
  __shared__ bool last; __shared__ int s;
  if (T == 0) s = 0; __syncthreads(); atomicAdd(&s, in[I]); __syncthreads();
  if (T == 0) { out[1 + B] = s; last = atomicAdd(out, 1) == (int)gridDim.x - 1; }
  __syncthreads();
  if (last && T == 0) { int sum = 0; for (int i = 0; i < (int)gridDim.x; i++) sum += out[1 + i]; in[0] = sum; }
}
FIX(last_block) {
  __shared__ bool last; __shared__ int s;
  if (T == 0) s = 0; __syncthreads(); atomicAdd(&s, in[I]); __syncthreads();
  if (T == 0) { out[1 + B] = s; __threadfence(); last = atomicAdd(out, 1) == (int)gridDim.x - 1; }
  __syncthreads();
  if (last && T == 0) { int sum = 0; for (int i = 0; i < (int)gridDim.x; i++) sum += out[1 + i]; out[100] = sum; }
}

BUG(block_scope) { if (T == 0) atomicAdd_block(out, 1); }
FIX(block_scope) { if (T == 0) atomicAdd(out, 1); }

__device__ inline void grid_barrier(int *count, int wanted) {
  __syncthreads();
  if (T == 0) { __threadfence(); atomicAdd(count, 1); while (atomicAdd(count, 0) < wanted) {} __threadfence(); }
  __syncthreads();
}
BUG(grid_sync) { out[64 + I] = in[I]; __syncthreads(); in[I] = out[64 + (I + 64) % n]; }
FIX(grid_sync) { out[64 + I] = in[I]; grid_barrier(out, (int)gridDim.x); in[I] = out[64 + (I + 64) % n]; }

__device__ inline void lock(int *l) { while (atomicCAS(l, 0, 1)) {} __threadfence(); }
BUG(no_lock) { if (T % 32 == 0) out[1] = out[1] + in[T]; }
FIX(no_lock) {
  if (T % 32 == 0) { lock(out); out[1] = out[1] + in[T]; __threadfence(); atomicExch(out, 0); }
}
BUG(unlock_unfenced) {
  if (T % 32 == 0) { lock(out); out[1] = out[1] + in[T]; atomicExch(out, 0); }
}
FIX(unlock_unfenced) {
  if (T == 0) { lock(out); out[1] = out[1] + in[T]; __threadfence(); *(volatile int *)out = 0; }
}

BUG(atomic_plain) { atomicAdd(out, 1); if (I == 0) out[1] = out[0]; }
FIX(atomic_plain) { atomicAdd(out, 1); if (I == 0) out[1] = atomicAdd(out, 0); }

BUG(result_element) { if (I == 5) out[0] = 1; if (I == 70) out[0] = 2; }
FIX(result_element) { if (I == 5) out[0] = 1; if (I == 70) out[1] = 2; }

BUG(prefix_ring) { int x = out[I]; out[(I + 1) % n] = x + in[I]; }
FIX(prefix_ring) { int x = out[I]; out[I] = x + in[(I + 1) % n]; }

// A loop of compare-and-swap may begin with a plain read; what it gives elsewhere may not.
BUG(swap_loop) { int old = out[0], seen; do { seen = old; old = atomicCAS(out, seen, seen + in[T]); } while (seen != old); out[64 + I] = out[0]; }
FIX(swap_loop) { int old = out[0], seen; do { seen = old; old = atomicCAS(out, seen, seen + in[T]); } while (seen != old); out[64 + I] = old; }
