// Memory that graphs allocate and free.  Addresses are taken when a node is made and kept while a
// graph, an executable graph or the client needs them; launches only change whose they are.
#include <algorithm>

#include "blocks.h"
#include "driver_api.h"
#include "graph.h"
#include "va100/check.h"

namespace va {
namespace {

// What clients free, and what graphs leave when they go, counts until the next trim.
struct DeviceUse {
  uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
  uint64_t used_until_trim = 0, reserved_until_trim = 0;
};

struct GraphBlocks {
  std::mutex mutex;
  std::map<uint64_t, GraphBlock *> by_base;
  std::map<int, DeviceUse> uses;
};

GraphBlocks &all() {
  static GraphBlocks *const instance = new GraphBlocks;
  return *instance;
}

std::atomic<int> &block_count() {
  static std::atomic<int> count{0};
  return count;
}

void take(GraphBlocks &blocks, GraphBlock &block) {
  if (block.live)
    return;
  block.live = true;
  DeviceUse &use = blocks.uses[block.device];
  use.used += block.bytes;
  use.used_high = std::max(use.used_high, use.used);
}

void give_back(GraphBlocks &blocks, GraphBlock &block, bool at_trim) {
  if (!block.live)
    return;
  block.live = false;
  DeviceUse &use = blocks.uses[block.device];
  if (at_trim)
    use.used_until_trim += block.bytes;
  else
    use.used -= block.bytes;
}

// Whether the memory is still this block's: it went with its context, perhaps, and is another's.
bool is_there(const GraphBlock &block) {
  Block found;
  return find_block(block.base, &found) && found.base == block.base && found.id == block.block_id;
}

GraphBlock *block_at(GraphBlocks &blocks, uint64_t base) {
  const auto found = blocks.by_base.find(base);
  return found != blocks.by_base.end() && is_there(*found->second) ? found->second : nullptr;
}

// What this graph freed before the new node runs, and no allocation after that took again.
std::shared_ptr<GraphBlock> reusable(const std::vector<GraphNode *> &needs, uint64_t bytes,
                                     int device, bool managed) {
  std::vector<const GraphNode *> before = ancestors_of(needs);
  before.insert(before.end(), needs.begin(), needs.end());
  if (before.empty())
    return nullptr;
  std::map<uint64_t, int> balance; // allocations less frees, of all nodes of the graph
  for (const std::unique_ptr<GraphNode> &node : before.front()->graph->nodes) {
    if (const auto *const alloc = std::get_if<AllocWork>(&node->work))
      ++balance[alloc->block->base];
    if (const auto *const freed = std::get_if<FreeWork>(&node->work))
      --balance[freed->address];
  }
  for (const GraphNode *const node : before) {
    const auto *const freed = std::get_if<FreeWork>(&node->work);
    if (!freed || balance[freed->address] != 0)
      continue;
    for (const std::unique_ptr<GraphNode> &other : node->graph->nodes) {
      const auto *const alloc = std::get_if<AllocWork>(&other->work);
      if (alloc && alloc->block->base == freed->address && alloc->block->bytes >= bytes &&
          alloc->block->device == device && alloc->block->managed == managed)
        return alloc->block;
    }
  }
  return nullptr;
}

CUresult get_use(int attribute, const DeviceUse &use, uint64_t *value) {
  enum { kUsed = 0, kUsedHigh = 1, kReserved = 2, kReservedHigh = 3 };
  switch (attribute) {
  case kUsed:
    *value = use.used;
    return CUDA_SUCCESS;
  case kUsedHigh:
    *value = use.used_high;
    return CUDA_SUCCESS;
  case kReserved:
    *value = use.reserved;
    return CUDA_SUCCESS;
  case kReservedHigh:
    *value = use.reserved_high;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

} // namespace

std::shared_ptr<GraphBlock> make_graph_block(const CUDA_MEM_ALLOC_NODE_PARAMS &params,
                                             const std::vector<GraphNode *> &needs) {
  constexpr int kPinned = 1;
  constexpr int kManaged = 2;
  constexpr unsigned kAttachGlobal = 1;
  const CUmemPoolProps &pool = params.pool;
  if (!params.bytes || (params.access_count && !params.access) ||
      (pool.alloc_type != kPinned && pool.alloc_type != kManaged))
    fail(CUDA_ERROR_INVALID_VALUE);
  const bool managed = pool.alloc_type == kManaged;
  const bool on_device = pool.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (pool.handle_types || (!on_device && !managed))
    fail(CUDA_ERROR_NOT_SUPPORTED); // memory that other processes see, or the host's
  Context &asking = current_context();
  Device &device = on_device ? device_of(pool.location.id) : *asking.device;
  if (std::shared_ptr<GraphBlock> again =
          reusable(needs, params.bytes, device.ordinal, managed)) {
    const std::lock_guard<std::mutex> lock(all().mutex);
    again->freed_inside = false;
    return again;
  }
  Context &context = asking.device == &device ? asking : *device.primary;
  auto block = std::make_shared<GraphBlock>();
  const uint64_t base = managed ? allocate(context, params.bytes, Origin::kManaged, kAttachGlobal)
                                : allocate(context, params.bytes, Origin::kDevice, 0);
  block->managed = managed;
  Block found;
  find_block(base, &found);
  block->base = base;
  block->bytes = params.bytes;
  block->block_id = found.id;
  block->device = device.ordinal;
  GraphBlocks &blocks = all();
  const std::lock_guard<std::mutex> lock(blocks.mutex);
  blocks.by_base[base] = block.get();
  ++block_count();
  DeviceUse &use = blocks.uses[block->device];
  use.reserved += block->bytes;
  use.reserved_high = std::max(use.reserved_high, use.reserved);
  return block;
}

GraphBlock::~GraphBlock() {
  if (!base)
    return;
  GraphBlocks &blocks = all();
  {
    const std::lock_guard<std::mutex> lock(blocks.mutex);
    const bool client_has_it = live;
    give_back(blocks, *this, true);
    blocks.uses[device].reserved_until_trim += bytes;
    const auto mine = blocks.by_base.find(base);
    if (mine != blocks.by_base.end() && mine->second == this)
      blocks.by_base.erase(mine);
    --block_count();
    if (client_has_it)
      return; // an ordinary allocation from now on
  }
  if (is_there(*this))
    release(base, false);
}

void claim(GraphBlock &block) {
  GraphBlocks &blocks = all();
  const std::lock_guard<std::mutex> lock(blocks.mutex);
  if (!is_there(block))
    fail(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  take(blocks, block);
}

bool is_live(const GraphBlock &block) {
  const std::lock_guard<std::mutex> lock(all().mutex);
  return block.live;
}

bool may_be_freed(uint64_t base, bool by_owner) {
  GraphBlocks &blocks = all();
  const std::lock_guard<std::mutex> lock(blocks.mutex);
  GraphBlock *const block = block_at(blocks, base);
  if (!block || (by_owner ? block->freed_outside : block->freed_inside))
    return false;
  (by_owner ? block->freed_inside : block->freed_outside) = true;
  return true;
}

bool release_graph_block(uint64_t base, bool *released, bool by_graph) {
  if (!block_count().load(std::memory_order_relaxed))
    return false;
  GraphBlocks &blocks = all();
  const std::lock_guard<std::mutex> lock(blocks.mutex);
  GraphBlock *const block = block_at(blocks, base);
  if (!block)
    return false;
  *released = block->live;
  give_back(blocks, *block, !by_graph);
  return true;
}

namespace api {

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                      void *value) {
  const int device = device_of(ordinal).ordinal;
  if (!value)
    return CUDA_ERROR_INVALID_VALUE;
  GraphBlocks &blocks = all();
  const std::lock_guard<std::mutex> lock(blocks.mutex);
  return get_use(attribute, blocks.uses[device], static_cast<uint64_t *>(value));
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                      void *value) {
  const int device = device_of(ordinal).ordinal;
  if (!value || *static_cast<uint64_t *>(value) || (attribute != 1 && attribute != 3))
    return CUDA_ERROR_INVALID_VALUE; // only high marks are set, and only back
  GraphBlocks &blocks = all();
  const std::lock_guard<std::mutex> lock(blocks.mutex);
  DeviceUse &use = blocks.uses[device];
  (attribute == 1 ? use.used_high : use.reserved_high) = attribute == 1 ? use.used : use.reserved;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
  const int device = device_of(ordinal).ordinal;
  GraphBlocks &blocks = all();
  const std::lock_guard<std::mutex> lock(blocks.mutex);
  DeviceUse &use = blocks.uses[device];
  use.used -= use.used_until_trim;
  use.reserved -= use.reserved_until_trim;
  use.used_until_trim = use.reserved_until_trim = 0;
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
