#include "compiler.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>

#include "cuda_types.h"
#include "settings.h"

namespace va {
namespace {

constexpr size_t kTextBytes = 8192;

std::atomic<const va_backend *> g_backend{nullptr};

// The registered compiler; starts Python the first time there is none.
const va_backend *backend(std::string *why) {
  if (const va_backend *const b = g_backend.load(std::memory_order_acquire))
    return b;
  static std::once_flag once;
  static std::string *const failure = new std::string;
  std::call_once(once, [] { *failure = start_python(); });
  const va_backend *const b = g_backend.load(std::memory_order_acquire);
  if (!b && why)
    *why = failure->empty() ? "the compiler is gone: the interpreter that held it has ended"
                            : *failure;
  return b;
}

} // namespace

void compiler_begin() {
  std::string why;
  if (!backend(&why))
    say("nothing is checked: %s", why.c_str());
}

int compiler_load(va_module *module, const char *image, size_t bytes, int device,
                  std::string *text) {
  const va_backend *const b = backend(text);
  if (!b)
    return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
  const std::unique_ptr<char[]> buffer(new char[kTextBytes]());
  const int result = b->load(module, image, bytes, device, buffer.get(), kTextBytes);
  *text = buffer.get();
  return result;
}

void compiler_unload(va_module *module) {
  const va_backend *const b = g_backend.load(std::memory_order_acquire);
  if (b && b->unload)
    b->unload(module);
}

int compiler_compile(uint64_t compiler_id, const uint32_t block[3], va_variant *out,
                     uint64_t *variant_id, std::string *text) {
  const va_backend *const b = backend(text);
  if (!b)
    return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
  const std::unique_ptr<char[]> buffer(new char[kTextBytes]());
  const int result = b->compile(compiler_id, block, out, variant_id, buffer.get(), kTextBytes);
  *text = buffer.get();
  return result;
}

int compiler_link(const std::vector<LinkInput> &inputs, std::string *out, std::string *text) {
  const va_backend *const b = backend(text);
  if (!b)
    return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
  if (!b->link) {
    if (inputs.size() == 1) {
      *out = inputs.front().text;
      return CUDA_SUCCESS;
    }
    *text = "the compiler that is registered links no modules";
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  std::vector<va_link_input> listed;
  for (const LinkInput &input : inputs)
    listed.push_back({input.name.c_str(), input.text.data(), input.text.size()});
  const std::unique_ptr<char[]> buffer(new char[kTextBytes]());
  const int result = b->link(out, listed.data(), listed.size(), buffer.get(), kTextBytes);
  *text = buffer.get();
  return result;
}

std::string compiler_explain(uint64_t compiler_id, uint64_t variant_id, const va_fault &fault) {
  const va_backend *const b = g_backend.load(std::memory_order_acquire);
  if (!b || !b->explain)
    return {};
  const std::unique_ptr<char[]> buffer(new char[kTextBytes]());
  b->explain(compiler_id, variant_id, &fault, buffer.get(), kTextBytes);
  return buffer.get();
}

void compiler_launch(uint64_t compiler_id, uint64_t variant_id, va_launch *launch) {
  const va_backend *const b = g_backend.load(std::memory_order_acquire);
  if (b && b->launch) {
    b->launch(compiler_id, variant_id, launch);
    return;
  }
  launch->fault.kind = VA_FAULT_RESOURCES;
  std::strncpy(launch->fault.text, "the interpreter that was to run it has ended",
               sizeof launch->fault.text - 1);
}

bool price(va_launch_record *records, size_t count) {
  const va_backend *const b = g_backend.load(std::memory_order_acquire);
  return b && b->price && b->price(records, count) == 0;
}

} // namespace va

extern "C" void va_set_backend(const va_backend *backend) {
  // A copy of its own: callers may let go of theirs.  Old copies stay, for calls under way.
  va_backend *copy = nullptr;
  if (backend) {
    copy = new va_backend();
    std::memcpy(copy, backend, backend->size < sizeof *copy ? backend->size : sizeof *copy);
  }
  va::g_backend.store(copy, std::memory_order_release);
}

extern "C" void va_link_result(void *sink, const char *text, size_t bytes) {
  static_cast<std::string *>(sink)->assign(text, bytes);
}

extern "C" const va_backend *va_get_backend(void) {
  return va::g_backend.load(std::memory_order_acquire);
}
