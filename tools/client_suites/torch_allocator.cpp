// Gives PyTorch's CPU tensors memory that kernels may use: managed memory of the driver.
// Which tensors then pass for a GPU's is said in torch_device.py.
#include <c10/core/Allocator.h>
#include <dlfcn.h>

#include <new>

namespace {

using Status = int;

template <typename Call>
Call* driver_call(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Call*>(library == nullptr ? nullptr : dlsym(library, name));
}

struct Driver {
  Status (*current)(void**) = driver_call<Status(void**)>("cuCtxGetCurrent");
  Status (*set_current)(void*) = driver_call<Status(void*)>("cuCtxSetCurrent");
  Status (*allocate)(unsigned long long*, size_t, unsigned) =
      driver_call<Status(unsigned long long*, size_t, unsigned)>("cuMemAllocManaged");
  Status (*release)(unsigned long long) = driver_call<Status(unsigned long long)>("cuMemFree_v2");
  void* context = nullptr;
};

Driver driver;

// PyTorch's threads come and go, each without a context of its own.
void bind_thread() {
  void* current = nullptr;
  driver.current(&current);
  if (current == nullptr) driver.set_current(driver.context);
}

void release(void* address) {
  if (address == nullptr) return;
  bind_thread();
  driver.release(reinterpret_cast<unsigned long long>(address));
}

struct ManagedAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    unsigned long long address = 0;
    bind_thread();
    if (bytes != 0 && driver.allocate(&address, bytes, 1) != 0) throw std::bad_alloc();
    auto* memory = reinterpret_cast<void*>(address);
    return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

}  // namespace

extern "C" void use_managed_memory(void* context) {
  static ManagedAllocator allocator;
  driver.context = context;
  c10::SetAllocator(c10::DeviceType::CPU, &allocator, 100);
}
