// The driver's linker.  Its product is PTX again: one input passes through as it is.
#include <cstring>

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
  void **caller_values = nullptr;
  std::vector<std::string> inputs;
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

CUresult problem(Link &link, CUresult result, const std::string &text) {
  say("cannot link: %s", text.c_str());
  JitLog(static_cast<unsigned>(link.options.size()), link.options.data(), link.caller_values)
      .error(text);
  return result;
}

CUresult add(Link &link, int type, const void *data, size_t bytes, const char *name) {
  if (!data || !bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (type == kLibraryFile && name && std::strstr(name, "cudadevrt"))
    return CUDA_SUCCESS; // what it would supply, the compiler supplies
  if (type != kPtx && type != kFatbin && type != kCubin)
    return problem(link, CUDA_ERROR_NOT_SUPPORTED,
                   "only PTX and fatbins can be linked; give -arch=compute_80 to the compiler");
  FoundPtx found = find_ptx(data, bytes);
  if (found.result != CUDA_SUCCESS)
    return problem(link, found.result, found.problem);
  link.inputs.push_back(std::move(found.text));
  return CUDA_SUCCESS;
}

} // namespace

namespace api {

CUresult cuLinkCreate_v2(unsigned int count, CUjit_option *options, void **values,
                         CUlinkState *handle) {
  started();
  auto link = std::make_unique<Link>();
  if (options && values) {
    link->options.assign(options, options + count);
    link->caller_values = values; // the caller keeps them until the link is destroyed
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
  if (link.inputs.size() > 1)
    return problem(link, CUDA_ERROR_NOT_SUPPORTED,
                   std::to_string(link.inputs.size()) +
                       " PTX modules were given; linking several is not supported yet");
  link.product = link.inputs.front();
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
