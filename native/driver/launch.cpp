// Launching: checks, parameters, machine code for the block shape, running, and faults.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "activity.h"
#include "board.h"
#include "fabric.h"
#include "capture.h"
#include "compiler.h"
#include "coredump.h"
#include "driver_api.h"
#include "modules.h"
#include "settings.h"
#include "va100/check.h"
#include "va100/children.h"
#include "va100/driver.h"
#include "va100/outside.h"
#include "va100/heap.h"

namespace va {
namespace {

constexpr size_t kMostParameterBytes = 32764;
constexpr size_t kMallocHeapLimit = 2; // CUlimit
// Machine code takes ctaid.x * ntid.x + tid.x to fit a signed integer (jit/transfer.py).
constexpr uint64_t kMostThreadsInX = 0x7FFFFFFF;

std::mutex g_fault_mutex;
std::string *g_last_fault = nullptr;

void require_shape(const Device &device, const Function &f, const Shape &s) {
  uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (!s.grid[i] || s.grid[i] > static_cast<uint32_t>(device.attribute(5 + i)) || !s.block[i] ||
        s.block[i] > static_cast<uint32_t>(device.attribute(2 + i)))
      fail(CUDA_ERROR_INVALID_VALUE);
    threads *= s.block[i];
  }
  if (threads > f.max_threads) {
    note("kernel %s was compiled for at most %u threads a block; the launch has %llu",
         f.title.c_str(), f.max_threads, static_cast<unsigned long long>(threads));
    fail(CUDA_ERROR_INVALID_VALUE);
  }
  if (uint64_t{s.grid[0]} * s.block[0] > kMostThreadsInX) {
    say("cannot launch kernel %s: %llu threads in x; this version launches at most %llu, so that "
        "an index fits a signed 32-bit integer\n  to fix: launch fewer and let each do more",
        f.title.c_str(), static_cast<unsigned long long>(uint64_t{s.grid[0]} * s.block[0]),
        static_cast<unsigned long long>(kMostThreadsInX));
    fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  if (f.required_block[0] && std::memcmp(f.required_block, s.block, sizeof s.block) != 0)
    fail(CUDA_ERROR_INVALID_VALUE);
  if (s.shared_bytes > f.dynamic_shared_limit.load(std::memory_order_relaxed)) {
    note("kernel %s: %u bytes of dynamic shared memory asked for, %u allowed; raise "
         "MAX_DYNAMIC_SHARED_SIZE_BYTES first",
         f.title.c_str(), s.shared_bytes, f.dynamic_shared_limit.load());
    fail(CUDA_ERROR_INVALID_VALUE);
  }
}

const Variant *find_variant(Function &f, const uint32_t block[3]) {
  const Variant *const last = f.last.load(std::memory_order_acquire);
  if (last && !std::memcmp(last->block, block, sizeof last->block))
    return last;
  const std::lock_guard<std::mutex> lock(f.variants_mutex);
  for (const auto &variant : f.variants)
    if (!std::memcmp(variant->block, block, sizeof variant->block)) {
      f.last.store(variant.get(), std::memory_order_release);
      return variant.get();
    }
  return nullptr;
}

// Machine code for a block shape.  No lock while compiling: the compiler may have to wait for the
// interpreter; of two threads that compile the same, the first keeps its result.
const Variant &variant_for(Function &f, const uint32_t block[3]) {
  if (const Variant *const found = find_variant(f, block))
    return *found;
  auto made = std::make_unique<Variant>();
  std::memcpy(made->block, block, sizeof made->block);
  std::string text;
  const int result = compiler_compile(f.compiler_id, block, &made->code, &made->id, &text);
  if (result != CUDA_SUCCESS) {
    say("cannot launch kernel %s: %s", f.title.c_str(),
        text.empty() ? "the compiler gave no reason" : text.c_str());
    fail(static_cast<CUresult>(result));
  }
  {
    const std::lock_guard<std::mutex> lock(f.variants_mutex);
    f.variants.push_back(std::move(made));
  }
  return *find_variant(f, block);
}

// Zeroed room for one launch, on the stack while it is small.
template <typename Item, size_t kInline> class Scratch {
public:
  explicit Scratch(size_t count) {
    if (count > kInline)
      large_.reset(new Item[count]);
    std::memset(data(), 0, count * sizeof(Item));
  }
  Item *data() { return large_ ? large_.get() : small_; }

private:
  Item small_[kInline];
  std::unique_ptr<Item[]> large_;
};

CUresult code_of(uint32_t fault) {
  switch (fault) {
  case VA_FAULT_ILLEGAL_ADDRESS:
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  case VA_FAULT_MISALIGNED:
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  case VA_FAULT_ASSERT:
    return CUDA_ERROR_ASSERT;
  case VA_FAULT_ILLEGAL_INSTRUCTION:
    return CUDA_ERROR_ILLEGAL_INSTRUCTION;
  case VA_FAULT_DEADLOCK:
  case VA_FAULT_TIMEOUT:
    return CUDA_ERROR_LAUNCH_TIMEOUT;
  case VA_FAULT_RESOURCES:
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  case VA_FAULT_STACK:
    return CUDA_ERROR_HARDWARE_STACK_ERROR;
  default:
    return CUDA_ERROR_LAUNCH_FAILED;
  }
}

std::string plain_text(const Function &f, const va_fault &fault) {
  char text[1024];
  snprintf(text, sizeof text,
           "kernel %s faulted (CUDA error %d) at address 0x%llx, %u bytes, by thread (%u, %u, %u) "
           "of CTA (%u, %u, %u)%s%s",
           f.title.c_str(), code_of(fault.kind), static_cast<unsigned long long>(fault.address),
           fault.size, fault.tid[0], fault.tid[1], fault.tid[2], fault.ctaid[0], fault.ctaid[1],
           fault.ctaid[2], fault.text[0] ? ": " : "", fault.text);
  return text;
}

// Make the fault stick, unless the checker is asked to let the program go on; tell what happened.
void report(Context &context, const Function &f, const Variant &variant, const va_fault &fault) {
  int healthy = CUDA_SUCCESS;
  if (!(settings().check & VA_CHECK_KEEP_CONTEXT))
    context.fault.compare_exchange_strong(healthy, code_of(fault.kind));
  flush_device_output();
  std::string text = compiler_explain(f.compiler_id, variant.id, fault);
  if (text.empty())
    text = plain_text(f, fault);
  say("%s", text.c_str());
  dump_fault(context, text);
  const std::lock_guard<std::mutex> lock(g_fault_mutex);
  delete g_last_fault;
  g_last_fault = new std::string(std::move(text));
}

// Of the allocations that a launch can reach, those that lie on other GPUs.
std::vector<Reach> reach_of(const va_allocation *found, size_t count, uint64_t all_bytes,
                            const Device &device) {
  const int here = va_fabric_gpu(device.ordinal);
  std::vector<Reach> reach;
  for (size_t i = 0; i < count; ++i) {
    const int gpu = found[i].device < 0 ? -1 : gpu_holding(found[i].base, found[i].device);
    if (gpu < 0 || gpu == here || !found[i].bytes)
      continue;
    const double share = static_cast<double>(found[i].bytes) / static_cast<double>(all_bytes);
    reach.push_back(Reach{found[i].device, gpu, share, peer_bytes_per_s(gpu, here)});
  }
  return reach;
}

// Bytes of the allocations that a launch can reach through its arguments and its module's
// variables: more than it touches, perhaps, but DRAM sees none of them more than it has to.
// Pointers that lie in memory are not followed.
uint64_t footprint_of(const Function &f, const uint8_t *block, const Device &device) {
  constexpr size_t kMostPointers = 64;
  va_allocation found[kMostPointers];
  size_t count = 0;
  for (size_t at = 0; at + sizeof(uint64_t) <= f.parameter_bytes && count < kMostPointers; at += 8) {
    uint64_t word;
    std::memcpy(&word, block + at, sizeof word);
    if (word - VA_ARENA_BASE >= VA_ARENA_BYTES || !va_arena_find(word, &found[count]))
      continue;
    const uint64_t base = found[count].base;
    if (std::none_of(found, found + count, [&](const va_allocation &a) { return a.base == base; }))
      ++count;
  }
  uint64_t bytes = 0;
  bool is_local = true;
  for (size_t i = 0; i < count; ++i) {
    bytes += found[i].bytes;
    is_local = is_local && found[i].device == device.ordinal;
  }
  if (!is_local)
    log_reach(reach_of(found, count, bytes, device));
  if (bytes)
    for (const auto &[name, global] : f.module->globals)
      bytes += global.bytes;
  return bytes;
}

void log_run(Function &f, const Variant &variant, const Shape &s, const Stream &stream,
             const uint64_t *counters, uint64_t footprint_bytes) {
  LaunchWork work{};
  work.compiler_id = f.compiler_id;
  work.variant_id = variant.id;
  std::memcpy(work.grid, s.grid, sizeof work.grid);
  std::memcpy(work.block, s.block, sizeof work.block);
  work.dynamic_shared_bytes = s.shared_bytes;
  work.device = static_cast<uint32_t>(stream.context->device->ordinal);
  work.footprint_bytes = footprint_bytes;
  {
    // Equal launches count equally, mostly; they share one copy.
    const std::lock_guard<std::mutex> lock(f.variants_mutex);
    const size_t count = variant.code.counter_count;
    if (!f.last_counters || f.last_counters->size() != count ||
        !std::equal(counters, counters + count, f.last_counters->begin()))
      f.last_counters = std::make_shared<std::vector<uint64_t>>(counters, counters + count);
    work.counters = f.last_counters;
  }
  log_launch(stream.track, std::move(work));
}

void require_cooperative(const Device &device, const Shape &s, uint32_t per_sm) {
  constexpr int kSmCount = 16;
  const uint64_t ctas = uint64_t{s.grid[0]} * s.grid[1] * s.grid[2];
  if (ctas > uint64_t{per_sm} * static_cast<uint64_t>(device.attribute(kSmCount)))
    fail(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

// CTAs an SM holds at once; fails unless the kernel may be launched in this shape.
uint32_t require_resident(const Device &device, const Function &f, const Shape &s) {
  require_shape(device, f, s);
  const uint32_t threads = s.block[0] * s.block[1] * s.block[2];
  const uint32_t per_sm = resident_ctas_per_sm(device, f, threads, s.shared_bytes);
  if (!per_sm)
    fail(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  if (s.cooperative)
    require_cooperative(device, s, per_sm);
  return per_sm;
}

uint32_t warps_per_sm(const Shape &s, uint32_t ctas_per_sm) {
  return ctas_per_sm * ((s.block[0] * s.block[1] * s.block[2] + 31) / 32);
}

// CTAs that share an SM's L1: fewer than it holds where there are not enough of them.
uint32_t l1_neighbours(const Shape &s, uint32_t ctas_per_sm, uint32_t sm_count) {
  const uint64_t ctas = uint64_t{s.grid[0]} * s.grid[1] * s.grid[2];
  return static_cast<uint32_t>(
      std::max<uint64_t>(std::min<uint64_t>(ctas_per_sm, (ctas + sm_count - 1) / sm_count), 1));
}

// Run one grid to its end; a fault sticks to the context.
void run_grid(Stream &stream, Function &f, const Shape &s, const uint8_t *parameters) {
  constexpr int kSmCount = 16, kL2Bytes = 38;
  const Device &device = *stream.context->device;
  const uint32_t per_sm = require_resident(device, f, s);
  const Variant &variant = variant_for(f, s.block);

  Scratch<uint64_t, 512> counters(variant.code.counter_count);
  va_launch request{};
  request.variant = &variant.code;
  request.params = parameters;
  std::memcpy(request.grid, s.grid, sizeof request.grid);
  std::memcpy(request.block, s.block, sizeof request.block);
  request.dynamic_shared_bytes = s.shared_bytes;
  request.cooperative = s.cooperative;
  request.workers = settings().workers;
  request.sm_count = static_cast<uint32_t>(device.attribute(kSmCount));
  request.resident_ctas = per_sm * request.sm_count;
  request.observe_ctas = settings().observe_ctas;
  request.l1_cta_bytes =
      l1_cta_bytes(device, f, l1_neighbours(s, per_sm, request.sm_count), s.shared_bytes);
  request.l2_bytes = static_cast<uint64_t>(device.attribute(kL2Bytes));
  request.shuffle = settings().shuffle;
  request.counters = counters.data();
  const uint64_t footprint_bytes = footprint_of(f, parameters, device);
  va_exec_use_heap(stream.context->id, stream.context->limits[kMallocHeapLimit].load());
  {
    const std::lock_guard<std::recursive_mutex> lock(stream.order);
    const RunningGrid running(device, {variant.id, uint64_t{s.grid[0]} * s.grid[1] * s.grid[2],
                                       warps_per_sm(s, per_sm), footprint_bytes});
    if (variant.code.flags & VA_INTERPRETED)
      compiler_launch(f.compiler_id, variant.id, &request);
    else
      va_exec_launch(&request);
  }
  log_run(f, variant, s, stream, counters.data(), footprint_bytes);
  if (request.fault.kind)
    report(*stream.context, f, variant, request.fault);
  settle_activity();
}

// A grid that device code launched; one that cannot run is told of and left out.
void run_child(Stream &stream, const va_module &module, const va_child_grid &child) {
  const auto it = module.by_address.find(child.function);
  if (it == module.by_address.end()) {
    say("device code launched 0x%llx, where no kernel is",
        static_cast<unsigned long long>(child.function));
    return;
  }
  Function &f = *it->second;
  Shape s{{}, {}, child.dynamic_shared_bytes, false};
  std::memcpy(s.grid, child.grid, sizeof s.grid);
  std::memcpy(s.block, child.block, sizeof s.block);
  try {
    run_grid(stream, runnable(f), s, reinterpret_cast<const uint8_t *>(&child + 1));
  } catch (const Failure &failure) {
    say("kernel %s, launched by device code, did not run (CUDA error %d)", f.title.c_str(),
        failure.code);
  }
}

// What the grid that ended last launched, depth first: a grid has ended when its children have,
// and tail launches come after all others, which is the order they are handed out in.
void run_descendants(Stream &stream, const va_module &module) {
  std::vector<uint64_t> waiting; // the next one last
  for (;;) {
    uint64_t found[64];
    std::vector<uint64_t> fresh;
    while (const size_t count = va_exec_take_children(found, 64))
      fresh.insert(fresh.end(), found, found + count);
    waiting.insert(waiting.end(), fresh.rbegin(), fresh.rend());
    if (waiting.empty())
      return;
    const uint64_t record = waiting.back();
    waiting.pop_back();
    if (stream.context->fault.load() == CUDA_SUCCESS)
      run_child(stream, module, *reinterpret_cast<const va_child_grid *>(record));
    va_exec_release_child(record);
  }
}

// As cuStreamSynchronize does, after every launch.
void wait_for(const Stream &stream) {
  log_join(stream.track);
  flush_device_output();
  require_healthy(*stream.context);
}

CUresult launch(CUfunction handle, const Shape &s, CUstream stream_handle, void **parameters,
                void **extra, Attributes attributes = {}) {
  healthy_context();
  Stream &stream = stream_of(stream_handle);
  Context &context = *stream.context;
  require_healthy(context);
  Function &f = function_of(handle);
  if (f.module->context != &context)
    return CUDA_ERROR_INVALID_HANDLE;
  Scratch<uint8_t, 4352> block(f.parameter_bytes);
  pack_parameters(f, parameters, extra, block.data());
  if (in_capture(stream)) {
    require_launchable(*context.device, f, s);
    capture(stream, kernel_work(f, s, block.data(), std::move(attributes)));
    return CUDA_SUCCESS;
  }
  run_kernel(stream, f, s, block.data());
  if (settings().launch_blocking)
    wait_for(stream);
  return CUDA_SUCCESS; // a fault shows in the next call, as work is asynchronous
}

// Parameters that the calls older than cuLaunchKernel set one by one.
CUresult set_legacy(CUfunction handle, int offset, const void *value, size_t bytes) {
  Function &f = function_of(handle);
  if (offset < 0 || !value || static_cast<size_t>(offset) + bytes > kMostParameterBytes)
    return CUDA_ERROR_INVALID_VALUE;
  const size_t end = static_cast<size_t>(offset) + bytes;
  if (f.legacy_parameters.size() < end)
    f.legacy_parameters.resize(end);
  std::memcpy(f.legacy_parameters.data() + offset, value, bytes);
  return CUDA_SUCCESS;
}

CUresult launch_legacy(CUfunction handle, int width, int height, CUstream stream) {
  if (width <= 0 || height <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  Function &f = function_of(handle);
  Shape s{{static_cast<uint32_t>(width), static_cast<uint32_t>(height), 1}, {}, f.legacy_shared,
          false};
  std::memcpy(s.block, f.legacy_block, sizeof s.block);
  size_t bytes = f.legacy_parameters.size();
  void *extra[] = {reinterpret_cast<void *>(1), f.legacy_parameters.data(),
                   reinterpret_cast<void *>(2), &bytes, nullptr};
  return launch(handle, s, stream, nullptr, extra);
}

} // namespace

// The parameter block: from one pointer a parameter, or a buffer the caller packed.
void pack_parameters(const Function &f, void **parameters, void **extra, uint8_t *out) {
  if (extra) {
    const void *buffer = nullptr;
    const size_t *bytes = nullptr;
    for (void **item = extra; *item; item += 2) { // pairs of what and where, ended by 0
      if (item[0] == reinterpret_cast<void *>(1))
        buffer = item[1];
      else if (item[0] == reinterpret_cast<void *>(2))
        bytes = static_cast<const size_t *>(item[1]);
      else
        fail(CUDA_ERROR_INVALID_VALUE);
    }
    if (parameters || (bytes && *bytes && !buffer))
      fail(CUDA_ERROR_INVALID_VALUE);
    if (bytes && buffer)
      std::memcpy(out, buffer, std::min<size_t>(*bytes, f.parameter_bytes));
    return;
  }
  if (!f.parameters.empty() && !parameters)
    fail(CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; i < f.parameters.size(); ++i) {
    if (!parameters[i])
      fail(CUDA_ERROR_INVALID_VALUE);
    std::memcpy(out + f.parameters[i].offset, parameters[i], f.parameters[i].size);
  }
}

void require_launchable(const Device &device, const Function &function, const Shape &shape) {
  require_resident(device, function, shape);
}

void run_kernel(Stream &stream, Function &function, const Shape &shape,
                const uint8_t *parameters) {
  run_grid(stream, function, shape, parameters);
  run_descendants(stream, *function.module);
}

namespace api {

CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
                        unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                        CUstream stream, void **parameters, void **extra) {
  return launch(function, {{gx, gy, gz}, {bx, by, bz}, shared, false}, stream, parameters, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gx, unsigned int gy,
                                   unsigned int gz, unsigned int bx, unsigned int by,
                                   unsigned int bz, unsigned int shared, CUstream stream,
                                   void **parameters) {
  return launch(function, {{gx, gy, gz}, {bx, by, bz}, shared, true}, stream, parameters, nullptr);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                          void **extra) {
  Shape s{{config->grid[0], config->grid[1], config->grid[2]},
          {config->block[0], config->block[1], config->block[2]},
          config->shared_bytes,
          false};
  if (config->attribute_count && !config->attributes)
    return CUDA_ERROR_INVALID_VALUE;
  Attributes attributes;
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const CUlaunchAttribute &attribute = config->attributes[i];
    if (attribute.id != CU_LAUNCH_ATTRIBUTE_IGNORE && capturing_anywhere())
      std::memcpy(&attributes[attribute.id], &attribute.value, sizeof attribute.value);
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      s.cooperative = attribute.value.cooperative != 0;
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
      const unsigned *const cluster = attribute.value.cluster;
      if (cluster[0] > 1 || cluster[1] > 1 || cluster[2] > 1)
        return CUDA_ERROR_NOT_SUPPORTED; // clusters come with compute capability 9.0
    }
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
        attribute.id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return launch(function, s, config->stream, parameters, extra, std::move(attributes));
}

CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
  Function &f = function_of(function);
  if (x <= 0 || y <= 0 || z <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  f.legacy_block[0] = static_cast<uint32_t>(x);
  f.legacy_block[1] = static_cast<uint32_t>(y);
  f.legacy_block[2] = static_cast<uint32_t>(z);
  return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedSize(CUfunction function, unsigned int bytes) {
  function_of(function).legacy_shared = bytes;
  return CUDA_SUCCESS;
}

CUresult cuParamSetSize(CUfunction function, unsigned int bytes) {
  if (bytes > kMostParameterBytes)
    return CUDA_ERROR_INVALID_VALUE;
  function_of(function).legacy_parameters.resize(bytes);
  return CUDA_SUCCESS;
}

CUresult cuParamSeti(CUfunction function, int offset, unsigned int value) {
  return set_legacy(function, offset, &value, sizeof value);
}

CUresult cuParamSetf(CUfunction function, int offset, float value) {
  return set_legacy(function, offset, &value, sizeof value);
}

CUresult cuParamSetv(CUfunction function, int offset, void *from, unsigned int bytes) {
  return set_legacy(function, offset, from, bytes);
}

CUresult cuLaunch(CUfunction function) { return launch_legacy(function, 1, 1, nullptr); }

CUresult cuLaunchGrid(CUfunction function, int width, int height) {
  return launch_legacy(function, width, height, nullptr);
}

CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  return launch_legacy(function, width, height, stream);
}

} // namespace api
} // namespace va

extern "C" const char *va_driver_last_fault(void) {
  const std::lock_guard<std::mutex> lock(va::g_fault_mutex);
  return va::g_last_fault ? va::g_last_fault->c_str() : "";
}
