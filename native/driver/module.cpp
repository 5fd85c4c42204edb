// Modules: PTX in a context, its kernels and variables.
#include <cstdio>
#include <cstring>

#include "compiler.h"
#include "driver_api.h"
#include "images.h"
#include "modules.h"
#include "settings.h"

namespace va {
namespace {

va_module &module_of(CUmodule handle) {
  va_module *const module = started().modules.find(handle);
  if (!module)
    fail(CUDA_ERROR_INVALID_HANDLE);
  return *module;
}

CUresult load(CUmodule *handle, const FoundPtx &found, JitLog *log) {
  Context &context = healthy_context();
  if (found.result != CUDA_SUCCESS) {
    say("cannot load a module: %s", found.problem.c_str());
    if (log)
      log->error(found.problem);
    return found.result;
  }
  *handle = load_module(context, found.text, log)->handle;
  if (log)
    log->clear();
  return CUDA_SUCCESS;
}

// A program may never ask for these kernels, so the module is loaded all the same.
void warn_of_refusals(const va_module &module) {
  const Function *first = nullptr;
  size_t count = 0;
  for (const auto &function : module.functions) {
    if (function->refusal.empty())
      continue;
    if (!first)
      first = function.get();
    ++count;
  }
  if (first)
    say("%zu of %zu kernels of a module cannot run; the first is %s: %s", count,
        module.functions.size(), first->title.c_str(), first->refusal.c_str());
}

constexpr int kInfoBuffer = 3, kErrorBuffer = 5; // JIT options

} // namespace

JitLog::JitLog(unsigned count, const CUjit_option *options, void **values)
    : count_(options && values ? count : 0), options_(options), values_(values) {}

void JitLog::error(const std::string &text) { write(kErrorBuffer, text); }

void JitLog::clear() {
  write(kInfoBuffer, "");
  write(kErrorBuffer, "");
}

// The option after a buffer's is its size: room before, bytes written afterwards.
void JitLog::write(int buffer_option, const std::string &text) {
  char *buffer = nullptr;
  void **bytes = nullptr;
  for (unsigned i = 0; i < count_; ++i) {
    if (options_[i] == static_cast<CUjit_option>(buffer_option))
      buffer = static_cast<char *>(values_[i]);
    else if (options_[i] == static_cast<CUjit_option>(buffer_option + 1))
      bytes = &values_[i];
  }
  if (!buffer || !bytes)
    return;
  const size_t room = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(*bytes));
  if (!room)
    return;
  const size_t used = std::min(text.size(), room - 1);
  std::memcpy(buffer, text.data(), used);
  buffer[used] = 0;
  *bytes = reinterpret_cast<void *>(used ? used + 1 : 0); // the NUL is part of a text
}

va_module *load_module(Context &context, const std::string &ptx, JitLog *log) {
  auto module = std::make_unique<va_module>();
  module->context = &context;
  std::string text;
  const int result = compiler_load(module.get(), ptx.c_str(), ptx.size(), context.device->ordinal,
                                   &text);
  if (result != CUDA_SUCCESS) {
    say("cannot load a module: %s", text.empty() ? "the compiler gave no reason" : text.c_str());
    if (log)
      log->error(text);
    for (const auto &function : module->functions)
      driver().functions.remove(function->handle);
    fail(static_cast<CUresult>(result));
  }
  warn_of_refusals(*module);
  module->handle = driver().modules.add(module.get());
  const std::lock_guard<std::mutex> lock(context.mutex);
  context.modules.insert(module.get());
  return module.release();
}

void unload_module(va_module *module) {
  driver().modules.remove(module->handle);
  for (const auto &function : module->functions)
    driver().functions.remove(function->handle);
  if (module->library)
    forget_module(*module->library, *module->context);
  compiler_unload(module);
  delete module;
}

Function *find_function(const va_module &module, const std::string &name) {
  const auto it = module.by_name.find(name);
  return it == module.by_name.end() ? nullptr : it->second;
}

Function &runnable(Function &function) {
  if (function.refusal.empty())
    return function;
  say("kernel %s cannot run: %s", function.title.c_str(), function.refusal.c_str());
  fail(CUDA_ERROR_NOT_SUPPORTED);
}

