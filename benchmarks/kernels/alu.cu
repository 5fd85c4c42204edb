// Integer arithmetic without memory: a xorshift and a linear congruential generator a thread.
extern "C" __global__ void alu(int n, int rounds, unsigned *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned shifted = i * 2654435761u + 1u, linear = i, sum = 0;
  for (int r = 0; r < rounds; r++) {
    shifted ^= shifted << 13;
    shifted ^= shifted >> 17;
    shifted ^= shifted << 5;
    linear = linear * 1664525u + 1013904223u;
    sum += shifted ^ linear;
  }
  out[i] = sum;
}
