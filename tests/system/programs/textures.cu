// Textures and surfaces: a resized image by hardware filtering, layers, a volume, a cube map,
// linear memory, gathers, and an image written through a surface.
#include "check.cuh"

#include <cstdint>

constexpr int kWidth = 33, kHeight = 21, kDepth = 5, kLayers = 3;

__global__ void enlarge(cudaTextureObject_t image, float *out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height)
    out[y * width + x] = tex2D<float>(image, (x + 0.5f) / width, (y + 0.5f) / height);
}

__global__ void pick(cudaTextureObject_t layers, cudaTextureObject_t volume,
                     cudaTextureObject_t line, float4 *out) {
  const int i = threadIdx.x;
  const unsigned char pixel = tex2DLayered<unsigned char>(layers, i % 7 + 0.5f, i % 5 + 0.5f, i % 4);
  const float voxel = tex3D<float>(volume, i % 9 - 1.25f, i % 6 + 0.25f, i % 5 + 0.75f);
  const float2 pair = tex1Dfetch<float2>(line, i - 2);
  out[i] = make_float4(pixel, voxel, pair.x, pair.y);
}

__global__ void look(cudaTextureObject_t cube, cudaTextureObject_t image, float4 *out) {
  const float3 ways[] = {{1, .2f, .1f}, {-1, .3f, .2f}, {.1f, 1, .3f},
                         {.3f, -1, .1f}, {.2f, .1f, 1}, {.1f, .4f, -1}};
  const float3 w = ways[threadIdx.x];
  const float4 near = tex2Dgather<float4>(image, 0.5f, 0.5f, 0);
  out[threadIdx.x] = make_float4(texCubemap<float>(cube, w.x, w.y, w.z), near.x, near.z, near.w);
}

__global__ void invert(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height)
    return;
  uchar4 pixel;
  surf2Dread(&pixel, from, x * 4, y);
  surf2Dwrite(make_uchar4(255 - pixel.x, pixel.y, pixel.z, x), to, x * 4, y);
  surf2Dwrite(pixel, to, (x - width) * 4, y, cudaBoundaryModeZero); // left of the image: nothing
}

static cudaTextureObject_t texture_of(const cudaResourceDesc &resource, cudaTextureFilterMode filter,
                                      bool normalized, cudaTextureAddressMode mode,
                                      cudaTextureReadMode read = cudaReadModeElementType) {
  cudaTextureDesc sampling{};
  for (auto &own : sampling.addressMode)
    own = mode;
  sampling.filterMode = filter;
  sampling.readMode = read;
  sampling.normalizedCoords = normalized;
  sampling.borderColor[0] = -3;
  cudaTextureObject_t made = 0;
  CHECK(cudaCreateTextureObject(&made, &resource, &sampling, nullptr));
  return made;
}

static cudaResourceDesc of(cudaArray_t array) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

template <typename T>
static cudaArray_t array_of(const std::vector<T> &data, int width, int height, int depth, unsigned flags) {
  const cudaChannelFormatDesc channels = cudaCreateChannelDesc<T>();
  cudaArray_t array = nullptr;
  CHECK(cudaMalloc3DArray(&array, &channels, make_cudaExtent(width, height, depth), flags));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(const_cast<T *>(data.data()), width * sizeof(T), width, height);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(width, height, depth ? depth : 1);
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
  return array;
}

// Weights as the hardware has them: 8 bits of fraction.
static double weight(double x) { return std::floor((x - std::floor(x)) * 256 + 0.5) / 256; }
static int within(double i, int n) { return i < 0 ? 0 : i >= n ? n - 1 : static_cast<int>(i); }

static long check_enlarged(const std::vector<float> &image) {
  const int width = 80, height = 50;
  cudaArray_t array = array_of(image, kWidth, kHeight, 0, 0);
  const auto texture = texture_of(of(array), cudaFilterModeLinear, true, cudaAddressModeClamp);
  Buffer<float> out(width * height);
  enlarge<<<dim3(5, 4), dim3(16, 16)>>>(texture, out, width, height);
  CHECK(cudaGetLastError());
  const std::vector<float> got = out.host();
  long wrong = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const double u = double((x + 0.5f) / width) * kWidth - 0.5;
      const double v = double((y + 0.5f) / height) * kHeight - 0.5;
      const int i = within(std::floor(u), kWidth), i1 = within(std::floor(u) + 1, kWidth);
      const int j = within(std::floor(v), kHeight), j1 = within(std::floor(v) + 1, kHeight);
      const double a = weight(u), b = weight(v);
      const double want = (1 - a) * (1 - b) * image[j * kWidth + i] + a * (1 - b) * image[j * kWidth + i1] +
                          (1 - a) * b * image[j1 * kWidth + i] + a * b * image[j1 * kWidth + i1];
      wrong += !close(got[y * width + x], want, 1e-6);
    }
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaFreeArray(array));
  return wrong;
}