std::string read_file(const char *path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path, "rb"), std::fclose);
  if (!file)
    fail(CUDA_ERROR_FILE_NOT_FOUND);
  std::string content;
  char buffer[65536];
  while (const size_t bytes = std::fread(buffer, 1, sizeof buffer, file.get()))
    content.append(buffer, bytes);
  return content;
}

namespace api {

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                            CUjit_option *options, void **values) {
  if (!image)
    return CUDA_ERROR_INVALID_VALUE;
  healthy_context();
  JitLog log(count, options, values);
  return load(module, find_ptx(image), &log);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

CUresult cuModuleLoad(CUmodule *module, const char *path) {
  healthy_context();
  const std::string content = read_file(path);
  return load(module, find_ptx(content.data(), content.size()), nullptr);
}

CUresult cuModuleUnload(CUmodule handle) {
  va_module &module = module_of(handle);
  if (module.library)
    return CUDA_ERROR_NOT_PERMITTED; // it goes with its library
  {
    const std::lock_guard<std::mutex> lock(module.context->mutex);
    module.context->modules.erase(&module);
  }
  flush_device_output();
  unload_module(&module);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name) {
  Function *const found = find_function(module_of(handle), name);
  if (!found)
    return CUDA_ERROR_NOT_FOUND;
  *function = runnable(*found).handle;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule handle) {
  *count = static_cast<unsigned>(module_of(handle).functions.size());
  return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int count, CUmodule handle) {
  const va_module &module = module_of(handle);
  for (size_t i = 0; i < module.functions.size() && i < count; ++i)
    functions[i] = module.functions[i]->handle;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule handle,
                              const char *name) {
  const va_module &module = module_of(handle);
  const auto it = module.globals.find(name);
  if (it == module.globals.end())
    return CUDA_ERROR_NOT_FOUND;
  if (address)
    *address = it->second.address;
  if (bytes)
    *bytes = it->second.bytes;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
  enum { kEager = 1, kLazy = 2 };
  started();
  // Machine code is made at the first launch in any case; nobody can tell but by the time.
  *mode = settings().eager_loading ? kEager : kLazy;
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va

extern "C" int va_module_add_kernel(va_module *module, const va_kernel_info *info) {
  try {
    if (!module || !info || !info->name)
      return CUDA_ERROR_INVALID_VALUE;
    auto f = std::make_unique<va::Function>();
    f->module = module;
    f->name = info->name;
    f->title = info->title ? info->title : info->name;
    f->compiler_id = info->compiler_id;
    for (uint32_t i = 0; i < info->param_count; ++i)
      f->parameters.push_back({info->params[i].offset_bytes, info->params[i].size_bytes});
    f->parameter_bytes = info->param_bytes;
    f->static_shared_bytes = info->static_shared_bytes;
    f->local_bytes = info->local_bytes;
    f->const_bytes = info->const_bytes;
    f->registers = info->registers;
    f->registers_estimated = info->registers_estimated != 0;
    f->max_threads = info->max_threads ? info->max_threads : 1024;
    std::memcpy(f->required_block, info->required_block, sizeof f->required_block);
    f->ptx_arch = info->ptx_arch;
    f->refusal = info->refusal ? info->refusal : "";
    constexpr int kSharedPerBlock = 8;
    const auto limit =
        static_cast<uint32_t>(module->context->device->attribute(kSharedPerBlock));
    f->dynamic_shared_limit = limit > f->static_shared_bytes ? limit - f->static_shared_bytes : 0;
    f->handle = va::driver().functions.add(f.get());
    module->by_name[f->name] = f.get();
    module->functions.push_back(std::move(f));
    return CUDA_SUCCESS;
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

extern "C" int va_module_add_address(va_module *module, const char *kernel, uint64_t address) {
  try {
    va::Function *const function = module && kernel ? va::find_function(*module, kernel) : nullptr;
    if (!function)
      return CUDA_ERROR_INVALID_VALUE;
    module->by_address[address] = function;
    return CUDA_SUCCESS;
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

extern "C" int va_module_add_global(va_module *module, const char *name, uint64_t address,
                                    uint64_t bytes, int managed) {
  try {
    if (!module || !name)
      return CUDA_ERROR_INVALID_VALUE;
    module->globals[name] = va::Global{address, bytes, managed != 0};
    return CUDA_SUCCESS;
  } catch (...) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}
