// Libraries: PTX that belongs to no context until a kernel of it is used in one.
#include <algorithm>

#include "driver_api.h"
#include "images.h"
#include "modules.h"
#include "settings.h"

namespace va {
namespace {

Library &library_of(CUlibrary handle) {
  Library *const library = started().libraries.find(handle);
  if (!library)
    fail(CUDA_ERROR_INVALID_HANDLE);
  return *library;
}

// Names must be known before any context is current; the primary one stands in then.
Context &loading_context() {
  Context *const current = driver().contexts.find(current_handle());
  return current ? *current : *driver().devices.front()->primary;
}

Kernel *kernel_named(const Library &library, const char *name) {
  for (const auto &kernel : library.kernels)
    if (kernel->name == name)
      return kernel.get();
  return nullptr;
}

CUresult load(CUlibrary *handle, FoundPtx found, JitLog *log) {
  if (found.result != CUDA_SUCCESS) {
    say("cannot load a library: %s", found.problem.c_str());
    log->error(found.problem);
    return found.result;
  }
  auto library = std::make_unique<Library>();
  library->ptx = std::move(found.text);
  va_module *const module = module_in(*library, loading_context(), log);
  for (const auto &function : module->functions) {
    auto kernel = std::make_unique<Kernel>();
    kernel->library = library.get();
    kernel->name = function->name;
    kernel->handle = driver().kernels.add(kernel.get());
    library->kernels.push_back(std::move(kernel));
  }
  log->clear();
  library->handle = driver().libraries.add(library.get());
  *handle = library.release()->handle;
  return CUDA_SUCCESS;
}

CUresult global(CUdeviceptr *address, size_t *bytes, CUlibrary handle, const char *name,
                bool managed) {
  Library &library = library_of(handle);
  const va_module *const module =
      module_in(library, managed ? loading_context() : healthy_context());
  const auto it = module->globals.find(name);
  if (it == module->globals.end() || (managed && !it->second.managed))
    return CUDA_ERROR_NOT_FOUND;
  if (address)
    *address = it->second.address;
  if (bytes)
    *bytes = it->second.bytes;
  return CUDA_SUCCESS;
}

} // namespace

Kernel &kernel_of(CUkernel handle) {
  Kernel *const kernel = started().kernels.find(handle);
  if (!kernel)
    fail(CUDA_ERROR_INVALID_HANDLE);
  return *kernel;
}

va_module *module_in(Library &library, Context &context, JitLog *log) {
  {
    const std::lock_guard<std::mutex> lock(library.mutex);
    const auto it = library.modules.find(context.handle);
    if (it != library.modules.end())
      return it->second;
  }
  // Without the lock: the compiler may have to wait for the interpreter.
  va_module *const module = load_module(context, library.ptx, log);
  va_module *winner;
  {
    const std::lock_guard<std::mutex> lock(library.mutex);
    winner = library.modules.emplace(context.handle, module).first->second;
    if (winner == module)
      module->library = &library;
  }
  if (winner != module) {
    {
      const std::lock_guard<std::mutex> lock(context.mutex);
      context.modules.erase(module);
    }
    unload_module(module);
  }
  return winner;
}

void forget_module(Library &library, Context &context) {
  const std::lock_guard<std::mutex> lock(library.mutex);
  library.modules.erase(context.handle);
}

namespace api {

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
                           void **values, unsigned int count, CUlibraryOption *, void **,
                           unsigned int) {
  started();
  if (!code)
    return CUDA_ERROR_INVALID_VALUE;
  JitLog log(count, options, values);
  return load(library, find_ptx(code), &log);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options,
                               void **values, unsigned int count, CUlibraryOption *, void **,
                               unsigned int) {
  started();
  JitLog log(count, options, values);
  const std::string content = read_file(path);
  return load(library, find_ptx(content.data(), content.size()), &log);
}

CUresult cuLibraryUnload(CUlibrary handle) {
  Library *const library = started().libraries.remove(handle);
  if (!library)
    return CUDA_ERROR_INVALID_HANDLE;
  flush_device_output();
  for (const auto &kernel : library->kernels)
    driver().kernels.remove(kernel->handle);
  std::map<CUcontext, va_module *> modules;
  {
    const std::lock_guard<std::mutex> lock(library->mutex);
    modules.swap(library->modules);
  }
  for (const auto &[context, module] : modules) {
    module->library = nullptr;
    {
      const std::lock_guard<std::mutex> lock(module->context->mutex);
      module->context->modules.erase(module);
    }
    unload_module(module);
  }
  delete library;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary handle, const char *name) {
  Kernel *const found = kernel_named(library_of(handle), name);
  if (!found)
    return CUDA_ERROR_NOT_FOUND;
  *kernel = found->handle;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary handle) {
  *count = static_cast<unsigned>(library_of(handle).kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int count, CUlibrary handle) {
  const Library &library = library_of(handle);
  for (size_t i = 0; i < library.kernels.size() && i < count; ++i)
    kernels[i] = library.kernels[i]->handle;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary handle) {
  *module = module_in(library_of(handle), healthy_context())->handle;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library,
                            const char *name) {
  return global(address, bytes, library, name, false);
}

CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *bytes, CUlibrary library,
                             const char *name) {
  return global(address, bytes, library, name, true);
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel) {
  *library = kernel_of(kernel).library->handle;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel kernel) {
  if (!kernel)
    return CUDA_ERROR_INVALID_VALUE;
  *name = kernel_of(kernel).name.c_str();
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
