// The driver's nouns and who owns whom: a device has contexts, a context has everything else.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "cuda_types.h"
#include "device_models.h"
#include "entry.h"
#include "handles.h"
#include "timeline.h"
#include "va100/backend.h"

namespace va {

struct Array;
struct Context;
struct Stream;
struct Library;
struct CapturedPoint;
struct StreamCapture;

constexpr int kAttributeLimit = 256;

class SharedFile;

// Where stream-ordered allocations come from.
struct PoolState {
  CUmemoryPool handle = nullptr;
  int device = 0;
  CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  int alloc_type = CU_MEM_ALLOCATION_TYPE_PINNED;
  int handle_types = CU_MEM_HANDLE_TYPE_NONE;
  uint64_t max_bytes = 0; // 0: as much as there is
  bool built_in = false;
  bool imported = false;
  std::array<int, 4> reuse{{0, 1, 1, 1}}; // by attribute number 1 to 3
  uint64_t release_threshold = 0;
  // Bytes of live allocations, and bytes held for them and for coming ones.
  uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
  uint64_t slack = 0; // reserved and not used
  bool listed = false; // among the pools that have slack
  uint64_t live = 0;   // allocations
  bool destroyed = false; // goes when its last allocation does
  std::map<int, int> access; // by region, where it differs from the default
  std::shared_ptr<SharedFile> file; // of a pool that is shared between processes
};

// Never freed, but used again: another thread may just be settling it.
struct Pool : PoolState {
  std::mutex mutex;
};

struct Device {
  int ordinal = 0;
  const DeviceModel *model = nullptr;
  std::array<int, kAttributeLimit> attributes{};
  std::array<bool, kAttributeLimit> has_attribute{};
  CUuuid uuid{};
  std::string bus_id;
  Pool *default_pool = nullptr;
  std::atomic<Pool *> pool{nullptr};
  Context *primary = nullptr;
  unsigned primary_flags = 0;
  std::atomic<int> primary_users{0};
  std::mutex mutex;

  int attribute(int number) const { return attributes[static_cast<size_t>(number)]; }
};

struct Variant {
  uint32_t block[3];
  va_variant code;
  uint64_t id;
};

struct Parameter {
  uint32_t offset, size;
};

// A kernel of a module that is loaded into a context.
struct Function {
  CUfunction handle = nullptr;
  va_module *module = nullptr;
  std::string name;
  std::string title; // the name as people write it
  uint64_t compiler_id = 0;
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t static_shared_bytes = 0;
  uint32_t local_bytes = 0;
  uint32_t const_bytes = 0;
  uint32_t registers = 0;
  bool registers_estimated = false;
  uint32_t max_threads = 1024;
  uint32_t required_block[3] = {0, 0, 0};
  uint32_t ptx_arch = 0; // 80 for compute_80
  std::string refusal;   // what keeps it from running, if anything
  std::atomic<uint32_t> dynamic_shared_limit{0};
  std::atomic<int> carveout{-1};

  // What the calls older than cuLaunchKernel keep between them.
  uint32_t legacy_block[3] = {1, 1, 1};
  uint32_t legacy_shared = 0;
  std::vector<uint8_t> legacy_parameters;

  std::mutex variants_mutex;
  std::vector<std::unique_ptr<Variant>> variants;
  std::atomic<const Variant *> last{nullptr}; // launches mostly repeat their block shape
  std::shared_ptr<std::vector<uint64_t>> last_counters;
};

struct Global {
  uint64_t address, bytes;
  bool managed;
};

// A kernel of a library: the same in every context.
struct Kernel {
  CUkernel handle = nullptr;
  Library *library = nullptr;
  std::string name;
  std::map<int, int> dynamic_shared_limit; // by device
};

struct Library {
  CUlibrary handle = nullptr;
  std::string ptx;
  std::mutex mutex;
  std::map<CUcontext, va_module *> modules;
  std::vector<std::unique_ptr<Kernel>> kernels;
};

struct Event {
  CUevent handle = nullptr;
  Context *context = nullptr;
  unsigned flags = 0;
  std::shared_ptr<Moment> moment; // null until recorded
  std::shared_ptr<CapturedPoint> captured; // where it was last recorded in a capture, if there
  std::mutex mutex;
};

struct Stream {
  CUstream handle = nullptr;
  Context *context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  uint64_t id = 0;
  std::shared_ptr<Track> track;
  std::recursive_mutex order; // work of one stream runs one after another
  std::map<int, CUstreamAttrValue> attributes; // that were set
  CUgreenCtx green = nullptr;                  // whose it is, and that one's other name
  CUcontext alias = nullptr;
  std::unique_ptr<StreamCapture> capture; // while it captures

