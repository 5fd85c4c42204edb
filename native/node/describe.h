// A node told in JSON, reset, and broken on purpose.
#pragma once

#include <string>

#include "store.h"

namespace va::node {

std::string describe(Store &store);
// One GPU, or with -1 all; refused while somebody uses one of them.
Refusal reset(Store &store, int device);

// What a fault meets: a GPU, of it one GPU instance, one process.
struct Aim {
  int device = 0; // -1: the whole node
  uint32_t gpu_instance = kNone;
  uint32_t pid = 0; // 0: whoever
};

// What can be broken, with what `detail` and `count` mean:
//   xid NUMBER             an Xid is reported, with what it does to the GPU
//   ecc sram|dram corrected|uncorrected in `detail`, so many of them
//   remap [pending|failed] rows are remapped
//   lost                   the GPU falls off the bus
//   thermal, power-brake   the clocks slow down
//   link NUMBER            a link goes down
//   switch NUMBER          an NVSwitch fails, and with it two links of every GPU
//   pcie-replay            so many replays
//   no-permission FUNCTION an NVML function needs more rights
//   clear                  all of it is mended, for one GPU or with -1 for all
Refusal inject(Store &store, const Aim &aim, const std::string &what, const std::string &detail,
               long count);

} // namespace va::node
