// The node's door for tools: C symbols that libnvidia-ml.so.1 exports beside NVML's own, for
// `va100 node` and for tests.  Texts are JSON; a call that could not be done leaves its reason there.
#include <cstdio>
#include <cstring>

#include "busy.h"
#include "choose.h"
#include "describe.h"
#include "place.h"
#include "setup.h"

#define VA_NODE extern "C" __attribute__((visibility("default")))

namespace va::node {
namespace {

// The text into the caller's buffer; its length, also where it does not fit.
long put(const std::string &text, char *to, long room) {
  if (static_cast<long>(text.size()) < room)
    std::memcpy(to, text.c_str(), text.size() + 1);
  return static_cast<long>(text.size());
}

std::unique_ptr<Store> opened(const char *name, Refusal *refusal) {
  return name && *name ? Store::open(path_of(name), refusal) : open_chosen(refusal);
}

} // namespace
} // namespace va::node

using namespace va::node;

// The folder of nodes' files.
VA_NODE long va100_node_folder(char *to, long room) { return put(home_folder() + "/nodes", to, room); }

// What a node is and does just now.  Returns why it cannot be said, 0 for nothing (Refusal::Why).
VA_NODE int va100_node_describe(const char *name, char *to, long room, long *length) {
  Refusal refusal;
  const auto store = opened(name, &refusal);
  *length = put(store ? describe(*store) : refusal.text, to, room);
  return refusal.why;
}

// Make a node of cards given one a line: model, domain, bus, slot, numa, with tabs between.
VA_NODE int va100_node_create(const char *name, const char *kind, int board, const char *cards,
                              char *to, long room) {
  Refusal refusal;
  NodeWish wish;
  wish.kind = kind;
  wish.board = static_cast<uint32_t>(board);
  wish.seed = name;
  for (const char *line = cards; line && *line;) {
    DeviceWish card;
    char model[64] = {};
    if (sscanf(line, "%63[^\t]\t%u\t%u\t%u\t%d", model, &card.domain, &card.bus, &card.slot,
               &card.numa) != 5)
      return Refusal::kBadKind;
    card.model = model;
    wish.devices.push_back(card);
    line = std::strchr(line, '\n');
    line = line ? line + 1 : nullptr;
  }
  if (!is_node_name(name)) {
    refusal.why = Refusal::kBadName;
    refusal.text = std::string(name) + " is no name of a node: letters, digits, . - and _";
  } else {
    refusal = Store::create(path_of(name), wish);
  }
  put(refusal.text, to, room);
  return refusal.why;
}

VA_NODE int va100_node_delete(const char *name, int even_used, char *to, long room) {
  const Refusal refusal =
      is_node_name(name) ? Store::remove(path_of(name), even_used != 0) : Refusal{Refusal::kBadName, name};
  put(refusal.text, to, room);
  return refusal.why;
}

// Reset a GPU, or with -1 all: refused while somebody uses one of them.
VA_NODE int va100_node_reset(const char *name, int device, char *to, long room) {
  Refusal refusal;
  const auto store = opened(name, &refusal);
  if (store)
    refusal = reset(*store, device);
  put(refusal.text, to, room);
  return refusal.why;
}

// Break something, or with "clear" mend everything: describe.h lists the words.  What it is aimed at
// of the GPU: a GPU instance, -1 for any, and a process, 0 for any.
VA_NODE int va100_node_inject(const char *name, int device, int gpu_instance, unsigned pid,
                              const char *what, const char *detail, long count, char *to, long room) {
  Refusal refusal;
  const auto store = opened(name, &refusal);
  if (store)
    refusal = inject(*store, Aim{device, static_cast<uint32_t>(gpu_instance), pid}, what, detail, count);
  put(refusal.text, to, room);
  return refusal.why;
}

// How long the GPUs of the node in a file were at work, in nanoseconds, and how many processes have
// something running; the file may be anybody's.  0 where it is no node.
VA_NODE int va100_node_work(const char *path, uint64_t *busy_ns, uint32_t *running) {
  Work work;
  if (!read_work(path, &work))
    return 0;
  *busy_ns = work.busy_ns;
  *running = work.running;
  return 1;
}
