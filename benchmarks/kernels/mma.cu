// C = A B on tensor cores: half A (row-major) and B (column-major), float C; one warp makes a
// 16x8 tile and loads its fragments from global memory.
extern "C" __global__ void mma(int n, const unsigned *a, const unsigned *b, float *c) {
  int lane = threadIdx.x % 32, group = lane / 4, member = lane % 4;
  int row = blockIdx.y * 16, column = (blockIdx.x * blockDim.y + threadIdx.y) * 8, words = n / 2;
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  const unsigned *upper = a + (row + group) * words + member, *lower = upper + 8 * words;
  const unsigned *right = b + (column + group) * words + member;
  for (int k = 0; k < words; k += 8) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
        : "r"(upper[k]), "r"(lower[k]), "r"(upper[k + 4]), "r"(lower[k + 4]), "r"(right[k]),
          "r"(right[k + 4]));
  }
  float *out = c + (row + group) * n + column + 2 * member;
  out[0] = d0;
  out[1] = d1;
  out[8 * n] = d2;
  out[8 * n + 1] = d3;
}
