// nvJitLink as far as PTX goes: the driver's linker joins what is added, and what NVIDIA's calls a
// cubin is PTX, because va100 runs no machine code.
//
// LTO-IR has no public form.  NVIDIA's own library turns it into PTX where it is installed, opened
// by path; elsewhere it is refused by name.  What lies in inputs, and how texts are joined, is the
// driver's (native/driver/link.cpp).
#include "nvjitlink.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "driver_abi.h"

namespace va {
namespace {

// The driver's words that are used here.
enum JitOption { kMaxRegisters = 0, kErrorLog = 5, kErrorLogBytes = 6 };
constexpr size_t kLogBytes = 1 << 16;
// What there is to read when nothing was added.
constexpr char kEmptyModule[] = ".version 7.0\n.target sm_80\n.address_size 64\n";

// Options by their start; those that say how machine code is made have nothing to act on.
constexpr const char *kKnown[] = {
    "-arch=", "-maxrregcount=", "-time", "-verbose", "-lto", "-ptx", "-O0", "-O3", "-g",
    "-lineinfo", "-ftz=", "-prec-div=", "-prec-sqrt=", "-fma=", "-kernels-used=",
    "-variables-used=", "-optimize-unused-variables", "-Xptxas=", "-Xnvvm=", "-split-compile=",
    "-split-compile-extended=", "-jump-table-density=", "-no-cache"};

bool is_known(std::string_view option) {
  return std::any_of(std::begin(kKnown), std::end(kKnown), [&](std::string_view known) {
    return known.back() == '=' ? option.substr(0, known.size()) == known : option == known;
  });
}

std::string_view value_of(const Linker &linker, std::string_view name) {
  for (const std::string &option : linker.options)
    if (std::string_view(option).substr(0, name.size()) == name)
      return std::string_view(option).substr(name.size());
  return {};
}

bool has(const Linker &linker, std::string_view flag) {
  return std::find(linker.options.begin(), linker.options.end(), flag) != linker.options.end();
}

Result refuse(Linker &linker, Result result, const std::string &text) {
  linker.errors += text + '\n';
  return result;
}

bool starts_with(const Input &input, std::string_view bytes) {
  return std::string_view(input.bytes).substr(0, bytes.size()) == bytes;
}

bool is_text(const Input &input) {
  return !input.bytes.empty() && input.bytes.find("\x7f""ELF") != 0 &&
         input.bytes.find(".version") != std::string::npos;
}

// How containers begin.
constexpr std::string_view kLtoMagic("\xed\x43\x4e\x7f", 4);
constexpr std::string_view kFatbinMagic("\x50\xed\x55\xba", 4);

InputType type_of(const Input &input) {
  constexpr size_t kMachineAt = 18; // e_machine of an ELF header
  constexpr char kMachineOfCubins = '\xbe';
  if (starts_with(input, kLtoMagic))
    return kLtoIr;
  if (starts_with(input, kFatbinMagic))
    return kFatbin;
  if (starts_with(input, "!<arch>"))
    return kLibraryFile;
  if (starts_with(input, "\x7f""ELF") && input.bytes.size() > kMachineAt)
    return input.bytes[kMachineAt] == kMachineOfCubins ? kCubin : kObject;
  return is_text(input) ? kPtx : kNoInput;
}

// Whether an input is what it is said to be.  Text passes for a cubin: it is what this library and
// others of va100's give for one.
bool agrees(const Input &input) {
  const InputType found = type_of(input);
  return found == input.type || (input.type == kCubin && found == kPtx);
}

const char *name_of(InputType type) {
  static constexpr const char *kNames[] = {"nothing", "a cubin",       "PTX",    "LTO-IR",
                                           "a fatbin", "a host object", "an archive"};
  return kNames[type];
}

int driver_type(InputType type) {
  static constexpr int kTypes[] = {-1, 0, 1, -1, 2, 3, 4}; // CUjitInputType
  return kTypes[type];
}

// A link of the driver's, with its log.
class DriverLink {
public:
  explicit DriverLink(unsigned registers) : log_(kLogBytes, '\0') {
    values_[0] = &log_[0];
    values_[1] = reinterpret_cast<void *>(log_.size());
    values_[2] = reinterpret_cast<void *>(static_cast<uintptr_t>(registers));
    status_ = cuInit(0);
    if (status_ == CUDA_SUCCESS)
      status_ = cuLinkCreate_v2(registers ? 3 : 2, keys_, values_, &state_);
  }
  ~DriverLink() {
    if (state_)
      cuLinkDestroy(state_);
  }
  DriverLink(const DriverLink &) = delete;
  DriverLink &operator=(const DriverLink &) = delete;

