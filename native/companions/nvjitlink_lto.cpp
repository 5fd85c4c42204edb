// LTO-IR to PTX by NVIDIA's nvJitLink, which needs no GPU for it.
#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

#include "nvjitlink.h"

namespace va {
namespace {

using Handle = void *;
struct Functions {
  int (*create)(Handle *, unsigned, const char **) = nullptr;
  int (*add)(Handle, int, const void *, size_t, const char *) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*destroy)(Handle *) = nullptr;
  int (*ptx_size)(Handle, size_t *) = nullptr;
  int (*ptx)(Handle, char *) = nullptr;
  int (*log_size)(Handle, size_t *) = nullptr;
  int (*log)(Handle, char *) = nullptr;
  int (*version)(unsigned *, unsigned *) = nullptr;
};

template <typename F> bool look_up(void *library, const char *name, F &function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

bool look_up_all(void *library, Functions &f) {
  return look_up(library, "nvJitLinkCreate", f.create) &&
         look_up(library, "nvJitLinkAddData", f.add) &&
         look_up(library, "nvJitLinkComplete", f.complete) &&
         look_up(library, "nvJitLinkDestroy", f.destroy) &&
         look_up(library, "nvJitLinkGetLinkedPtxSize", f.ptx_size) &&
         look_up(library, "nvJitLinkGetLinkedPtx", f.ptx) &&
         look_up(library, "nvJitLinkGetErrorLogSize", f.log_size) &&
         look_up(library, "nvJitLinkGetErrorLog", f.log) &&
         look_up(library, "nvJitLinkVersion", f.version);
}

// NVIDIA's library, opened at the first use; null when there is none.
const Functions *theirs() {
  static std::mutex lock;
  static Functions functions;
  static bool ready = false;
  const std::lock_guard<std::mutex> guard(lock);
  if (ready)
    return &functions;
  const char *const told = std::getenv("VA100_NVJITLINK");
  const std::string path = told ? told : "";
  // Its names are ours, too: it is to see its own.
  void *const library =
      path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  ready = library && look_up_all(library, functions);
  return ready ? &functions : nullptr;
}

std::vector<const char *> options_of(const Linker &linker) {
  std::vector<const char *> options{"-lto", "-ptx"};
  for (const std::string &option : linker.options)
    if (option != "-lto" && option != "-ptx")
      options.push_back(option.c_str());
  return options;
}

int run(const Functions &f, Handle handle, const Linker &linker, std::string &ptx) {
  for (const Input &input : linker.inputs)
    if (input.type == kLtoIr)
      if (const int result = f.add(handle, kLtoIr, input.bytes.data(), input.bytes.size(),
                                   input.name.c_str()))
        return result;
  if (const int result = f.complete(handle))
    return result;
  size_t bytes = 0;
  if (const int result = f.ptx_size(handle, &bytes))
    return result;
  ptx.assign(bytes + 1, '\0');
  const int result = f.ptx(handle, &ptx[0]);
  ptx.resize(ptx.find('\0'));
  return result;
}

std::string log_of(const Functions &f, Handle handle) {
  size_t bytes = 0;
  if (!handle || f.log_size(handle, &bytes) || !bytes)
    return "NVIDIA's nvJitLink failed and says nothing of why";
  std::string text(bytes + 1, '\0');
  f.log(handle, &text[0]);
  text.resize(text.find('\0'));
  return text;
}

} // namespace

bool lto_version(unsigned *major, unsigned *minor) {
  const Functions *const f = theirs();
  return f && f->version(major, minor) == kSuccess;
}

Result lto_to_ptx(const Linker &linker, std::string &ptx, std::string &problem) {
  const Functions *const f = theirs();
  if (!f) {
    problem = "LTO-IR cannot be linked without NVIDIA's nvJitLink, which turns it into PTX: "
              "pip install nvidia-nvjitlink, or compile without -dlto";
    return kNvvmCompile;
  }
  std::vector<const char *> options = options_of(linker);
  Handle handle = nullptr;
  int result = f->create(&handle, static_cast<unsigned>(options.size()), options.data());
  if (!result)
    result = run(*f, handle, linker, ptx);
  if (result)
    problem = log_of(*f, handle);
  if (handle)
    f->destroy(&handle);
  return static_cast<Result>(result);
}

} // namespace va
