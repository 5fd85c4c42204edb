// Accesses outside what a program has, each beside its correct twin.
#include "planted.cuh"

BUG(past_end) { if (I <= n) out[I] = I; }
FIX(past_end) { if (I < n) out[I] = I; }

BUG(past_end_byte) { char *p = (char *)out; if (I <= n) p[I] = (char)I; }
FIX(past_end_byte) { char *p = (char *)out; if (I < n) p[I] = (char)I; }

BUG(read_past_end) { if (I < n) out[I] = in[I + 1]; }
FIX(read_past_end) { if (I < n) out[I] = in[I]; }

BUG(before_start) { out[I] = in[I - 1]; }
FIX(before_start) { out[I] = I ? in[I - 1] : 0; }

BUG(between) { out[I] = in[I + n]; }
FIX(between) { out[I] = in[I % n]; }

BUG(vector_across_end) { ((int4 *)out)[T] = make_int4(T, T, T, T); }
FIX(vector_across_end) { if (T < n / 4) ((int4 *)out)[T] = make_int4(T, T, T, T); }

BUG(misaligned) { int *p = (int *)((char *)out + 1); p[T] = T; }
FIX(misaligned) { int *p = (int *)((char *)out + 4); p[T] = T; }

BUG(misaligned_vector) { float4 *p = (float4 *)(out + 2); p[T] = make_float4(1, 2, 3, 4); }
FIX(misaligned_vector) { float2 *p = (float2 *)(out + 2); p[T] = make_float2(1, 2); }

BUG(shared_static) { __shared__ int s[64]; s[T] = in[T]; __syncthreads(); out[T] = s[T + n]; }
FIX(shared_static) { __shared__ int s[64]; s[T] = in[T]; __syncthreads(); out[T] = s[(T + n) % 64]; }

extern __shared__ int room[];
BUG(shared_dynamic) { room[T] = in[T]; __syncthreads(); out[T] = room[63 - T]; }
FIX(shared_dynamic) { if (T < 32) room[T] = in[T]; __syncthreads(); out[T] = room[31 - T % 32]; }

BUG(shared_misaligned) {
  __shared__ __align__(16) int s[64]; s[T] = in[T]; __syncthreads();
  int2 v = *(int2 *)(s + 2 * (T % 16) + 1); out[T] = v.x + v.y;
}
FIX(shared_misaligned) {
  __shared__ __align__(16) int s[64]; s[T] = in[T]; __syncthreads();
  int2 v = *(int2 *)(s + 2 * (T % 16)); out[T] = v.x + v.y;
}

BUG(local_index) { int a[5]; for (int i = 0; i < 5; i++) a[i] = in[i]; a[in[T] + n] = 7; out[T] = a[in[T] & 3]; }
FIX(local_index) { int a[5]; for (int i = 0; i < 5; i++) a[i] = in[i]; a[(in[T] + n) % 5] = 7; out[T] = a[in[T] & 3]; }

BUG(null_pointer) { int *p = n ? nullptr : out; if (T == 3) *p = 1; }
FIX(null_pointer) { int *p = n ? out : nullptr; if (T == 3) *p = 1; }

BUG(wild_pointer) { int *p = (int *)0x123456789abc0ull; out[T] = T == 9 ? *p : 0; }
FIX(wild_pointer) { out[T] = T == 9 ? *in : 0; }

BUG(atomic_past_end) { atomicAdd(&out[n], 1); }
FIX(atomic_past_end) { atomicAdd(&out[n - 1], 1); }

BUG(heap_past_end) { if (T) return; char *p = (char *)malloc(10); p[10] = 1; p[0] = 2; out[0] = p[0]; free(p); }
FIX(heap_past_end) { if (T) return; char *p = (char *)malloc(10); p[9] = 1; p[0] = 2; out[0] = p[0]; free(p); }

BUG(heap_after_free) { if (T) return; int *p = (int *)malloc(400); p[1] = 3; free(p); out[0] = p[1]; }
FIX(heap_after_free) { if (T) return; int *p = (int *)malloc(400); p[1] = 3; out[0] = p[1]; free(p); }

BUG(heap_after_reuse) {
  if (T) return; int *p = (int *)malloc(400); p[1] = 3; free(p);
  int *q = (int *)malloc(400); q[1] = 4; out[0] = p[1]; free(q);
}
FIX(heap_after_reuse) {
  if (T) return; int *p = (int *)malloc(400); p[1] = 3; free(p);
  int *q = (int *)malloc(400); q[1] = 4; out[0] = q[1]; free(q);
}

BUG(heap_double_free) { if (T) return; int *p = (int *)malloc(400); p[1] = 3; out[0] = p[1]; free(p); free(p); }
FIX(heap_double_free) { if (T) return; int *p = (int *)malloc(400); p[1] = 3; out[0] = p[1]; free(p); }

BUG(heap_leak) { if (T) return; int *p = (int *)malloc(400); p[1] = 3; out[0] = p[1]; }
FIX(heap_leak) { if (T) return; int *p = (int *)malloc(400); p[1] = 3; out[0] = p[1]; free(p); }

BUG(after_free) { out[T] = in[T]; }
FIX(after_free) { out[T] = in[T]; }

__device__ __noinline__ int deep(int *in, int k) { volatile int a[16]; a[k & 15] = in[k & 15]; return k ? deep(in, k - 1) + a[k & 15] : 0; }
BUG(stack) { out[T] = deep(in, 1 << 20); }
FIX(stack) { out[T] = deep(in, 20); }

// A pointer into one thread's local memory, used by another.
__device__ __noinline__ void set(int *p, int v) { *(volatile int *)p = v; }
BUG(foreign_local) {
  __shared__ int *p; int mine = 0; set(&mine, in[T]);
  if (T == 0) p = &mine; __syncthreads();
  if (T == 1) set(p, 5);
  __syncthreads(); out[T] = mine;
}
FIX(foreign_local) {
  __shared__ int *p; int mine = 0; set(&mine, in[T]);
  if (T == 0) p = &mine; __syncthreads();
  if (T == 0) set(p, 5);
  __syncthreads(); out[T] = mine;
}

BUG(trap) { if (in[T] == 0) __trap(); out[T] = T; }
FIX(trap) { if (in[T] == 2) __trap(); out[T] = T; }
