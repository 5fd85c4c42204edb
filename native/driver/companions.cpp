// Opened by path, found by name: what a client opens later under the same name is then this.
#include "companions.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "settings.h"

namespace va {
namespace {

// The folder of this library, with its slash.
std::string own_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&open_companions), &info) || !info.dli_fname)
    return {};
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

bool is_open(const std::string &name) {
  void *const library = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library)
    dlclose(library);
  return library != nullptr;
}

void open_linker(const std::string &folder, const std::string &name) {
  if (!is_open(name))
    dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

// An NVRTC that compiles with NVIDIA's, which lies at a path.
void open_compiler(const std::string &folder, const std::string &theirs) {
  const std::string name = theirs.substr(theirs.rfind('/') + 1);
  if (name.empty() || is_open(name))
    return;
  void *const ours = dlopen((folder + "nvrtc/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!ours)
    return;
  const auto use = reinterpret_cast<int (*)(const char *)>(dlsym(ours, "va100_nvrtc_open"));
  if (!use || !use(theirs.c_str()))
    dlclose(ours);
}

void open_all(std::string compilers) {
  if (!dlsym(RTLD_DEFAULT, "Py_IsInitialized"))
    return;
  const std::string folder = own_folder();
  if (folder.empty())
    return;
  for (const char *name : {"libnvJitLink.so.12", "libnvJitLink.so.13"})
    open_linker(folder, name);
  while (!compilers.empty()) {
    const size_t end = compilers.find(':');
    open_compiler(folder, compilers.substr(0, end));
    compilers = end == std::string::npos ? "" : compilers.substr(end + 1);
  }
}

// Clients may look for a linker before their first call: numba's does.  Settings are not read so
// early, since Python may still be about to write them.
__attribute__((constructor)) void open_when_loaded() {
  const char *const compilers = std::getenv("VA100_NVRTC");
  open_all(compilers ? compilers : "");
}

} // namespace

void open_companions() { open_all(settings().nvrtcs); }

} // namespace va
