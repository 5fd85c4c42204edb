// The runtime's own state: last errors, the chosen device, and what binaries have registered.
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "runtime_api.h"
#include "runtime_entry.h"

namespace va::rt {
namespace {

struct Binary;

struct KernelEntry {
  Binary *binary;
  std::string name;
  CUkernel kernel = nullptr;
};

struct VariableEntry {
  Binary *binary;
  std::string name;
  size_t bytes;
  void **managed = nullptr; // where the program keeps the address
};

// One fatbin of the program.  Loaded when something of it is first used.
struct Binary {
  const void *image;
  std::mutex mutex;
  bool loaded = false;
  cudaError_t failure = cudaSuccess;
  CUlibrary library = nullptr;
};

// Never destroyed: programs launch from static destructors.
struct Registry {
  std::shared_mutex mutex;
  std::set<Binary *> binaries;
  std::unordered_map<const void *, KernelEntry> kernels;
  std::unordered_map<const void *, VariableEntry> variables;
};

Registry &registry() {
  static Registry *const instance = new Registry;
  return *instance;
}

struct CallConfiguration {
  dim3 grid, block;
  size_t shared_bytes;
  void *stream;
};

// Needs no destructor: threads' objects die before the program's, and its destructors still call.
struct Thread {
  static constexpr size_t kDepth = 16;
  cudaError_t last_error;
  int device;
  size_t configuration_count;
  CallConfiguration configurations[kDepth];
};

Thread &thread() {
  static thread_local Thread state;
  return state;
}

CUcontext primary(int device) {
  static std::mutex *const mutex = new std::mutex;
  static auto *const retained = new std::map<int, CUcontext>;
  const std::lock_guard<std::mutex> lock(*mutex);
  CUcontext &context = (*retained)[device];
  if (!context)
    check(cuDevicePrimaryCtxRetain(&context, device)); // kept until the process ends
  return context;
}

void start() {
  static std::once_flag once;
  static CUresult result = CUDA_SUCCESS;
  std::call_once(once, [] { result = cuInit(0); });
  check(result);
}

void place_managed(Binary &binary) {
  Registry &r = registry();
  const std::shared_lock<std::shared_mutex> lock(r.mutex);
  for (auto &[host, variable] : r.variables) {
    if (variable.binary != &binary || !variable.managed)
      continue;
    CUdeviceptr address = 0;
    if (cuLibraryGetManaged(&address, nullptr, binary.library, variable.name.c_str()) ==
        CUDA_SUCCESS)
      *variable.managed = reinterpret_cast<void *>(address);
  }
}

// Loads without holding a lock: the compiler may have to wait for an interpreter.  Of two threads
// that load the same binary, the first keeps its result.
CUlibrary library_of(Binary &binary) {
  bool loaded;
  {
    const std::lock_guard<std::mutex> lock(binary.mutex);
    loaded = binary.loaded;
  }
  if (!loaded) {
    CUlibrary library = nullptr;
    const cudaError_t result = from_driver(
        cuLibraryLoadData(&library, binary.image, nullptr, nullptr, 0, nullptr, nullptr, 0));
    {
      const std::lock_guard<std::mutex> lock(binary.mutex);
      if (!binary.loaded) {
        binary.failure = result;
        std::swap(binary.library, library);
        binary.loaded = true;
      }
    }
    if (library)
      cuLibraryUnload(library);
    else if (result == cudaSuccess)
      place_managed(binary);
  }
  if (binary.failure != cudaSuccess)
    fail(binary.failure);
  return binary.library;
}

bool is_kernel_handle(const void *pointer) {
  const char *name;
  return cuKernelGetName(&name, static_cast<CUkernel>(const_cast<void *>(pointer))) ==
         CUDA_SUCCESS;
}

void add_variable(void **handle, const void *host, const char *name, size_t bytes, void **managed) {
  Registry &r = registry();
  const std::unique_lock<std::shared_mutex> lock(r.mutex);
  r.variables[host] = VariableEntry{reinterpret_cast<Binary *>(handle), name, bytes, managed};
}

// A handle that is none but remembers why: callers keep what they get without looking.
constexpr uint64_t kFailedKernel = 0x7EULL << 52;

} // namespace

cudaError_t &last_error() { return thread().last_error; }

cudaError_t refuse(const char *name) noexcept {
  try {
    static std::mutex *const mutex = new std::mutex;
    static auto *const told = new std::set<std::string>;
    const std::lock_guard<std::mutex> lock(*mutex);
    if (told->insert(name).second) {
      std::fflush(stdout); // so that what the program wrote before stands before
      std::fprintf(stderr, "va100: %s is not supported yet; it returns cudaErrorNotSupported\n", name);
    }
  } catch (...) { // telling is not worth failing for
  }
  return record(cudaErrorNotSupported);
}

void enter() {
  start();
  CUcontext context = nullptr;
  check(cuCtxGetCurrent(&context));
  if (!context)
    check(cuCtxSetCurrent(primary(thread().device)));
}

int current_device() {
  CUdevice device;
  return cuCtxGetDevice(&device) == CUDA_SUCCESS ? device : thread().device;
}

CUkernel kernel_of(const void *host_function) {
  enter();
  Registry &r = registry();
  Binary *binary;
  std::string name;
  {
    const std::shared_lock<std::shared_mutex> lock(r.mutex);
    const auto it = r.kernels.find(host_function);
    if (it == r.kernels.end()) {
      if (is_kernel_handle(host_function))
        return static_cast<CUkernel>(const_cast<void *>(host_function));
      fail(cudaErrorInvalidDeviceFunction);
    }
    if (it->second.kernel)
      return it->second.kernel;
    binary = it->second.binary;
    name = it->second.name;
  }
  // Without the lock: loading may have to wait for an interpreter.
  CUkernel kernel = nullptr;
  const CUresult result = cuLibraryGetKernel(&kernel, library_of(*binary), name.c_str());
  if (result == CUDA_ERROR_NOT_FOUND)
    fail(cudaErrorInvalidDeviceFunction);
  check(result);
  const std::unique_lock<std::shared_mutex> lock(r.mutex);
  const auto it = r.kernels.find(host_function);
  if (it != r.kernels.end())
    it->second.kernel = kernel;
  return kernel;
}

const void *host_function_of(CUkernel kernel) {
  Registry &r = registry();
  const std::shared_lock<std::shared_mutex> lock(r.mutex);
  for (const auto &[host, entry] : r.kernels)
    if (kernel && entry.kernel == kernel)
      return host;
  return nullptr;
}

CUdeviceptr variable_of(const void *host_variable, size_t *bytes) {
  enter();
  Registry &r = registry();
  Binary *binary;
  std::string name;
  bool managed;
  {
    const std::shared_lock<std::shared_mutex> lock(r.mutex);
    const auto it = r.variables.find(host_variable);
    if (it == r.variables.end())
      fail(cudaErrorInvalidSymbol);
    binary = it->second.binary;
    name = it->second.name;
    managed = it->second.managed != nullptr;
  }
  CUdeviceptr address = 0;
  const CUlibrary library = library_of(*binary);
  const CUresult result = managed
                              ? cuLibraryGetManaged(&address, bytes, library, name.c_str())
                              : cuLibraryGetGlobal(&address, bytes, library, name.c_str());
  if (result == CUDA_ERROR_NOT_FOUND)
    fail(cudaErrorInvalidSymbol);
  check(result);
  return address;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = thread().last_error;
  thread().last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return thread().last_error; }

cudaError_t cudaSetDevice(int device) {
  start();
  int count = 0;
  check(cuDeviceGetCount(&count));
  if (device < 0 || device >= count)
    return cudaErrorInvalidDevice;
  thread().device = device;
  check(cuCtxSetCurrent(primary(device)));
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
  start();
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaDeviceReset() {
  enter();
  check(cuDevicePrimaryCtxReset_v2(current_device()));
  return cudaSuccess;
}

// ------------------------------------------------------------------ what nvcc's host code calls

void **__cudaRegisterFatBinary(void *image) {
  auto *const binary = new (std::nothrow) Binary;
  if (!binary)
    return nullptr;
  binary->image = image;
  Registry &r = registry();
  const std::unique_lock<std::shared_mutex> lock(r.mutex);
  r.binaries.insert(binary);
  return reinterpret_cast<void **>(binary);
}

void __cudaRegisterFatBinaryEnd(void **) {}

void __cudaUnregisterFatBinary(void **handle) {
  Registry &r = registry();
  auto *const binary = reinterpret_cast<Binary *>(handle);
  {
    const std::unique_lock<std::shared_mutex> lock(r.mutex);
    if (!r.binaries.erase(binary))
      return;
    for (auto it = r.kernels.begin(); it != r.kernels.end();)
      it = it->second.binary == binary ? r.kernels.erase(it) : std::next(it);
    for (auto it = r.variables.begin(); it != r.variables.end();)
      it = it->second.binary == binary ? r.variables.erase(it) : std::next(it);
  }
  if (binary->library)
    cuLibraryUnload(binary->library);
  delete binary;
}

void __cudaRegisterFunction(void **handle, const char *host, char *, const char *name, int, void *,
                            void *, void *, void *, int *) {
  Registry &r = registry();
  const std::unique_lock<std::shared_mutex> lock(r.mutex);
  r.kernels[host] = KernelEntry{reinterpret_cast<Binary *>(handle), name, nullptr};
}

void __cudaRegisterVar(void **handle, char *host, char *, const char *name, int, size_t bytes, int,
                       int) {
  add_variable(handle, host, name, bytes, nullptr);
}

void __cudaRegisterManagedVar(void **handle, void **host, char *, const char *name, int,
                              size_t bytes, int, int) {
  add_variable(handle, host, name, bytes, host);
}

char __cudaInitModule(void **handle) {
  const cudaError_t result = recorded([&] {
    enter();
    library_of(*reinterpret_cast<Binary *>(handle));
    return cudaSuccess;
  });
  return result == cudaSuccess;
}

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void *stream) {
  Thread &t = thread();
  if (t.configuration_count == Thread::kDepth)
    return cudaErrorMissingConfiguration;
  t.configurations[t.configuration_count++] = {grid, block, shared_bytes, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes,
                                       void *stream) {
  Thread &t = thread();
  if (!t.configuration_count || !stream)
    return cudaErrorMissingConfiguration;
  const CallConfiguration &top = t.configurations[--t.configuration_count];
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<void **>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host) {
  try {
    *kernel = kernel_of(host);
    return cudaSuccess;
  } catch (const Failure &failure) {
    *kernel = reinterpret_cast<cudaKernel_t>(kFailedKernel | static_cast<uint64_t>(failure.code));
    throw;
  }
}

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *host) {
  *kernel = kernel_of(host);
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  const uint64_t bits = reinterpret_cast<uint64_t>(kernel);
  if (bits >> 52 == kFailedKernel >> 52)
    return static_cast<cudaError_t>(bits & 0xFFFF);
  return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}

} // namespace va::rt
