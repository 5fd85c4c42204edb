// The Mandelbrot set: threads of one warp leave the loop at different times, so lanes wait for the
// slowest among them. This is divergence, and the price of it depends on the picture.
//
//   mandelbrot [--n WIDTH] [--steps MOST] [--pgm FILE] [--out FILE]
//
// The picture goes to --pgm; the number of steps of each pixel to --out, as 32-bit integers.
#include "example.cuh"

#include <algorithm>
#include <cmath>

// How many steps z = z^2 + c takes to leave the circle of radius 2, at most limit.
// Products are fused by hand, so that host and device round alike.
__host__ __device__ int escape_steps(float cx, float cy, int limit) {
  float x = 0, y = 0;
  int step = 0;
  while (step < limit && fmaf(x, x, y * y) <= 4.0f) {
    const float next = fmaf(x, x, fmaf(-y, y, cx));
    y = fmaf(2.0f * x, y, cy);
    x = next;
    ++step;
  }
  return step;
}

// The view: real parts -2 to 1, imaginary parts -1.125 to 1.125.
struct View {
  int width, height;
  float scale;
  __host__ __device__ float real(int column) const { return fmaf(scale, column + 0.5f, -2.0f); }
  __host__ __device__ float imaginary(int row) const { return fmaf(scale, row + 0.5f, -1.125f); }
};

__global__ void mandelbrot(View view, int limit, int *steps) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column < view.width && row < view.height)
    steps[row * view.width + column] =
        escape_steps(view.real(column), view.imaginary(row), limit);
}

// A portable graymap: black inside, lighter the sooner a point escapes.
void write_picture(const std::string &path, const View &view, int limit,
                   const std::vector<int> &steps) {
  std::FILE *const file = std::fopen(path.c_str(), "wb");
  if (!file) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    std::exit(EXIT_FAILURE);
  }
  std::fprintf(file, "P5\n%d %d\n255\n", view.width, view.height);
  for (const int count : steps)
    std::fputc(count == limit ? 0 : 255 - 224 * count / limit, file);
  std::fclose(file);
  std::printf("picture in %s\n", path.c_str());
}

int main(int argc, char **argv) {
  const int width = example::number(argc, argv, "--n", 512);
  const int limit = example::number(argc, argv, "--steps", 256);
  const View view = {width, std::max(width * 3 / 4, 1), 3.0f / width};
  const size_t count = static_cast<size_t>(view.width) * view.height;

  int *steps_device;
  CHECK(cudaMalloc(&steps_device, count * sizeof(int)));
  const dim3 block(16, 16);
  const dim3 grid((view.width + block.x - 1) / block.x, (view.height + block.y - 1) / block.y);
  mandelbrot<<<grid, block>>>(view, limit, steps_device);
  CHECK_LAUNCH();

  std::vector<int> steps(count);
  CHECK(cudaMemcpy(steps.data(), steps_device, count * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(steps_device));

  double error = 0;
  for (int row = 0; row < view.height; ++row)
    for (int column = 0; column < view.width; ++column) {
      const int expected = escape_steps(view.real(column), view.imaginary(row), limit);
      error = std::max(error, std::abs(static_cast<double>(steps[row * width + column]) - expected));
    }
  const std::string picture = example::option(argc, argv, "--pgm", "");
  if (!picture.empty())
    write_picture(picture, view, limit, steps);
  example::write_out(argc, argv, steps);
  return example::verdict("mandelbrot", error, 0);
}
