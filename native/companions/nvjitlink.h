// A link that is being made: what both halves of the nvJitLink companion know of it.
#pragma once

#include <string>
#include <vector>

namespace va {

// nvJitLinkResult and nvJitLinkInputType, as far as they are used.
enum Result {
  kSuccess = 0,
  kUnrecognizedOption = 1,
  kMissingArch = 2,
  kInvalidInput = 3,
  kNvvmCompile = 5,
  kInternal = 6,
  kNullInput = 10,
  kIncompatibleOptions = 11,
  kIncorrectInputType = 12,
};
enum InputType {
  kNoInput = 0,
  kCubin = 1,
  kPtx = 2,
  kLtoIr = 3,
  kFatbin = 4,
  kObject = 5,
  kLibraryFile = 6,
  kAnyInput = 10,
};

struct Input {
  InputType type;
  std::string bytes;
  std::string name;
};

struct Linker {
  enum State { kOpen, kDone, kFailed } state = kOpen;
  std::vector<std::string> options;
  std::vector<Input> inputs;
  std::string product; // PTX, once done
  std::string errors;  // lines
};

Result check_options(Linker &linker);
Result add(Linker &linker, int type, const void *data, size_t bytes, const char *name);
Result complete(Linker &linker);

// Turn a link's LTO-IR into PTX by NVIDIA's library, which VA100_NVJITLINK names, or say why not.
Result lto_to_ptx(const Linker &linker, std::string &ptx, std::string &problem);
// That library's version; false when there is none.
bool lto_version(unsigned *major, unsigned *minor);

} // namespace va
