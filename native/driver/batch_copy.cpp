// Copies in batches, and single copies that come with attributes.
//
// A batch is checked whole before it begins; its copies then run one after another, which is one of
// the orders allowed.  Where a source is read when is the same for all, so orders are only checked.
#include "arrays.h"
#include "blocks.h"
#include "driver_api.h"

namespace va {
namespace {

constexpr int kLastOrder = 3;
constexpr unsigned kFlags = 1; // prefer overlap with compute: a hint
constexpr size_t kNoCopy = SIZE_MAX;
constexpr int kPointer = 1, kArray = 2;

// Batches go into no legacy default stream.
void require_stream(CUstream handle) {
  const bool legacy = handle == reinterpret_cast<CUstream>(1);
  if (legacy || (!handle && !PerThreadStream::active()))
    fail(CUDA_ERROR_INVALID_VALUE);
  stream_of(handle);
}

void require_attributes(int order, unsigned flags) {
  if (order < 1 || order > kLastOrder || flags & ~kFlags)
    fail(CUDA_ERROR_INVALID_VALUE);
}

void require_pointer(CUdeviceptr address, size_t bytes) {
  if (!address)
    fail(CUDA_ERROR_INVALID_VALUE);
  if (in_arena(address))
    require_device_range(address, bytes);
}

// Which attributes belong to which copy: entry k from firsts[k] on.
void require_attribute_list(const CUmemcpyAttributes *attributes, const size_t *firsts,
                            size_t attribute_count, size_t count) {
  if (!attribute_count || attribute_count > count || firsts[0])
    fail(CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; i < attribute_count; ++i) {
    require_attributes(attributes[i].source_order, attributes[i].flags);
    if (firsts[i] >= count || (i && firsts[i] <= firsts[i - 1]))
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

void note_failure(size_t *failed, size_t index) {
  if (failed)
    *failed = index;
}

CUresult copy_batch(CUdeviceptr *targets, CUdeviceptr *sources, size_t *sizes, size_t count,
                    CUmemcpyAttributes *attributes, size_t *firsts, size_t attribute_count,
                    size_t *failed, CUstream stream) {
  note_failure(failed, kNoCopy);
  healthy_context();
  require_stream(stream);
  if (!count)
    return CUDA_ERROR_INVALID_VALUE;
  require_attribute_list(attributes, firsts, attribute_count, count);
  for (size_t i = 0; i < count; ++i) {
    note_failure(failed, i);
    if (!sizes[i])
      return CUDA_ERROR_INVALID_VALUE;
    require_pointer(targets[i], sizes[i]);
    require_pointer(sources[i], sizes[i]);
  }
  for (size_t i = 0; i < count; ++i) {
    note_failure(failed, i);
    const CUresult result = api::cuMemcpyAsync(targets[i], sources[i], sizes[i], stream);
    if (result != CUDA_SUCCESS)
      return result;
  }
  note_failure(failed, kNoCopy);
  return CUDA_SUCCESS;
}

// Bytes of an element: one, unless an array says otherwise.
uint64_t element_bytes(const CUDA_MEMCPY3D_BATCH_OP &op) {
  uint64_t bytes = 0;
  for (const CUmemcpy3DOperand *const side : {&op.source, &op.target}) {
    if (side->type != kPointer && side->type != kArray)
      fail(CUDA_ERROR_INVALID_VALUE);
    if (side->type == kPointer)
      continue;
    const uint64_t texel = array_of(side->array.array, CUDA_ERROR_INVALID_VALUE).texel_bytes;
    if (bytes && bytes != texel)
      fail(CUDA_ERROR_INVALID_VALUE);
    bytes = texel;
  }
  return bytes ? bytes : 1;
}

struct Extent {
  size_t pitch, height;
};

// Of memory: the length of its rows in bytes and of its layers in rows.
Extent extent_of(const CUmemcpy3DOperand &side, const CUDA_MEMCPY3D_BATCH_OP &op, uint64_t bytes) {
  const size_t row = side.pointer.row_length ? side.pointer.row_length : op.width;
  const size_t layer = side.pointer.layer_height ? side.pointer.layer_height : op.height;
  if (row < op.width || layer < op.height)
    fail(CUDA_ERROR_INVALID_VALUE);
  return {row * bytes, layer};
}

CUDA_MEMCPY3D box_of(const CUDA_MEMCPY3D_BATCH_OP &op) {
  require_attributes(op.source_order, op.flags);
  if (!op.width || !op.height || !op.depth)
    fail(CUDA_ERROR_INVALID_VALUE);
  const uint64_t bytes = element_bytes(op);
  CUDA_MEMCPY3D box{};
  box.width = op.width * bytes;
  box.height = op.height;
  box.depth = op.depth;
  if (op.source.type == kArray) {
    box.src_type = CU_MEMORYTYPE_ARRAY;
    box.src_array = op.source.array.array;
    box.src_x = op.source.array.x * bytes;
    box.src_y = op.source.array.y;
    box.src_z = op.source.array.z;
  } else {
    const Extent extent = extent_of(op.source, op, bytes);
    box.src_type = CU_MEMORYTYPE_UNIFIED;
    box.src_device = op.source.pointer.address;
    box.src_pitch = extent.pitch;
    box.src_height = extent.height;
  }
  if (op.target.type == kArray) {
    box.dst_type = CU_MEMORYTYPE_ARRAY;
    box.dst_array = op.target.array.array;
    box.dst_x = op.target.array.x * bytes;
    box.dst_y = op.target.array.y;
    box.dst_z = op.target.array.z;
  } else {
    const Extent extent = extent_of(op.target, op, bytes);
    box.dst_type = CU_MEMORYTYPE_UNIFIED;
    box.dst_device = op.target.pointer.address;
    box.dst_pitch = extent.pitch;
    box.dst_height = extent.height;
  }
  return box;
}

CUresult copy_boxes(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed, uint64_t flags,
                    CUstream stream) {
  note_failure(failed, kNoCopy);
  healthy_context();
  require_stream(stream);
  if (!count || flags)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    note_failure(failed, i);
    box_of(ops[i]);
  }
  for (size_t i = 0; i < count; ++i) {
    note_failure(failed, i);
    const CUDA_MEMCPY3D box = box_of(ops[i]);
    const CUresult result = api::cuMemcpy3DAsync_v2(&box, stream);
    if (result != CUDA_SUCCESS)
      return result;
  }
  note_failure(failed, kNoCopy);
  return CUDA_SUCCESS;
}

} // namespace

namespace api {

CUresult cuMemcpyBatchAsync(CUdeviceptr *targets, CUdeviceptr *sources, size_t *sizes, size_t count,
                            CUmemcpyAttributes *attributes, size_t *firsts, size_t attribute_count,
                            size_t *failed, CUstream stream) {
  return copy_batch(targets, sources, sizes, count, attributes, firsts, attribute_count, failed,
                    stream);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *targets, CUdeviceptr *sources, size_t *sizes,
                               size_t count, CUmemcpyAttributes *attributes, size_t *firsts,
                               size_t attribute_count, CUstream stream) {
  return copy_batch(targets, sources, sizes, count, attributes, firsts, attribute_count, nullptr,
                    stream);
}

CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed,
                              uint64_t flags, CUstream stream) {
  return copy_boxes(count, ops, failed, flags, stream);
}

CUresult cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, uint64_t flags,
                                 CUstream stream) {
  return copy_boxes(count, ops, nullptr, flags, stream);
}

CUresult cuMemcpyWithAttributesAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes,
                                     CUmemcpyAttributes *attribute, CUstream stream) {
  healthy_context();
  require_attributes(attribute->source_order, attribute->flags);
  return cuMemcpyAsync(target, source, bytes, stream);
}

CUresult cuMemcpy3DWithAttributesAsync(CUDA_MEMCPY3D_BATCH_OP *op, uint64_t flags,
                                       CUstream stream) {
  healthy_context();
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY3D box = box_of(*op);
  return cuMemcpy3DAsync_v2(&box, stream);
}

} // namespace api
} // namespace va