static long check_picked(const std::vector<float> &voxels, unsigned state) {
  std::vector<unsigned char> pixels(kWidth * kHeight * kLayers);
  for (auto &pixel : pixels)
    pixel = static_cast<unsigned char>(next_random(state) >> 24);
  std::vector<float2> points(24);
  for (int k = 0; k < 24; ++k)
    points[k] = make_float2(k, -k);
  cudaArray_t layers = array_of(pixels, kWidth, kHeight, kLayers, cudaArrayLayered);
  cudaArray_t volume = array_of(voxels, kWidth, kHeight, kDepth, cudaArrayDefault);
  Buffer<float2> line(points);
  cudaResourceDesc linear{};
  linear.resType = cudaResourceTypeLinear;
  linear.res.linear.devPtr = line;
  linear.res.linear.desc = cudaCreateChannelDesc<float2>();
  linear.res.linear.sizeInBytes = points.size() * sizeof(float2);
  const auto a = texture_of(of(layers), cudaFilterModePoint, false, cudaAddressModeClamp);
  const auto b = texture_of(of(volume), cudaFilterModePoint, false, cudaAddressModeBorder);
  const auto c = texture_of(linear, cudaFilterModePoint, false, cudaAddressModeClamp);
  Buffer<float4> out(32);
  pick<<<1, 32>>>(a, b, c, out);
  CHECK(cudaGetLastError());
  const std::vector<float4> got = out.host();
  long wrong = 0;
  for (int i = 0; i < 32; ++i) {
    const int layer = i % 4 < kLayers ? i % 4 : kLayers - 1;
    const unsigned char pixel = pixels[(layer * kHeight + i % 5) * kWidth + i % 7];
    const int x = static_cast<int>(std::floor(i % 9 - 1.25f));
    const float voxel = x < 0 ? -3 : voxels[(i % 5 * kHeight + i % 6) * kWidth + x];
    const bool inside = i >= 2 && i - 2 < 24;
    wrong += got[i].x != pixel || got[i].y != voxel || got[i].z != (inside ? i - 2 : 0) ||
             got[i].w != (inside ? 2 - i : 0);
  }
  for (const auto texture : {a, b, c})
    CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaFreeArray(layers));
  CHECK(cudaFreeArray(volume));
  return wrong;
}

static long check_faces() {
  std::vector<float> faces(6), image{0, 1, 2, 3};
  for (int k = 0; k < 6; ++k)
    faces[k] = 10.0f + k;
  cudaArray_t cube = array_of(faces, 1, 1, 6, cudaArrayCubemap);
  cudaArray_t plane = array_of(image, 2, 2, 0, cudaArrayTextureGather);
  const auto a = texture_of(of(cube), cudaFilterModePoint, true, cudaAddressModeClamp);
  const auto b = texture_of(of(plane), cudaFilterModePoint, true, cudaAddressModeClamp);
  Buffer<float4> out(6);
  look<<<1, 6>>>(a, b, out);
  CHECK(cudaGetLastError());
  long wrong = 0;
  const std::vector<float4> got = out.host();
  for (int k = 0; k < 6; ++k)
    wrong += got[k].x != faces[k] || got[k].y != 2 || got[k].z != 1 || got[k].w != 0;
  CHECK(cudaDestroyTextureObject(a));
  CHECK(cudaDestroyTextureObject(b));
  CHECK(cudaFreeArray(cube));
  CHECK(cudaFreeArray(plane));
  return wrong;
}

