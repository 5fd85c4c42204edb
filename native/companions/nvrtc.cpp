// NVRTC with one difference: what it calls a cubin is PTX, because va100 runs no machine code.
//
// Programs are compiled by NVIDIA's library, which is opened by path when va100_nvrtc_open is told
// where it lies; this one is found ahead of it under the same name.  Every other function is passed
// on as it is, by a jump that knows nothing of its parameters.
#include <dlfcn.h>

#include <string>
#include <string_view>
#include <vector>

#define VA100_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kInternalError = 11; // NVRTC_ERROR_INTERNAL_ERROR

int missing() { return kInternalError; }

// The real architecture named in an option, e.g. sm_80, as the virtual one that PTX is made for.
std::string virtual_architecture(std::string_view option) {
  std::string text(option);
  for (std::string_view start : {"-arch=sm_", "--gpu-architecture=sm_", "sm_"})
    if (option.substr(0, start.size()) == start)
      text.replace(start.size() - 3, 3, "compute_");
  return text;
}

}  // namespace

// One pointer a function that is passed on, and a jump through it under the function's name.
#define VA100_PASSED_ON(each)                                                                    \
  each(nvrtcAddNameExpression) each(nvrtcCreateProgram) each(nvrtcDestroyProgram)                \
  each(nvrtcGetBundledHeadersInfo) each(nvrtcGetErrorString) each(nvrtcGetLTOIR)                 \
  each(nvrtcGetLTOIRSize) each(nvrtcGetLoweredName) each(nvrtcGetNVVM) each(nvrtcGetNVVMSize)    \
  each(nvrtcGetNumSupportedArchs) each(nvrtcGetOptiXIR) each(nvrtcGetOptiXIRSize)                \
  each(nvrtcGetPCHCreateStatus) each(nvrtcGetPCHHeapSize) each(nvrtcGetPCHHeapSizeRequired)      \
  each(nvrtcGetPTX) each(nvrtcGetPTXSize) each(nvrtcGetProgramLog)                               \
  each(nvrtcGetProgramLogSize) each(nvrtcGetSupportedArchs) each(nvrtcGetTileIR)                 \
  each(nvrtcGetTileIRSize) each(nvrtcInstallBundledHeaders) each(nvrtcRemoveBundledHeaders)      \
  each(nvrtcSetFlowCallback) each(nvrtcSetPCHHeapSize) each(nvrtcVersion)

#define VA100_JUMP(name)                                                                         \
  extern "C" {                                                                                   \
  __attribute__((visibility("hidden"))) void *va100_real_##name =                                \
      reinterpret_cast<void *>(&missing);                                                         \
  }                                                                                              \
  asm(".pushsection .text\n.globl " #name "\n.type " #name ", @function\n" #name                 \
      ":\n  jmp *va100_real_" #name "(%rip)\n.size " #name ", .-" #name "\n.popsection\n");
VA100_PASSED_ON(VA100_JUMP)

namespace {

struct Passed {
  const char *name;
  void **real;
};

#define VA100_ENTRY(name) {#name, &va100_real_##name},
constexpr Passed kPassed[] = {VA100_PASSED_ON(VA100_ENTRY)};

using Compile = int (*)(void *program, int count, const char *const *options);
using GetText = int (*)(void *program, char *text);
using GetSize = int (*)(void *program, size_t *size);
Compile real_compile = nullptr;

}  // namespace

// Opens NVIDIA's library; 0 when it is none.
VA100_EXPORT int va100_nvrtc_open(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return 0;
  for (const Passed &passed : kPassed)
    if (void *real = dlsym(library, passed.name))
      *passed.real = real;
  real_compile = reinterpret_cast<Compile>(dlsym(library, "nvrtcCompileProgram"));
  return real_compile != nullptr;
}

VA100_EXPORT int nvrtcCompileProgram(void *program, int count, const char *const *options) {
  if (real_compile == nullptr)
    return kInternalError;
  std::vector<std::string> texts;
  std::vector<const char *> words;
  for (int i = 0; i < count; ++i)
    texts.push_back(virtual_architecture(options[i]));
  for (const std::string &text : texts)
    words.push_back(text.c_str());
  return real_compile(program, count, words.data());
}

VA100_EXPORT int nvrtcGetCUBINSize(void *program, size_t *size) {
  return reinterpret_cast<GetSize>(va100_real_nvrtcGetPTXSize)(program, size);
}

VA100_EXPORT int nvrtcGetCUBIN(void *program, char *text) {
  return reinterpret_cast<GetText>(va100_real_nvrtcGetPTX)(program, text);
}
