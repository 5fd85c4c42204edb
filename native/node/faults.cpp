// Resets and faults: what they do to a GPU's settled state, and the events that tell of them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "clock.h"
#include "describe.h"
#include "fabric_facts.h"
#include "setup.h"
#include "topology.h"

namespace va::node {
namespace {

constexpr uint64_t kXidEvent = 0x8, kSingleBitEvent = 0x1, kDoubleBitEvent = 0x2;

Refusal wrong(const std::string &text) { return Refusal{Refusal::kBadName, text}; }

void tell(NodeState &state, const Aim &aim, uint64_t type, uint32_t xid) {
  Event &event = state.events[state.event_count++ % kMostEvents];
  event.device = static_cast<uint32_t>(aim.device);
  event.type = type;
  event.xid = xid;
  event.at_ns = now_ns();
  event.gpu_instance = aim.gpu_instance;
  event.compute_instance = kNone;
}

void report_xid(NodeState &state, const Aim &aim, uint32_t xid) {
  state.devices[aim.device].faults.last_xid = xid;
  tell(state, aim, kXidEvent, xid);
}

// Whether a fault is to meet some of a GPU's processes only.
bool is_narrow(const Aim &aim) { return aim.gpu_instance != kNone || aim.pid; }

bool is_number(const std::string &text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos && text.size() < 9;
}

// Contexts that are there now fail from now on; those that come later do not.
void strike(NodeState &state, const Aim &aim, uint32_t code) {
  DeviceState &device = state.devices[aim.device];
  device.strikes[device.strike_count++ % kMostStrikes] = Strike{code, aim.gpu_instance, aim.pid};
}

// A fault of the whole GPU, whatever it was aimed at: no slice is kept from it.
void strike_all(NodeState &state, const Aim &aim, uint32_t code) {
  strike(state, Aim{aim.device, kNone, 0}, code);
}

// What CUDA's calls return after a fault, by their numbers in CUresult.
enum Code : uint32_t { kUncorrectable = 214, kIllegalAddress = 700, kLaunchFailed = 719, kUnknown = 999 };

void report_double_bit(NodeState &state, const Aim &aim) {
  EccCounts &now = state.devices[aim.device].faults.ecc_volatile;
  EccCounts &ever = state.devices[aim.device].faults.ecc_aggregate;
  ++now.dram_uncorrected;
  ++ever.dram_uncorrected;
  strike(state, aim, kUncorrectable);
}

void need_remap(NodeState &state, const Aim &aim) {
  ++state.devices[aim.device].faults.remapped_uncorrected;
  state.devices[aim.device].faults.remap_pending = 1;
}

void fail_remap(NodeState &state, const Aim &aim) { state.devices[aim.device].faults.remap_failed = 1; }

void lose(NodeState &state, const Aim &aim) {
  state.devices[aim.device].faults.lost = 1;
  strike_all(state, aim, kUnknown);
}

void contain(NodeState &state, const Aim &aim) { strike(state, aim, kUncorrectable); }

void fail_to_contain(NodeState &state, const Aim &aim) {
  state.devices[aim.device].faults.needs_reset = 1;
  strike_all(state, aim, kUncorrectable);
}

void stop_at_address(NodeState &state, const Aim &aim) { strike(state, aim, kIllegalAddress); }

void stop_kernel(NodeState &state, const Aim &aim) { strike(state, aim, kLaunchFailed); }

// What an Xid does beside being reported; others are reported alone.
struct XidRow {
  uint32_t xid;
  void (*act)(NodeState &, const Aim &);
  bool of_whole_gpu; // it cannot be aimed at a slice or a process
};
constexpr XidRow kXids[] = {
    {13, stop_kernel, false},     // an exception of the graphics engine, which runs kernels
    {31, stop_at_address, false}, // the memory unit's
    {43, stop_kernel, false},     // the GPU stopped working on it
    {45, stop_kernel, false},     // it was cleaned up after other errors
    {48, report_double_bit, false},
    {63, need_remap, true}, // a row is to be remapped
    {64, fail_remap, true}, // and could not be
    {74, nullptr, true},    // NVLink
    {79, lose, true},       // fell off the bus
    {94, contain, false},   // an error that ends who met it
    {95, fail_to_contain, true},
};

Refusal inject_xid(NodeState &state, const Aim &aim, const std::string &detail, uint64_t) {
  if (!is_number(detail))
    return wrong("an Xid is a number, not " + detail);
  const auto xid = static_cast<uint32_t>(std::atoi(detail.c_str()));
  for (const XidRow &row : kXids) {
    if (row.xid != xid)
      continue;
    if (row.of_whole_gpu && is_narrow(aim))
      return wrong("Xid " + detail + " is the whole GPU's: leave out the instance and the process");
    if (row.act)
      row.act(state, aim);
  }
  report_xid(state, aim, xid);
  return {};
}

Refusal inject_ecc(NodeState &state, const Aim &aim, const std::string &detail, uint64_t count) {
  Faults &f = state.devices[aim.device].faults;
  if (!state.devices[aim.device].ecc)
    return Refusal{Refusal::kInUse, "ECC is off on this GPU"};
  const std::map<std::string, uint64_t EccCounts::*> kinds = {
      {"sram corrected", &EccCounts::sram_corrected},
      {"sram uncorrected", &EccCounts::sram_uncorrected},
      {"dram corrected", &EccCounts::dram_corrected},
      {"dram uncorrected", &EccCounts::dram_uncorrected}};
  const auto kind = kinds.find(detail);
  if (kind == kinds.end())
    return wrong("an ECC error is `sram` or `dram`, `corrected` or `uncorrected`, not " + detail);
  if (is_narrow(aim) && detail != "dram uncorrected")
    return wrong("only an uncorrected error in DRAM meets a single instance or process");
  f.ecc_volatile.*kind->second += count;
  f.ecc_aggregate.*kind->second += count;
  const bool corrected = detail.find("uncorrected") == std::string::npos;
  tell(state, aim, corrected ? kSingleBitEvent : kDoubleBitEvent, 0);
  if (detail == "dram uncorrected") { // contained, and the row is remapped at the next reset
    f.remapped_uncorrected += static_cast<uint32_t>(count);
    f.remap_pending = 1;
    report_xid(state, aim, 48);
    report_xid(state, aim, 63);
    report_xid(state, aim, 94);
    contain(state, aim);
  } else if (!corrected) {
    fail_to_contain(state, aim);
    report_xid(state, aim, 95);
  }
  return {};
}

Refusal inject_remap(NodeState &state, const Aim &aim, const std::string &detail, uint64_t count) {
  Faults &f = state.devices[aim.device].faults;
  if (detail == "failed") {
    f.remap_failed = 1;
    report_xid(state, aim, 64);
    return {};
  }
  if (!detail.empty() && detail != "pending")
    return wrong("rows are remapped, `pending` or `failed`, not " + detail);
  f.remapped_uncorrected += static_cast<uint32_t>(count);
  f.remap_pending = detail == "pending";
  report_xid(state, aim, 63);
  return {};
}

Refusal inject_link(NodeState &state, const Aim &aim, const std::string &detail, uint64_t) {
  if (!is_number(detail) || std::atoi(detail.c_str()) >= kMostLinks)
    return wrong("a link is a number from 0 to 11, not " + detail);
  state.devices[aim.device].faults.links_down |= 1u << std::atoi(detail.c_str());
  report_xid(state, aim, 74);
  return {};
}

// Every GPU has links to it, and tells of them.
Refusal inject_switch(NodeState &state, const Aim &, const std::string &detail, uint64_t) {
  if (state.board != kSwitched)
    return wrong("the node has no NVSwitch");
  if (!is_number(detail) || std::atoi(detail.c_str()) >= facts::kSwitches)
    return wrong("a switch is a number from 0 to " + std::to_string(facts::kSwitches - 1) + ", not " + detail);
  state.switches_down |= 1u << std::atoi(detail.c_str());
  for (uint32_t i = 0; i < state.device_count; ++i)
    report_xid(state, Aim{static_cast<int>(i)}, 74);
  return {};
}

Refusal inject_lost(NodeState &state, const Aim &aim, const std::string &, uint64_t) {
  lose(state, aim);
  report_xid(state, aim, 79);
  return {};
}

Refusal inject_thermal(NodeState &state, const Aim &aim, const std::string &, uint64_t) {
  state.devices[aim.device].faults.thermal = 1;
  return {};
}

Refusal inject_brake(NodeState &state, const Aim &aim, const std::string &, uint64_t) {
  state.devices[aim.device].faults.power_brake = 1;
  return {};
}

Refusal inject_replay(NodeState &state, const Aim &aim, const std::string &, uint64_t count) {
  state.devices[aim.device].faults.pcie_replays += static_cast<uint32_t>(count);
  return {};
}

Refusal inject_denial(NodeState &state, const Aim &, const std::string &function, uint64_t) {
  if (function.compare(0, 4, "nvml") || function.size() >= kNameBytes)
    return wrong("no NVML function is called " + function);
  if (state.denied_count == kMostDenied)
    return Refusal{Refusal::kInUse, "as many functions as can be are denied already: clear first"};
  snprintf(state.denied[state.denied_count++], kNameBytes, "%s", function.c_str());
  return {};
}

Refusal mend(NodeState &state, const Aim &aim, const std::string &, uint64_t) {
  state.devices[aim.device].faults = Faults{};
  return {};
}

using Injection = Refusal (*)(NodeState &, const Aim &, const std::string &, uint64_t);

const std::map<std::string, Injection> &injections() {
  static const std::map<std::string, Injection> table = {
      {"clear", mend},          {"ecc", inject_ecc},        {"link", inject_link},
      {"lost", inject_lost},    {"no-permission", inject_denial}, {"pcie-replay", inject_replay},
      {"power-brake", inject_brake}, {"remap", inject_remap}, {"switch", inject_switch}, {"thermal", inject_thermal},
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

namespace {

// What cannot be aimed at a GPU's part, or the part is not there.
Refusal misaimed(const Store &store, const Aim &aim, const std::string &what) {
  if (!is_narrow(aim))
    return {};
  if (what != "xid" && what != "ecc")
    return wrong(what + " is the whole GPU's: leave out the instance and the process");
  const DeviceState device = store.device(aim.device);
  bool found = aim.gpu_instance == kNone;
  for (const GpuInstance &gi : device.instances)
    found = found || (gi.used && gi.id == aim.gpu_instance);
  if (!found)
    return wrong("GPU " + std::to_string(aim.device) + " has no GPU instance " +
                 std::to_string(aim.gpu_instance));
  const File &file = store.file();
  found = !aim.pid;
  for (uint32_t i = 0; i < file.most_slots.load(); ++i)
    found = found || (file.slots[i].pid.load() == aim.pid && file.slots[i].devices[aim.device].contexts.load());
  return found ? Refusal{} : wrong("process " + std::to_string(aim.pid) + " does not use the GPU");
}

// Whether it breaks, or mends, more than one GPU.
bool is_of_node(const std::string &what) { return what == "clear" || what == "switch"; }

} // namespace

Refusal inject(Store &store, const Aim &aim, const std::string &what, const std::string &detail,
               long count) {
  const auto found = injections().find(what);
  if (found == injections().end())
    return wrong("nothing called " + what + " can be injected");
  const uint32_t devices = count_of(store);
  if (aim.device < -1 || aim.device >= static_cast<int>(devices) || (aim.device == -1 && !is_of_node(what)))
    return no_such_gpu(aim.device, devices);
  Refusal refusal = misaimed(store, aim, what);
  if (refusal)
    return refusal;
  const bool locked = store.change([&](NodeState &state) {
    const bool once = aim.device >= 0 || what == "switch";
    const int first = std::max(aim.device, 0), last = once ? first : static_cast<int>(devices) - 1;
    for (int i = first; i <= last && !refusal; ++i)
      refusal = found->second(state, Aim{i, aim.gpu_instance, aim.pid}, detail,
                              static_cast<uint64_t>(std::max(1L, count)));
    if (what == "clear" && aim.device < 0)
      state.denied_count = state.switches_down = 0;
    return !refusal;
  });
  if (!locked)
    return Refusal{Refusal::kSystem, "the node's lock could not be had"};
  return refusal;
}

} // namespace va::node