static long check_inverted(unsigned state) {
  std::vector<uchar4> pixels(kWidth * kHeight), got(pixels.size());
  for (auto &pixel : pixels) {
    const unsigned bits = next_random(state);
    pixel = make_uchar4(bits >> 24, bits >> 16, bits >> 8, bits);
  }
  cudaArray_t from = array_of(pixels, kWidth, kHeight, 0, cudaArraySurfaceLoadStore), to = nullptr;
  const cudaChannelFormatDesc channels = cudaCreateChannelDesc<uchar4>();
  CHECK(cudaMallocArray(&to, &channels, kWidth, kHeight, cudaArraySurfaceLoadStore));
  const cudaResourceDesc source = of(from), target = of(to);
  cudaSurfaceObject_t a = 0, b = 0;
  CHECK(cudaCreateSurfaceObject(&a, &source));
  CHECK(cudaCreateSurfaceObject(&b, &target));
  invert<<<dim3(3, 2), dim3(16, 16)>>>(a, b, kWidth, kHeight);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy2DFromArray(got.data(), kWidth * 4, to, 0, 0, kWidth * 4, kHeight,
                              cudaMemcpyDeviceToHost));
  long wrong = 0;
  for (size_t k = 0; k < pixels.size(); ++k)
    wrong += got[k].x != 255 - pixels[k].x || got[k].y != pixels[k].y ||
             got[k].z != pixels[k].z || got[k].w != k % kWidth;
  CHECK(cudaDestroySurfaceObject(a));
  CHECK(cudaDestroySurfaceObject(b));
  CHECK(cudaFreeArray(from));
  CHECK(cudaFreeArray(to));
  return wrong;
}

// What the runtime says of an array and a texture is what they were made with.
static long check_described() {
  std::vector<short2> data(kWidth * kHeight);
  for (size_t k = 0; k < data.size(); ++k)
    data[k] = make_short2(k, -k);
  cudaArray_t first = array_of(data, kWidth, kHeight, 0, 0), second = nullptr;
  cudaChannelFormatDesc channels;
  cudaExtent extent;
  unsigned flags = 9;
  CHECK(cudaArrayGetInfo(&channels, &extent, &flags, first));
  long wrong = channels.x != 16 || channels.y != 16 || channels.z || channels.f != cudaChannelFormatKindSigned;
  wrong += extent.width != kWidth || extent.height != kHeight || extent.depth || flags;
  CHECK(cudaMallocArray(&second, &channels, 4, 3, 0));
  CHECK(cudaMemcpy2DArrayToArray(second, 4, 1, first, 8, 5, 12, 2, cudaMemcpyDeviceToDevice));
  std::vector<short2> got(12);
  CHECK(cudaMemcpy2DFromArray(got.data(), 16, second, 0, 0, 16, 3, cudaMemcpyDefault));
  for (int y = 1; y < 3; ++y)
    for (int x = 1; x < 4; ++x)
      wrong += got[y * 4 + x].x != data[(4 + y) * kWidth + x + 1].x;
  const auto texture = texture_of(of(first), cudaFilterModeLinear, true, cudaAddressModeMirror,
                                  cudaReadModeNormalizedFloat);
  cudaTextureDesc sampling;
  cudaResourceDesc resource;
  CHECK(cudaGetTextureObjectTextureDesc(&sampling, texture));
  CHECK(cudaGetTextureObjectResourceDesc(&resource, texture));
  wrong += sampling.readMode != cudaReadModeNormalizedFloat || !sampling.normalizedCoords ||
           sampling.addressMode[1] != cudaAddressModeMirror || sampling.borderColor[0] != -3;
  wrong += resource.resType != cudaResourceTypeArray || resource.res.array.array != first;
  CHECK(cudaDestroyTextureObject(texture));
  wrong += cudaDestroyTextureObject(texture) != cudaErrorInvalidValue;
  cudaGetLastError();
  CHECK(cudaFreeArray(first));
  CHECK(cudaFreeArray(second));
  return wrong;
}

int main() {
  unsigned state = 7;
  std::vector<float> values(kWidth * kHeight * kDepth);
  for (float &value : values)
    value = (next_random(state) >> 8) / 16777216.0f;
  const std::vector<float> image(values.begin(), values.begin() + kWidth * kHeight);
  long wrong = check_enlarged(image);
  wrong += check_picked(values, state);
  wrong += check_faces();
  wrong += check_inverted(state);
  wrong += check_described();
  return outcome("textures", wrong);
}
