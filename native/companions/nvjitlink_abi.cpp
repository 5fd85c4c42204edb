// The names by which programs call nvJitLink: plain ones, looked up at run time, and one for each
// minor version, which headers of NVIDIA's put into programs that link it.
#include <cstring>
#include <fstream>
#include <iterator>

#include "nvjitlink.h"

#define VA_EXPORT extern "C" __attribute__((visibility("default")))

using va::Linker;

namespace {

Linker *linker_of(void *handle) { return static_cast<Linker *>(handle); }

// Texts are told by their bytes with the NUL, and by none when there is nothing to tell.
int size_of(const std::string &text, size_t *bytes) {
  if (!bytes)
    return va::kNullInput;
  *bytes = text.empty() ? 0 : text.size() + 1;
  return va::kSuccess;
}

int copy_of(const std::string &text, char *out) {
  if (!out)
    return va::kNullInput;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return va::kSuccess;
}

} // namespace

// Each function under its plain name and under those of the minor versions.
#define VA_ALIAS(name, major, minor)                                                             \
  asm(".globl __" #name "_" #major "_" #minor "\n.set __" #name "_" #major "_" #minor ", " #name  \
      "\n.type __" #name "_" #major "_" #minor ", @function\n");
#define VA_ALIASES_OF(name, major)                                                               \
  VA_ALIAS(name, major, 0) VA_ALIAS(name, major, 1) VA_ALIAS(name, major, 2)                     \
  VA_ALIAS(name, major, 3) VA_ALIAS(name, major, 4) VA_ALIAS(name, major, 5)                     \
  VA_ALIAS(name, major, 6) VA_ALIAS(name, major, 7) VA_ALIAS(name, major, 8)                     \
  VA_ALIAS(name, major, 9)
#define VA_ALIASES(name) VA_ALIASES_OF(name, 12) VA_ALIASES_OF(name, 13)

extern "C" {
__attribute__((visibility("default"))) int va100_nvjitlink_links_ptx = 1; // tells ours from NVIDIA's
}

// The version of the library that turns LTO-IR into PTX.  Without one, a version before those that
// link LTO-IR by default: numba-cuda would hand over nothing else.
VA_EXPORT int nvJitLinkVersion(unsigned *major, unsigned *minor) {
  if (!major || !minor)
    return va::kNullInput;
  if (!va::lto_version(major, minor)) {
    *major = 12;
    *minor = 2;
  }
  return va::kSuccess;
}

// The handle is made in any case: it has the log.
VA_EXPORT int nvJitLinkCreate(void **handle, unsigned count, const char **options) {
  if (!handle || (count && !options))
    return va::kNullInput;
  Linker *const linker = new Linker;
  linker->options.assign(options, options + count);
  *handle = linker;
  const va::Result result = va::check_options(*linker);
  if (result != va::kSuccess)
    linker->state = Linker::kFailed;
  return result;
}

VA_EXPORT int nvJitLinkDestroy(void **handle) {
  if (!handle || !*handle)
    return va::kNullInput;
  delete linker_of(*handle);
  *handle = nullptr;
  return va::kSuccess;
}

VA_EXPORT int nvJitLinkAddData(void *handle, int type, const void *data, size_t bytes,
                               const char *name) {
  return handle ? va::add(*linker_of(handle), type, data, bytes, name) : va::kNullInput;
}

VA_EXPORT int nvJitLinkAddFile(void *handle, int type, const char *path) {
  if (!handle || !path)
    return va::kNullInput;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    linker_of(handle)->errors += std::string("no such file: ") + path + '\n';
    return va::kInvalidInput;
  }
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  return va::add(*linker_of(handle), type, content.data(), content.size(), path);
}

VA_EXPORT int nvJitLinkComplete(void *handle) {
  return handle ? va::complete(*linker_of(handle)) : va::kNullInput;
}

// PTX under either name.  Machine code has a size, and no NUL behind it that counts.
VA_EXPORT int nvJitLinkGetLinkedCubinSize(void *handle, size_t *bytes) {
  if (!handle || !bytes)
    return va::kNullInput;
  if (linker_of(handle)->state != Linker::kDone)
    return va::kInternal;
  return size_of(linker_of(handle)->product, bytes);
}

VA_EXPORT int nvJitLinkGetLinkedCubin(void *handle, void *out) {
  if (!handle || !out)
    return va::kNullInput;
  if (linker_of(handle)->state != Linker::kDone)
    return va::kInternal;
  return copy_of(linker_of(handle)->product, static_cast<char *>(out));
}

VA_EXPORT int nvJitLinkGetLinkedPtxSize(void *handle, size_t *bytes) {
  return nvJitLinkGetLinkedCubinSize(handle, bytes);
}

VA_EXPORT int nvJitLinkGetLinkedPtx(void *handle, char *out) {
  return nvJitLinkGetLinkedCubin(handle, out);
}

VA_EXPORT int nvJitLinkGetLinkedLTOIRSize(void *handle, size_t *) {
  return handle ? va::kInternal : va::kNullInput; // there never is any
}

VA_EXPORT int nvJitLinkGetLinkedLTOIR(void *handle, void *) {
  return handle ? va::kInternal : va::kNullInput;
}

VA_EXPORT int nvJitLinkGetErrorLogSize(void *handle, size_t *bytes) {
  return handle ? size_of(linker_of(handle)->errors, bytes) : va::kNullInput;
}

VA_EXPORT int nvJitLinkGetErrorLog(void *handle, char *out) {
  return handle ? copy_of(linker_of(handle)->errors, out) : va::kNullInput;
}

VA_EXPORT int nvJitLinkGetInfoLogSize(void *handle, size_t *bytes) {
  return handle ? size_of({}, bytes) : va::kNullInput;
}

VA_EXPORT int nvJitLinkGetInfoLog(void *handle, char *out) {
  return handle ? copy_of({}, out) : va::kNullInput;
}

VA_ALIASES(nvJitLinkCreate)
VA_ALIASES(nvJitLinkDestroy)
VA_ALIASES(nvJitLinkAddData)
VA_ALIASES(nvJitLinkAddFile)
VA_ALIASES(nvJitLinkComplete)
VA_ALIASES(nvJitLinkGetLinkedCubinSize)
VA_ALIASES(nvJitLinkGetLinkedCubin)
VA_ALIASES(nvJitLinkGetLinkedPtxSize)
VA_ALIASES(nvJitLinkGetLinkedPtx)
VA_ALIASES(nvJitLinkGetLinkedLTOIRSize)
VA_ALIASES(nvJitLinkGetLinkedLTOIR)
VA_ALIASES(nvJitLinkGetErrorLogSize)
VA_ALIASES(nvJitLinkGetErrorLog)
VA_ALIASES(nvJitLinkGetInfoLogSize)
VA_ALIASES(nvJitLinkGetInfoLog)
