// What a node starts with: made, restarted, reset.
#pragma once

#include "store.h"

namespace va::node {

Refusal set_up(NodeState &state, const NodeWish &wish);
// As the machine's restart leaves it: no instances, no volatile counts, pending modes in force.
void restart(NodeState &state);
// One GPU's reset; the caller knows that nobody uses it.
void reset_device(DeviceState &device, uint64_t at_ns);

NodeWish wish_of_kind(const struct Kind &kind, const std::string &name);
// The node that everybody has: so many cards of one model.
NodeWish plain_wish(const std::string &model, int count);

} // namespace va::node
