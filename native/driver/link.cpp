// The driver's linker.  Its product is PTX again; the compiler joins the texts.
#include <algorithm>
#include <cstring>

#include "compiler.h"
#include "driver_api.h"
#include "images.h"
#include "modules.h"
#include "settings.h"

namespace va {
namespace {

enum InputType { kCubin = 0, kPtx = 1, kFatbin = 2, kObject = 3, kLibraryFile = 4, kNvvm = 5 };

struct Link {
  CUlinkState handle = nullptr;
  std::vector<CUjit_option> options;
  std::vector<void *> values;
  // The caller's array of values, where the sizes of logs go, and what it should hold.  Callers
  // are to keep it while the link lives; cuda.core does not, and then it holds something else.
  void **caller_values = nullptr;
  std::vector<void *> told;
  std::vector<LinkInput> inputs;
  std::string product;
};

HandleTable<Link, CUlinkState, Kind::kLink> &links() {
  static auto *const table = new HandleTable<Link, CUlinkState, Kind::kLink>;
  return *table;
}

Link &link_of(CUlinkState handle) {
  started();
  Link *const link = links().find(handle);
  if (!link)
    fail(CUDA_ERROR_INVALID_HANDLE);
  return *link;
}

// Write to the log buffers, and how much it was where that is asked for.
template <typename Write> void log(Link &link, Write write) {
  std::vector<void *> values = link.values;
  JitLog log(static_cast<unsigned>(values.size()), link.options.data(), values.data());
  write(log);
  if (!std::equal(link.told.begin(), link.told.end(), link.caller_values))
    return;
  std::copy(values.begin(), values.end(), link.caller_values);
  link.told = values;
}

CUresult problem(Link &link, CUresult result, const std::string &text) {
  say("cannot link: %s", text.c_str());
  log(link, [&](JitLog &told) { told.error(text); });
  return result;
}

std::string name_of(const Link &link, const char *name) {
  return name && *name ? name : "input " + std::to_string(link.inputs.size() + 1);
}

// Object files of the host and archives of them: nvcc puts one fatbin into each.
CUresult add_embedded(Link &link, const void *data, size_t bytes, const char *name) {
  const std::string title = name_of(link, name);
  if (title.find("cudadevrt") != std::string::npos)
    return CUDA_SUCCESS; // what it would supply, the compiler supplies
  std::vector<FoundPtx> found = find_embedded_ptx(data, bytes);
  if (found.empty())
    return problem(link, CUDA_ERROR_NO_BINARY_FOR_GPU,
                   title + " holds no PTX; compile it with nvcc -rdc=true -arch=compute_80");
  for (size_t i = 0; i < found.size(); ++i)
    link.inputs.push_back({found.size() == 1 ? title : title + ", part " + std::to_string(i + 1),
                           std::move(found[i].text)});
  return CUDA_SUCCESS;
}

CUresult add(Link &link, int type, const void *data, size_t bytes, const char *name) {
  if (!data || !bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (type == kObject || type == kLibraryFile)
    return add_embedded(link, data, bytes, name);
  if (type == kNvvm)
    return problem(link, CUDA_ERROR_NOT_SUPPORTED,
                   "only PTX and what holds PTX can be linked, not LTO-IR; compile without -dlto");
  if (type != kPtx && type != kFatbin && type != kCubin)
    return CUDA_ERROR_INVALID_VALUE;
  FoundPtx found = find_ptx(data, bytes);
  if (found.result != CUDA_SUCCESS)
    return problem(link, found.result, found.problem);
  link.inputs.push_back({name_of(link, name), std::move(found.text)});
  return CUDA_SUCCESS;
}

// The limit that the caller set for each kernel; 0 for none.
unsigned most_registers(const Link &link) {
  constexpr CUjit_option kMaxRegisters = 0;
  constexpr unsigned kMost = 255;
  for (size_t i = 0; i < link.options.size(); ++i)
    if (link.options[i] == kMaxRegisters)
      return std::min(static_cast<unsigned>(reinterpret_cast<uintptr_t>(link.values[i])), kMost);
  return 0;
}

// Gives the limit to every kernel that has none of its own.
void limit_registers(std::string &ptx, unsigned most) {
  const std::string directive = ".maxnreg " + std::to_string(most) + "\n";
  const auto next = [&](size_t from) { return ptx.find(".entry ", from); };
  for (size_t at = next(0); at != std::string::npos; at = next(at)) {
    const size_t end = ptx.find_first_of("{;", at);
    if (end == std::string::npos)
      return;
    const bool own = ptx.substr(at, end - at).find(".maxnreg") != std::string::npos;
    at = end;
    if (own || ptx[end] != '{')
      continue;
    ptx.insert(end, directive);
    at += directive.size();
  }
}

} // namespace

namespace api {

CUresult cuLinkCreate_v2(unsigned int count, CUjit_option *options, void **values,
                         CUlinkState *handle) {
  started();
  auto link = std::make_unique<Link>();
  if (options && values) {
    link->options.assign(options, options + count);
    link->values.assign(values, values + count);
    link->caller_values = values;
    link->told = link->values;
  }
  link->handle = links().add(link.get());
  *handle = link.release()->handle;
  return CUDA_SUCCESS;
}

CUresult cuLinkCreate(unsigned int count, CUjit_option *options, void **values,
                      CUlinkState *handle) {
  return cuLinkCreate_v2(count, options, values, handle);
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t bytes,
                          const char *name, unsigned int, CUjit_option *, void **) {
  return add(link_of(state), type, data, bytes, name);
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t bytes,
                       const char *name, unsigned int, CUjit_option *, void **) {
  return add(link_of(state), type, data, bytes, name);
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned int,
                          CUjit_option *, void **) {
  Link &link = link_of(state);
  const std::string content = read_file(path);
  return add(link, type, content.data(), content.size(), path);
}

CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path,
                       unsigned int count, CUjit_option *options, void **values) {
  return cuLinkAddFile_v2(state, type, path, count, options, values);
}

CUresult cuLinkComplete(CUlinkState state, void **image, size_t *bytes) {
  Link &link = link_of(state);
  if (link.inputs.empty())
    return CUDA_ERROR_INVALID_VALUE;
  std::string text;
  const int result = compiler_link(link.inputs, &link.product, &text);
  if (result != CUDA_SUCCESS)
    return problem(link, static_cast<CUresult>(result), text);
  if (const unsigned most = most_registers(link))
    limit_registers(link.product, most);
  log(link, [](JitLog &told) { told.clear(); });
  *image = &link.product[0];
  if (bytes)
    *bytes = link.product.size() + 1; // the NUL is part of it
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state) {
  started();
  Link *const link = links().remove(state);
  if (!link)
    return CUDA_ERROR_INVALID_HANDLE;
  delete link;
  return CUDA_SUCCESS;
}

} // namespace api
} // namespace va
