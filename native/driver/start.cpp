// Coming up: cuInit, versions, entry points, error names.
#include <atomic>
#include <cstring>
#include <mutex>
#include <pthread.h>

#include "board.h"
#include "companions.h"
#include "compiler.h"
#include "driver_api.h"
#include "error_names.h"
#include "objects.h"
#include "procs.h"
#include "settings.h"
#include "va100/check.h"

namespace va {
namespace {

void add_device(Driver &d, int ordinal) {
  auto device = std::make_unique<Device>();
  device->ordinal = ordinal;
  seat_device(*device);
  va_arena_set_capacity(ordinal, device->model->memory_bytes);
  auto pool = std::make_unique<Pool>();
  pool->device = ordinal;
  pool->location.id = ordinal;
  pool->built_in = true;
  pool->handle = d.pools.add(pool.get());
  device->default_pool = pool.release();
  device->pool = device->default_pool;
  d.devices.push_back(std::move(device));
  Device &placed = *d.devices.back();
  placed.primary = create_context(placed, 0, true);
}

// A child has its parent's memory and none of its threads, so on a card, too, it cannot go on.
std::atomic<bool> g_forked{false};

void forget_after_fork() {
  if (driver().initialised.exchange(false))
    g_forked.store(true); // and stays so in the child's own children
}

CUresult start() {
  const int seats = open_board();
  if (!seats)
    return CUDA_ERROR_NO_DEVICE;
  if (va_arena_open()) {
    say("the address range of device memory could not be reserved");
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  if (settings().check)
    va_check_enable(settings().check);
  Driver &d = driver();
  for (int i = 0; i < seats; ++i)
    add_device(d, i);
  pthread_atfork(nullptr, nullptr, forget_after_fork);
  open_companions();
  d.initialised.store(true, std::memory_order_release);
  return CUDA_SUCCESS;
}

const Proc *first_of(const char *name) {
  size_t low = 0, high = kProcCount;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (std::strcmp(kProcs[middle].base_name, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low < kProcCount && !std::strcmp(kProcs[low].base_name, name) ? &kProcs[low] : nullptr;
}

void say_static_runtime() {
  say("a CUDA runtime linked into this program, or into a library that it uses, works only with "
      "NVIDIA's driver: its calls fail with error 500 or 103. Link with -cudart shared; of Python "
      "libraries, take those that call the driver (docs/clients.md)");
}

} // namespace

namespace api {

CUresult cuInit(unsigned int flags) {
  if (flags)
    return CUDA_ERROR_INVALID_VALUE;
  static std::once_flag once;
  static CUresult result = CUDA_SUCCESS;
  std::call_once(once, [] { result = start(); });
  // Findings are told by the other side, which else would come with the first module: a program
  // can do wrong without one.
  if (result == CUDA_SUCCESS && settings().check)
    compiler_begin();
  return g_forked.load(std::memory_order_relaxed) ? CUDA_ERROR_NOT_INITIALIZED : result;
}

CUresult cuDriverGetVersion(int *version) {
  *version = settings().driver_version;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **text) {
  const ErrorName *const found = find_error(kErrorNames, kErrorNameCount, error);
  *text = found ? found->name : nullptr;
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  const ErrorName *const found = find_error(kErrorNames, kErrorNameCount, error);
  *text = found ? found->text : nullptr;
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Private tables between parts of one vendor's software; nobody's business here.  A runtime that is
// linked into its program asks for one of them and works with no driver but NVIDIA's.
CUresult cuGetExportTable(const void **table, const CUuuid *id) {
  static const char kRuntime[] = "\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12\xfd\x9d\xf9";
  static std::once_flag once;
  *table = nullptr;
  if (id && !std::memcmp(id, kRuntime, sizeof kRuntime - 1))
    std::call_once(once, say_static_runtime);
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **address, int version, uint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
  enum { kFound = 0, kNotFound = 1, kTooOld = 2 };
  constexpr uint64_t kPerThread = 2;
  *address = nullptr;
  if (status)
    *status = kNotFound;
  if (version > settings().driver_version || flags > 3)
    return CUDA_ERROR_INVALID_VALUE;
  const Proc *proc = first_of(symbol);
  if (!proc)
    return CUDA_SUCCESS;
  const Proc *const end = kProcs + kProcCount;
  for (; proc != end && !std::strcmp(proc->base_name, symbol); ++proc) {
    if (proc->version > version)
      continue;
    *address = const_cast<void *>(flags & kPerThread ? proc->per_thread : proc->function);
    if (status)
      *status = kFound;
    return CUDA_SUCCESS;
  }
  if (status)
    *status = kTooOld;
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *symbol, void **address, int version, uint64_t flags) {
  const CUresult result = cuGetProcAddress_v2(symbol, address, version, flags, nullptr);
  if (result == CUDA_SUCCESS && !*address)
    return CUDA_ERROR_NOT_FOUND;
  return result;
}

CUresult cuProfilerInitialize(const char *, const char *, CUoutput_mode) {
  started();
  return CUDA_SUCCESS;
}

CUresult cuProfilerStart() {
  current_context();
  return CUDA_SUCCESS;
}

CUresult cuProfilerStop() {
  current_context();
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
