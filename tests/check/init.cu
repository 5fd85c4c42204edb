// Reads of what nobody has written, each beside its correct twin.
#include "planted.cuh"

BUG(global) { out[T] = in[T]; }
FIX(global) { in[T] = T; out[T] = in[T]; }

BUG(shared) { __shared__ int s[64]; if (T < 63) s[T] = in[T]; __syncthreads(); out[T] = s[T]; }
FIX(shared) { __shared__ int s[64]; s[T] = in[T]; __syncthreads(); out[T] = s[T]; }

BUG(local) { int a[8]; a[in[T] & 3] = 1; a[(in[T] & 3) + 1] = 2; out[T] = a[(in[T] & 3) + n]; }
FIX(local) { int a[8]; for (int i = 0; i < 8; i++) a[i] = i * n; out[T] = a[(in[T] & 3) + n]; }

BUG(part_of_vector) {
  __shared__ __align__(16) int s[256]; s[4 * T] = 1; s[4 * T + 1] = 2; s[4 * T + 2] = 3; __syncthreads();
  int4 v = ((int4 *)s)[63 - T]; out[T] = v.x + v.y + v.z + v.w;
}
FIX(part_of_vector) {
  __shared__ __align__(16) int s[256];
  s[4 * T] = 1; s[4 * T + 1] = 2; s[4 * T + 2] = 3; s[4 * T + 3] = 4; __syncthreads();
  int4 v = ((int4 *)s)[63 - T]; out[T] = v.x + v.y + v.z + v.w;
}

BUG(half_filled) { if (T < 32) in[T] = T; __syncthreads(); out[T] = in[63 - T]; }
FIX(half_filled) { in[T] = T; __syncthreads(); out[T] = in[63 - T]; }

BUG(atomic) { atomicAdd(&in[T], 1); }
FIX(atomic) { in[T] = 0; atomicAdd(&in[T], 1); }

BUG(one_byte) { char *p = (char *)in; p[4 * T] = 1; p[4 * T + 1] = 2; p[4 * T + 3] = 3; out[T] = *(volatile int *)&in[T]; }
FIX(one_byte) { char *p = (char *)in; p[4 * T] = 1; p[4 * T + 1] = 2; p[4 * T + 2] = 9; p[4 * T + 3] = 3; out[T] = *(volatile int *)&in[T]; }

BUG(heap) { if (T) return; int *p = (int *)malloc(64); p[0] = in[0]; out[0] = p[in[0] + 1]; free(p); }
FIX(heap) { if (T) return; int *p = (int *)malloc(64); p[0] = p[1] = in[0]; out[0] = p[in[0] + 1]; free(p); }
