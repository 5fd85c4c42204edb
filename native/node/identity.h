// What makes one card this card: UUIDs, serial numbers; the same every time a node of this name is
// made, so that caches keyed by them stay valid.
#pragma once

#include <string>

#include "state.h"

namespace va::node {

// `seed` tells nodes apart; without one it is the card that everybody has.
Uuid gpu_uuid(const std::string &seed, const std::string &model, int seat);
// The same for the same instance in the same place: version 5 by its bits, as the driver's are.
Uuid mig_uuid(const Uuid &gpu, uint32_t gpu_instance, uint32_t compute_instance);
void write_serial(char *to, size_t room, const Uuid &gpu);
// "GPU-" or "MIG-" before it.
std::string uuid_text(const char *before, const Uuid &uuid);

} // namespace va::node
