// Copies in batches and with attributes, copies of boxes between devices, and managed memory by the
// range.
#include "runtime_api.h"
#include "runtime_entry.h"

namespace va::rt {
namespace {

CUdeviceptr address(const void *pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// Boxes between devices are boxes between addresses: each belongs to one device.
cudaMemcpy3DParms parameters_of(const cudaMemcpy3DPeerParms &p) {
  cudaMemcpy3DParms out{};
  out.src_array = p.src_array;
  out.src_pos = p.src_pos;
  out.src = p.src;
  out.dst_array = p.dst_array;
  out.dst_pos = p.dst_pos;
  out.dst = p.dst;
  out.extent = p.extent;
  out.kind = kDefault;
  return out;
}

void require_devices(const cudaMemcpy3DPeerParms &p) {
  int count = 0;
  check(cuDeviceGetCount(&count));
  if (p.src_device < 0 || p.src_device >= count || p.dst_device < 0 || p.dst_device >= count)
    fail(cudaErrorInvalidDevice);
}

} // namespace

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms *p) {
  enter();
  require_devices(*p);
  const cudaMemcpy3DParms plain = parameters_of(*p);
  return cudaMemcpy3D(&plain);
}

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms *p, cudaStream_t handle) {
  enter();
  require_devices(*p);
  const cudaMemcpy3DParms plain = parameters_of(*p);
  return cudaMemcpy3DAsync(&plain, handle);
}

cudaError_t cudaMemRangeGetAttribute(void *data, size_t size, cudaMemRangeAttribute attribute,
                                     const void *pointer, size_t bytes) {
  enter();
  return from_driver(cuMemRangeGetAttribute(data, size, attribute, address(pointer), bytes));
}

cudaError_t cudaMemRangeGetAttributes(void **data, size_t *sizes,
                                      cudaMemRangeAttribute *attributes, size_t count,
                                      const void *pointer, size_t bytes) {
  enter();
  return from_driver(
      cuMemRangeGetAttributes(data, sizes, attributes, count, address(pointer), bytes));
}

#if VA100_CUDART_MAJOR < 13
cudaError_t cudaMemcpyBatchAsync(void **targets, void **sources, size_t *sizes, size_t count,
                                 cudaMemcpyAttributes *attributes, size_t *firsts,
                                 size_t attribute_count, size_t *failed, cudaStream_t handle) {
  enter();
  return from_driver(cuMemcpyBatchAsync(reinterpret_cast<CUdeviceptr *>(targets),
                                        reinterpret_cast<CUdeviceptr *>(sources), sizes, count,
                                        attributes, firsts, attribute_count, failed,
                                        stream(handle)));
}

cudaError_t cudaMemcpy3DBatchAsync(size_t count, cudaMemcpy3DBatchOp *ops, size_t *failed,
                                   uint64_t flags, cudaStream_t handle) {
  enter();
  return from_driver(cuMemcpy3DBatchAsync(count, ops, failed, flags, stream(handle)));
}
#else
namespace {

// The driver takes pointers as numbers, and does not write to its lists.
CUdeviceptr *addresses(const void *const *pointers) {
  return reinterpret_cast<CUdeviceptr *>(const_cast<void **>(const_cast<void *const *>(pointers)));
}

} // namespace

cudaError_t cudaMemcpyBatchAsync(void *const *targets, const void *const *sources,
                                 const size_t *sizes, size_t count,
                                 cudaMemcpyAttributes *attributes, size_t *firsts,
                                 size_t attribute_count, cudaStream_t handle) {
  enter();
  return from_driver(cuMemcpyBatchAsync_v2(addresses(targets), addresses(sources),
                                           const_cast<size_t *>(sizes), count, attributes, firsts,
                                           attribute_count, stream(handle)));
}

cudaError_t cudaMemcpy3DBatchAsync(size_t count, cudaMemcpy3DBatchOp *ops, uint64_t flags,
                                   cudaStream_t handle) {
  enter();
  return from_driver(cuMemcpy3DBatchAsync_v2(count, ops, flags, stream(handle)));
}

cudaError_t cudaMemcpyWithAttributesAsync(void *to, const void *from, size_t bytes,
                                          cudaMemcpyAttributes *attribute, cudaStream_t handle) {
  enter();
  return from_driver(cuMemcpyWithAttributesAsync(address(to), address(from), bytes, attribute,
                                                 stream(handle)));
}

cudaError_t cudaMemcpy3DWithAttributesAsync(cudaMemcpy3DBatchOp *op, uint64_t flags,
                                            cudaStream_t handle) {
  enter();
  return from_driver(cuMemcpy3DWithAttributesAsync(op, flags, stream(handle)));
}

cudaError_t cudaMemPrefetchBatchAsync(void **pointers, size_t *sizes, size_t count,
                                      cudaMemLocation *locations, size_t *firsts,
                                      size_t location_count, uint64_t flags,
                                      cudaStream_t handle) {
  enter();
  return from_driver(cuMemPrefetchBatchAsync(addresses(pointers), sizes, count, locations, firsts,
                                             location_count, flags, stream(handle)));
}

cudaError_t cudaMemDiscardBatchAsync(void **pointers, size_t *sizes, size_t count, uint64_t flags,
                                     cudaStream_t handle) {
  enter();
  return from_driver(
      cuMemDiscardBatchAsync(addresses(pointers), sizes, count, flags, stream(handle)));
}

cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void **pointers, size_t *sizes, size_t count,
                                                cudaMemLocation *locations, size_t *firsts,
                                                size_t location_count, uint64_t flags,
                                                cudaStream_t handle) {
  enter();
  return from_driver(cuMemDiscardAndPrefetchBatchAsync(addresses(pointers), sizes, count,
                                                       locations, firsts, location_count, flags,
                                                       stream(handle)));
}
#endif

} // namespace va::rt
