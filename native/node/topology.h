// How the cards of a node are joined.
#pragma once

#include <cstdint>

namespace va::node {

enum BoardKind : uint32_t {
  kUnlinked = 0, // PCIe alone
  kSwitched = 1, // every link ends in an NVSwitch, two in each of six
  kMeshed = 2,   // four links to each of three peers
  kBridged = 3,  // pairs of PCIe cards under bridges
};

} // namespace va::node
