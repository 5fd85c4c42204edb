#include "choose.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "models.h"
#include "place.h"
#include "setup.h"

namespace va::node {
namespace {

constexpr char kDefaultModel[] = "A100-SXM4-80GB";

std::string model_of_environment() {
  const char *const value = std::getenv("VA100_MODEL");
  return value && model_named(value) < kNodeModelCount ? value : kDefaultModel;
}

int count_of_environment() {
  const char *const value = std::getenv("VA100_GPUS");
  const long count = value ? std::strtol(value, nullptr, 10) : 1;
  return count >= 1 && count <= kMostDevices ? static_cast<int>(count) : 1;
}

} // namespace

std::unique_ptr<Store> open_named(const std::string &name, Refusal *refusal) {
  if (!is_node_name(name)) {
    refusal->why = Refusal::kBadName;
    refusal->text = "VA100_NODE=" + name + " is no name of a node: letters, digits, . - and _";
    return nullptr;
  }
  const std::string path = path_of(name);
  auto store = Store::open(path, refusal);
  const Kind *const kind = kind_named(name.c_str());
  if (!store && refusal->why == Refusal::kNoSuchNode && kind) {
    const Refusal made = Store::create(path, wish_of_kind(*kind, name));
    if (made && made.why != Refusal::kExists) {
      *refusal = made;
      return nullptr;
    }
    *refusal = {};
    store = Store::open(path, refusal);
  }
  if (!store && refusal->why == Refusal::kNoSuchNode)
    refusal->text = "there is no node " + name + " in " + home_folder() + ": va100 node create " +
                    name + " --kind hgx-a100-8x80gb";
  if (store)
    store->set_chosen(true);
  return store;
}

std::unique_ptr<Store> open_plain(const std::string &model, int count) {
  const NodeWish wish = plain_wish(model, count);
  std::string name = "plain-" + model + "-x" + std::to_string(count);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string path = path_of(name);
  Refusal refusal;
  auto store = Store::open(path, &refusal);
  if (store)
    return store;
  if (refusal.why == Refusal::kBadLayout) // of an older version: nothing of value is in it
    Store::remove(path, true);
  const Refusal made = Store::create(path, wish);
  if (!made || made.why == Refusal::kExists) // another process may just have been first
    store = Store::open(path, &refusal);
  return store ? std::move(store) : Store::in_memory(wish);
}

std::unique_ptr<Store> open_chosen(Refusal *refusal) {
  const std::string name = chosen_node();
  if (!name.empty())
    return open_named(name, refusal);
  const size_t model = model_named(model_of_environment().c_str());
  auto store = open_plain(kNodeModels[model].key, count_of_environment());
  if (!store)
    refusal->text = "no memory for a node's state";
  return store;
}

} // namespace va::node
