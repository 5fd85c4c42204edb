// Life on a torus of bytes: a 2-D grid, pitched memory, 2-D copies, cudaMemset2D.
#include "check.cuh"

__global__ void step(const unsigned char *now, unsigned char *next, size_t pitch, int width,
                     int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height)
    return;
  int alive = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx)
      if (dx || dy)
        alive += now[((y + dy + height) % height) * pitch + (x + dx + width) % width];
  const bool lives = alive == 3 || (alive == 2 && now[y * pitch + x]);
  next[y * pitch + x] = lives;
}

int main() {
  const int width = 150, height = 61, steps = 20;
  std::vector<unsigned char> board(width * height), other(board.size());
  unsigned state = 1;
  for (unsigned char &cell : board)
    cell = next_random(state) >> 30 == 0;
  unsigned char *now = nullptr, *next = nullptr;
  size_t pitch = 0, pitch2 = 0;
  CHECK(cudaMallocPitch(&now, &pitch, width, height));
  CHECK(cudaMallocPitch(&next, &pitch2, width, height));
  CHECK(cudaMemset2D(next, pitch2, 0xff, width, height));
  long wrong = pitch != pitch2 || pitch < width || pitch % 32;
  CHECK(cudaMemcpy2D(now, pitch, board.data(), width, width, height, cudaMemcpyHostToDevice));
  const dim3 block(16, 16), grid((width + 15) / 16, (height + 15) / 16);
  for (int i = 0; i < steps; ++i) {
    step<<<grid, block>>>(now, next, pitch, width, height);
    std::swap(now, next);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        int alive = 0;
        for (int k = 0; k < 9; ++k)
          if (k != 4)
            alive += board[(y + k / 3 - 1 + height) % height * width +
                           (x + k % 3 - 1 + width) % width];
        other[y * width + x] = alive == 3 || (alive == 2 && board[y * width + x]);
      }
    std::swap(board, other);
  }
  CHECK(cudaMemcpy2D(other.data(), width, now, pitch, width, height, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < board.size(); ++i)
    wrong += board[i] != other[i];
  CHECK(cudaFree(now));
  CHECK(cudaFree(next));
  return outcome("game_of_life", wrong);
}
