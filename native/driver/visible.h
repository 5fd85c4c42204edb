// Which of the machine's GPUs a process gets to see: CUDA_VISIBLE_DEVICES.
#pragma once

#include <string>
#include <vector>

namespace va {

// Places of GPUs in the machine, in the order in which the process numbers them.
//
// An entry is an index or the beginning of a UUID, as the first one is; the first entry that names
// no GPU, or more than one, ends the list.  A GPU that is named twice leaves none.
std::vector<size_t> visible_gpus(const std::string &text, const std::vector<std::string> &uuids);

} // namespace va
