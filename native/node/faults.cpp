// Resets and faults: what they do to a GPU's settled state, and the events that tell of them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "clock.h"
#include "describe.h"
#include "setup.h"

namespace va::node {
namespace {

constexpr uint64_t kXidEvent = 0x8, kSingleBitEvent = 0x1, kDoubleBitEvent = 0x2;

Refusal wrong(const std::string &text) { return Refusal{Refusal::kBadName, text}; }

void tell(NodeState &state, int device, uint64_t type, uint32_t xid) {
  Event &event = state.events[state.event_count++ % kMostEvents];
  event.device = static_cast<uint32_t>(device);
  event.type = type;
  event.xid = xid;
  event.at_ns = now_ns();
  event.gpu_instance = event.compute_instance = kNone;
}

void report_xid(NodeState &state, int device, uint32_t xid) {
  state.devices[device].faults.last_xid = xid;
  tell(state, device, kXidEvent, xid);
}

bool is_number(const std::string &text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos && text.size() < 9;
}

// What an Xid does beside being reported.
Refusal inject_xid(NodeState &state, int device, const std::string &detail, uint64_t) {
  if (!is_number(detail))
    return wrong("an Xid is a number, not " + detail);
  Faults &faults = state.devices[device].faults;
  const auto xid = static_cast<uint32_t>(std::atoi(detail.c_str()));
  switch (xid) {
  case 48: // an error of two bits
    ++faults.ecc_volatile.dram_uncorrected;
    ++faults.ecc_aggregate.dram_uncorrected;
    break;
  case 63: // a row is to be remapped
    ++faults.remapped_uncorrected;
    faults.remap_pending = 1;
    break;
  case 64: // and could not be
    faults.remap_failed = 1;
    break;
  case 79: // fell off the bus
    faults.lost = 1;
    break;
  case 95: // an uncontained error
    faults.needs_reset = 1;
    break;
  default:
    break;
  }
  report_xid(state, device, xid);
  return {};
}

Refusal inject_ecc(NodeState &state, int device, const std::string &detail, uint64_t count) {
  Faults &f = state.devices[device].faults;
  if (!state.devices[device].ecc)
    return Refusal{Refusal::kInUse, "ECC is off on this GPU"};
  const std::map<std::string, uint64_t EccCounts::*> kinds = {
      {"sram corrected", &EccCounts::sram_corrected},
      {"sram uncorrected", &EccCounts::sram_uncorrected},
      {"dram corrected", &EccCounts::dram_corrected},
      {"dram uncorrected", &EccCounts::dram_uncorrected}};
  const auto kind = kinds.find(detail);
  if (kind == kinds.end())
    return wrong("an ECC error is `sram` or `dram`, `corrected` or `uncorrected`, not " + detail);
  f.ecc_volatile.*kind->second += count;
  f.ecc_aggregate.*kind->second += count;
  const bool corrected = detail.find("uncorrected") == std::string::npos;
  tell(state, device, corrected ? kSingleBitEvent : kDoubleBitEvent, 0);
  if (detail == "dram uncorrected") { // contained, and the row is remapped at the next reset
    f.remapped_uncorrected += static_cast<uint32_t>(count);
    f.remap_pending = 1;
    report_xid(state, device, 48);
    report_xid(state, device, 63);
  } else if (!corrected) {
    f.needs_reset = 1;
    report_xid(state, device, 95);
  }
  return {};
}

Refusal inject_remap(NodeState &state, int device, const std::string &detail, uint64_t count) {
  Faults &f = state.devices[device].faults;
  if (detail == "failed") {
    f.remap_failed = 1;
    report_xid(state, device, 64);
    return {};
  }
  if (!detail.empty() && detail != "pending")
    return wrong("rows are remapped, `pending` or `failed`, not " + detail);
  f.remapped_uncorrected += static_cast<uint32_t>(count);
  f.remap_pending = detail == "pending";
  report_xid(state, device, 63);
  return {};
}

Refusal inject_link(NodeState &state, int device, const std::string &detail, uint64_t) {
  if (!is_number(detail) || std::atoi(detail.c_str()) >= kMostLinks)
    return wrong("a link is a number from 0 to 11, not " + detail);
  state.devices[device].faults.links_down |= 1u << std::atoi(detail.c_str());
  report_xid(state, device, 74);
  return {};
}

Refusal inject_lost(NodeState &state, int device, const std::string &, uint64_t) {
  state.devices[device].faults.lost = 1;
  report_xid(state, device, 79);
  return {};
}

Refusal inject_thermal(NodeState &state, int device, const std::string &, uint64_t) {
  state.devices[device].faults.thermal = 1;
  return {};
}

Refusal inject_brake(NodeState &state, int device, const std::string &, uint64_t) {
  state.devices[device].faults.power_brake = 1;
  return {};
}

Refusal inject_replay(NodeState &state, int device, const std::string &, uint64_t count) {
  state.devices[device].faults.pcie_replays += static_cast<uint32_t>(count);
  return {};
}

Refusal inject_denial(NodeState &state, int, const std::string &function, uint64_t) {
  if (function.compare(0, 4, "nvml") || function.size() >= kNameBytes)
    return wrong("no NVML function is called " + function);
  if (state.denied_count == kMostDenied)
    return Refusal{Refusal::kInUse, "as many functions as can be are denied already: clear first"};
  snprintf(state.denied[state.denied_count++], kNameBytes, "%s", function.c_str());
  return {};
}

Refusal mend(NodeState &state, int device, const std::string &, uint64_t) {
  state.devices[device].faults = Faults{};
  return {};
}

using Injection = Refusal (*)(NodeState &, int, const std::string &, uint64_t);

const std::map<std::string, Injection> &injections() {
  static const std::map<std::string, Injection> table = {
      {"clear", mend},          {"ecc", inject_ecc},        {"link", inject_link},
      {"lost", inject_lost},    {"no-permission", inject_denial}, {"pcie-replay", inject_replay},
      {"power-brake", inject_brake}, {"remap", inject_remap}, {"thermal", inject_thermal},
      {"xid", inject_xid}};
  return table;
}

uint32_t count_of(const Store &store) {
  uint32_t count = 0;
  store.read([&](const NodeState &state) { count = state.device_count; });
  return count;
}

Refusal no_such_gpu(int device, uint32_t count) {
  return wrong("there is no GPU " + std::to_string(device) + "; the node has " + std::to_string(count));
}

// The process that has a context on a GPU; 0: none.
uint32_t user_of(const Store &store, int device) {
  const File &file = store.file();
  for (uint32_t i = 0; i < file.most_slots.load(); ++i)
    if (file.slots[i].pid.load() && file.slots[i].devices[device].contexts.load())
      return file.slots[i].pid.load();
  return 0;
}

} // namespace

Refusal reset(Store &store, int device) {
  store.reap();
  const uint32_t count = count_of(store);
  if (device < -1 || device >= static_cast<int>(count))
    return no_such_gpu(device, count);
  Refusal refusal;
  const bool locked = store.change([&](NodeState &state) {
    for (uint32_t i = 0; i < count; ++i) {
      if (device != -1 && static_cast<int>(i) != device)
        continue;
      if (const uint32_t pid = user_of(store, static_cast<int>(i))) {
        refusal = Refusal{Refusal::kInUse, "process " + std::to_string(pid) + " uses GPU " + std::to_string(i)};
        return false;
      }
      reset_device(state.devices[i], now_ns());
    }
    return true;
  });
  if (!locked)
    return Refusal{Refusal::kSystem, "the node's lock could not be had"};
  return refusal;
}

Refusal inject(Store &store, int device, const std::string &what, const std::string &detail,
               long count) {
  const auto found = injections().find(what);
  if (found == injections().end())
    return wrong("nothing called " + what + " can be injected");
  const uint32_t devices = count_of(store);
  if (device < -1 || device >= static_cast<int>(devices) || (device == -1 && what != "clear"))
    return no_such_gpu(device, devices);
  Refusal refusal;
  const bool locked = store.change([&](NodeState &state) {
    const int first = device < 0 ? 0 : device, last = device < 0 ? static_cast<int>(devices) - 1 : device;
    for (int i = first; i <= last && !refusal; ++i)
      refusal = found->second(state, i, detail, static_cast<uint64_t>(std::max(1L, count)));
    if (what == "clear" && device < 0)
      state.denied_count = 0;
    return !refusal;
  });
  if (!locked)
    return Refusal{Refusal::kSystem, "the node's lock could not be had"};
  return refusal;
}

} // namespace va::node
