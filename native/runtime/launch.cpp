// Launches, function attributes and occupancy, and libraries, of the runtime.
#include "runtime_api.h"
#include "runtime_entry.h"

namespace va::rt {
namespace {

// A shape no device takes is a wrong configuration here, not a wrong value as in the driver.
void require_configuration(const dim3 &grid, const dim3 &block) {
  const CUdevice device = current_device();
  int most_threads = 0;
  check(cuDeviceGetAttribute(&most_threads, 1, device));
  const unsigned blocks[] = {block.x, block.y, block.z}, grids[] = {grid.x, grid.y, grid.z};
  uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    int most_block = 0, most_grid = 0;
    check(cuDeviceGetAttribute(&most_block, 2 + i, device));
    check(cuDeviceGetAttribute(&most_grid, 5 + i, device));
    if (!blocks[i] || !grids[i] || blocks[i] > static_cast<unsigned>(most_block) ||
        grids[i] > static_cast<unsigned>(most_grid))
      fail(cudaErrorInvalidConfiguration);
    threads *= blocks[i];
  }
  if (threads > static_cast<uint64_t>(most_threads))
    fail(cudaErrorInvalidConfiguration);
}

// Library kernels' attributes live by device, not by context.
int attribute_of(CUkernel kernel, int attribute, int device) {
  int value = 0;
  check(cuKernelGetAttribute(&value, attribute, kernel, device));
  return value;
}

} // namespace

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared_bytes, cudaStream_t handle) {
  const CUfunction f = function_of(function);
  const CUresult result =
      cuLaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                     static_cast<unsigned>(shared_bytes), stream(handle), arguments, nullptr);
  if (result == CUDA_ERROR_INVALID_VALUE)
    require_configuration(grid, block);
  return from_driver(result);
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block,
                                        void **arguments, size_t shared_bytes,
                                        cudaStream_t handle) {
  const CUfunction f = function_of(function);
  const CUresult result = cuLaunchCooperativeKernel(
      f, grid.x, grid.y, grid.z, block.x, block.y, block.z, static_cast<unsigned>(shared_bytes),
      stream(handle), arguments);
  if (result == CUDA_ERROR_INVALID_VALUE)
    require_configuration(grid, block);
  return from_driver(result);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *function,
                                void **arguments) {
  const CUfunction f = function_of(function);
  CUlaunchConfig config{};
  config.grid[0] = c->grid.x;
  config.grid[1] = c->grid.y;
  config.grid[2] = c->grid.z;
  config.block[0] = c->block.x;
  config.block[1] = c->block.y;
  config.block[2] = c->block.z;
  config.shared_bytes = static_cast<unsigned>(c->shared_bytes);
  config.stream = stream(c->stream);
  config.attributes = c->attributes; // laid out alike
  config.attribute_count = c->attribute_count;
  const CUresult result = cuLaunchKernelEx(&config, f, arguments, nullptr);
  if (result == CUDA_ERROR_INVALID_VALUE)
    require_configuration(c->grid, c->block);
  return from_driver(result);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t call, void *data) {
  enter();
  return from_driver(cuLaunchHostFunc(stream(handle), call, data));
}

#if VA100_CUDART_MAJOR >= 13
cudaError_t cudaLaunchHostFunc_v2(cudaStream_t handle, cudaHostFn_t call, void *data,
                                  unsigned int mode) {
  enter();
  return from_driver(cuLaunchHostFunc_v2(stream(handle), call, data, mode));
}

cudaError_t cudaFuncGetParamCount(const void *function, size_t *count) {
  return from_driver(cuKernelGetParamCount(kernel_of(function), count));
}
#endif

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, const void *function) {
  const CUkernel kernel = kernel_of(function);
  const int device = current_device();
  *a = cudaFuncAttributes{};
  a->max_threads = attribute_of(kernel, 0, device);
  a->shared_bytes = static_cast<size_t>(attribute_of(kernel, 1, device));
  a->const_bytes = static_cast<size_t>(attribute_of(kernel, 2, device));
  a->local_bytes = static_cast<size_t>(attribute_of(kernel, 3, device));
  a->registers = attribute_of(kernel, 4, device);
  a->ptx_version = attribute_of(kernel, 5, device);
  a->binary_version = attribute_of(kernel, 6, device);
  a->cache_mode_ca = attribute_of(kernel, 7, device);
  a->max_dynamic_shared = attribute_of(kernel, 8, device);
  a->carveout = attribute_of(kernel, 9, device);
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value) {
  const CUkernel kernel = kernel_of(function);
  return from_driver(cuKernelSetAttribute(attribute, value, kernel, current_device()));
}

cudaError_t cudaFuncSetCacheConfig(const void *function, cudaFuncCache) {
  kernel_of(function);
  return cudaSuccess;
}

cudaError_t cudaFuncSetSharedMemConfig(const void *function, cudaSharedMemConfig) {
  kernel_of(function);
  return cudaSuccess;
}

cudaError_t cudaFuncGetName(const char **name, const void *function) {
  return from_driver(cuKernelGetName(name, kernel_of(function)));
}

cudaError_t cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset,
                                 size_t *bytes) {
  return from_driver(cuKernelGetParamInfo(kernel_of(function), index, offset, bytes));
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *host) {
  return from_driver(cuKernelGetFunction(function, kernel_of(host)));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *count, const void *function,
                                                          int threads, size_t shared_bytes) {
  return from_driver(cuOccupancyMaxActiveBlocksPerMultiprocessor(count, function_of(function),
                                                                 threads, shared_bytes));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count,
                                                                   const void *function,
                                                                   int threads,
                                                                   size_t shared_bytes,
                                                                   unsigned int flags) {
  return from_driver(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      count, function_of(function), threads, shared_bytes, flags));
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function,
                                                      int ctas, int threads) {
  return from_driver(
      cuOccupancyAvailableDynamicSMemPerBlock(bytes, function_of(function), ctas, threads));
}

// ------------------------------------------------------------------ libraries

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, cudaJitOption *options,
                                void **values, unsigned int count, cudaLibraryOption *more,
                                void **more_values, unsigned int more_count) {
  enter();
  return from_driver(
      cuLibraryLoadData(library, code, options, values, count, more, more_values, more_count));
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *path,
                                    cudaJitOption *options, void **values, unsigned int count,
                                    cudaLibraryOption *more, void **more_values,
                                    unsigned int more_count) {
  enter();
  return from_driver(
      cuLibraryLoadFromFile(library, path, options, values, count, more, more_values, more_count));
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  enter();
  return from_driver(cuLibraryUnload(library));
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name) {
  enter();
  return from_driver(cuLibraryGetKernel(kernel, library, name));
}

cudaError_t cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t library) {
  enter();
  return from_driver(cuLibraryGetKernelCount(count, library));
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int count,
                                        cudaLibrary_t library) {
  enter();
  return from_driver(cuLibraryEnumerateKernels(kernels, count, library));
}

cudaError_t cudaLibraryGetGlobal(void **pointer, size_t *bytes, cudaLibrary_t library,
                                 const char *name) {
  enter();
  return from_driver(
      cuLibraryGetGlobal(reinterpret_cast<CUdeviceptr *>(pointer), bytes, library, name));
}

cudaError_t cudaLibraryGetManaged(void **pointer, size_t *bytes, cudaLibrary_t library,
                                  const char *name) {
  enter();
  return from_driver(
      cuLibraryGetManaged(reinterpret_cast<CUdeviceptr *>(pointer), bytes, library, name));
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute,
                                            int value, int device) {
  enter();
  return from_driver(cuKernelSetAttribute(attribute, value, kernel, device));
}

} // namespace va::rt