  bool add(int type, const Input &input) {
    if (status_ == CUDA_SUCCESS)
      status_ = cuLinkAddData_v2(state_, type, const_cast<char *>(input.bytes.data()),
                                 input.bytes.size(), input.name.c_str(), 0, nullptr, nullptr);
    return status_ == CUDA_SUCCESS;
  }
  bool complete(std::string &product) {
    void *image = nullptr;
    size_t bytes = 0;
    if (status_ == CUDA_SUCCESS)
      status_ = cuLinkComplete(state_, &image, &bytes);
    if (status_ == CUDA_SUCCESS)
      product.assign(static_cast<const char *>(image), bytes - 1);
    return status_ == CUDA_SUCCESS;
  }
  std::string problem() const {
    const std::string told = log_.c_str();
    return told.empty() ? "the driver's linker answered " + std::to_string(status_) : told;
  }

private:
  std::string log_;
  CUjit_option keys_[3] = {kErrorLog, kErrorLogBytes, kMaxRegisters};
  void *values_[3]; // the driver writes to it as long as the link lives
  CUlinkState state_ = nullptr;
  CUresult status_;
};

// The PTX of all LTO-IR among the inputs, if there is any, by NVIDIA's library.
Result lower_lto(Linker &linker, std::vector<Input> &inputs) {
  const auto is_lto = [](const Input &input) { return input.type == kLtoIr; };
  if (std::none_of(inputs.begin(), inputs.end(), is_lto))
    return kSuccess;
  Input joined{kPtx, {}, "LTO-IR"};
  std::string problem;
  const Result result = lto_to_ptx(linker, joined.bytes, problem);
  if (result != kSuccess)
    return refuse(linker, result, problem);
  inputs.erase(std::remove_if(inputs.begin(), inputs.end(), is_lto), inputs.end());
  inputs.push_back(std::move(joined));
  return kSuccess;
}

Result join(Linker &linker) {
  std::vector<Input> inputs = linker.inputs;
  if (const Result result = lower_lto(linker, inputs); result != kSuccess)
    return result;
  const std::string most(value_of(linker, "-maxrregcount="));
  DriverLink link(static_cast<unsigned>(std::strtoul(most.c_str(), nullptr, 10)));
  for (const Input &input : inputs)
    if (!link.add(driver_type(input.type), input))
      return refuse(linker, kInternal, link.problem());
  if (!link.complete(linker.product))
    return refuse(linker, kInternal, link.problem());
  return kSuccess;
}

} // namespace

Result check_options(Linker &linker) {
  for (const std::string &option : linker.options)
    if (!is_known(option))
      return refuse(linker, kUnrecognizedOption, "unrecognized option: " + option);
  const std::string_view chip = value_of(linker, "-arch=");
  if (chip.empty())
    return refuse(linker, kMissingArch, "no -arch=sm_80 was given");
  const bool ptx = has(linker, "-ptx");
  if (ptx && !has(linker, "-lto"))
    return refuse(linker, kIncompatibleOptions, "-ptx goes with -lto only");
  if (chip.substr(0, 8) == "compute_" && !ptx)
    return refuse(linker, kIncompatibleOptions, "-arch=compute_.. goes with -ptx only");
  return kSuccess;
}

Result add(Linker &linker, int type, const void *data, size_t bytes, const char *name) {
  if (linker.state != Linker::kOpen)
    return kInternal;
  if (!data || !bytes)
    return kInvalidInput;
  const std::string title =
      name && *name ? name : "input " + std::to_string(linker.inputs.size() + 1);
  Input input{static_cast<InputType>(type), {static_cast<const char *>(data), bytes}, title};
  if (type == kAnyInput)
    input.type = type_of(input);
  if (input.type <= kNoInput || input.type > kLibraryFile)
    return refuse(linker, kIncorrectInputType, title + ": no input of a type that can be linked");
  if (!agrees(input))
    return refuse(linker, kIncorrectInputType, title + " is not " + name_of(input.type));
  linker.inputs.push_back(std::move(input));
  return kSuccess;
}

Result complete(Linker &linker) {
  if (linker.state != Linker::kOpen)
    return kInternal;
  linker.state = Linker::kFailed;
  linker.product = kEmptyModule;
  const Result result = linker.inputs.empty() ? kSuccess : join(linker);
  if (result == kSuccess)
    linker.state = Linker::kDone;
  return result;
}

} // namespace va
