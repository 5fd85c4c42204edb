// The node that this process is to use: the environment's, or the one that everybody has.
#pragma once

#include "store.h"

namespace va::node {

// A node of VA100_NODE; one that is called as a kind is made on first use.  Without VA100_NODE, so
// many cards of one model as VA100_GPUS and VA100_MODEL say: made on first use, too, and held in this
// process's memory where no file can be made.  Null with a refusal.
std::unique_ptr<Store> open_chosen(Refusal *refusal);
std::unique_ptr<Store> open_named(const std::string &name, Refusal *refusal);
std::unique_ptr<Store> open_plain(const std::string &model, int count);

} // namespace va::node