  Stream();
  ~Stream();
};

struct Context {
  CUcontext handle = nullptr;
  Device *device = nullptr;
  bool primary = false;
  unsigned flags = 0;
  uint64_t id = 0;
  std::atomic<int> users{1};
  std::atomic<int> fault{CUDA_SUCCESS}; // stays until the context is destroyed
  std::atomic<bool> destroyed{false};
  std::mutex mutex;
  std::set<va_module *> modules;
  std::set<Stream *> streams;
  std::set<Array *> arrays;
  std::set<CUcontext> peers;
  std::unique_ptr<Stream> legacy;
  std::map<std::thread::id, std::unique_ptr<Stream>> per_thread;
  std::shared_ptr<TrackGroup> tracks;
  std::array<std::atomic<uint64_t>, 12> limits{};
  std::atomic<int> cache_config{0};
  std::atomic<int> shared_config{1}; // four-byte banks
};

using ContextTable = HandleTable<Context, CUcontext, Kind::kContext>;
using ModuleTable = HandleTable<va_module, CUmodule, Kind::kModule>;
using FunctionTable = HandleTable<Function, CUfunction, Kind::kFunction>;
using KernelTable = HandleTable<Kernel, CUkernel, Kind::kKernel>;
using LibraryTable = HandleTable<Library, CUlibrary, Kind::kLibrary>;
using StreamTable = HandleTable<Stream, CUstream, Kind::kStream>;
using EventTable = HandleTable<Event, CUevent, Kind::kEvent>;
using PoolTable = HandleTable<Pool, CUmemoryPool, Kind::kPool>;
using ArrayTable = HandleTable<Array, CUarray, Kind::kArray>;

// Everything the driver knows.  Never destroyed: clients call from static destructors.
struct Driver {
  std::atomic<bool> initialised{false};
  std::vector<std::unique_ptr<Device>> devices;
  ContextTable contexts;
  ModuleTable modules;
  FunctionTable functions;
  KernelTable kernels;
  LibraryTable libraries;
  StreamTable streams;
  EventTable events;
  PoolTable pools;
  ArrayTable arrays;
  std::atomic<uint64_t> next_id{1};
  std::mutex retired_mutex;
  std::vector<Context *> retired; // destroyed contexts
};

Driver &driver();

// Fails unless cuInit was called.
Driver &started();
Device &device_of(CUdevice ordinal);

// The context current to this thread; fails without one, or when it was destroyed.
Context &current_context();
// The same, and fails with the fault that sticks to it.
Context &healthy_context();
// Fails with the fault that sticks to a context.
void require_healthy(const Context &context);
Context &context_of(CUcontext handle);
// The current context's handle, or null; never fails.
CUcontext current_handle();

Context *create_context(Device &device, unsigned flags, bool primary);
// Free all that a context owns.
void empty_context(Context &context);

// The stream of a handle, the default ones included; fails on an unknown one.
Stream &stream_of(CUstream handle);
std::unique_ptr<Stream> make_stream(Context &context, unsigned flags, int priority);

Event &event_of(CUevent handle);
Pool &pool_of(CUmemoryPool handle);

void free_blocks_of(Context &context);
void forget_arrays_of(Context &context);
void forget_textures_of(const Context &context);
void unload_module(va_module *module);

// Write out what device-side printf left; called wherever the host waits for the device.
void flush_device_output();

} // namespace va

// A module that is loaded into a context; the compiler fills it through va_module_add_*.
struct va_module {
  CUmodule handle = nullptr;
  va::Context *context = nullptr;
  va::Library *library = nullptr;
  std::vector<std::unique_ptr<va::Function>> functions;
  std::unordered_map<std::string, va::Function *> by_name;
  std::unordered_map<uint64_t, va::Function *> by_address; // as device code knows kernels
  std::unordered_map<std::string, va::Global> globals;
};
