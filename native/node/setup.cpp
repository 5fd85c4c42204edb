#include "setup.h"

#include <cstdio>
#include <cstring>

#include "clock.h"
#include "identity.h"
#include "models.h"
#include "thermal.h"
#include "topology.h"

namespace va::node {
namespace {

constexpr uint32_t kFirstBus = 0x07; // as the first GPU of an HGX board has it

void set_defaults(DeviceState &device) {
  const NodeModel &model = kNodeModels[device.model];
  device.power_limit_mw = model.limit_mw;
  device.clock_low_mhz = device.clock_high_mhz = 0;
  device.application_clock_mhz = 0;
  device.compute_mode = 0;
  device.persistence = 1;
  device.accounting = 0;
  device.gpu_c = idle_temperature_c(model);
}

} // namespace

Refusal set_up(NodeState &state, const NodeWish &wish) {
  Refusal refusal;
  if (wish.devices.empty() || wish.devices.size() > kMostDevices) {
    refusal.why = Refusal::kBadKind;
    refusal.text = "a node has 1 to " + std::to_string(kMostDevices) + " GPUs, not " +
                   std::to_string(wish.devices.size());
    return refusal;
  }
  snprintf(state.kind, sizeof state.kind, "%s", wish.kind.c_str());
  state.device_count = static_cast<uint32_t>(wish.devices.size());
  state.board = wish.board;
  for (size_t i = 0; i < wish.devices.size(); ++i) {
    const DeviceWish &from = wish.devices[i];
    const size_t model = model_named(from.model.c_str());
    if (model == kNodeModelCount) {
      refusal.why = Refusal::kBadKind;
      refusal.text = "GPU " + std::to_string(i) + ": " + from.model + " is no A100 model";
      return refusal;
    }
    DeviceState &device = state.devices[i];
    device.model = static_cast<uint32_t>(model);
    device.minor = static_cast<uint32_t>(i);
    device.domain = from.domain;
    device.bus = from.bus;
    device.slot = from.slot;
    device.numa = from.numa;
    device.uuid = gpu_uuid(wish.seed, kNodeModels[model].key, static_cast<int>(i));
    write_serial(device.serial, sizeof device.serial, device.uuid);
    device.ecc = device.ecc_pending = 1;
    device.gpu_c_at_ns = now_ns();
    set_defaults(device);
  }
  return refusal;
}

void restart(NodeState &state) {
  state.boot_ns = now_ns();
  state.event_count = 0;
  std::memset(state.folded, 0, sizeof state.folded);
  for (uint32_t i = 0; i < state.device_count; ++i) {
    DeviceState &device = state.devices[i];
    reset_device(device, state.boot_ns);
    set_defaults(device);
    device.energy_nj = device.busy_ns = 0;
    device.gpu_c_energy_nj = 0;
    device.ended_count = 0;
    device.pcie_tx_bytes = device.pcie_rx_bytes = 0;
    std::memset(device.link_tx_bytes, 0, sizeof device.link_tx_bytes);
    std::memset(device.link_rx_bytes, 0, sizeof device.link_rx_bytes);
  }
}

void reset_device(DeviceState &device, uint64_t at_ns) {
  (void)at_ns;
  device.ecc = device.ecc_pending;
  device.mig = device.mig_pending;
  std::memset(static_cast<void *>(device.instances), 0, sizeof device.instances);
  device.clock_low_mhz = device.clock_high_mhz = 0;
  ++device.resets;
  Faults &faults = device.faults;
  faults.lost = faults.needs_reset = 0;
  faults.last_xid = 0;
  faults.ecc_volatile = {};
  // Rows that wait for a reset are swapped by it.
  faults.remap_pending = 0;
}

NodeWish wish_of_kind(const Kind &kind, const std::string &name) {
  NodeWish wish;
  wish.kind = kind.name;
  wish.board = kind.board;
  wish.seed = name;
  for (size_t i = 0; i < kind.count; ++i) {
    const Seat &seat = kind.seats[i];
    wish.devices.push_back(DeviceWish{kind.model, seat.domain, seat.bus, seat.slot, seat.numa});
  }
  return wish;
}

NodeWish plain_wish(const std::string &model, int count) {
  NodeWish wish;
  const size_t at = model_named(model.c_str());
  wish.kind = "plain";
  wish.board = at < kNodeModelCount && kNodeModels[at].sxm ? kSwitched : kBridged;
  for (int i = 0; i < count; ++i)
    wish.devices.push_back(DeviceWish{model, 0, kFirstBus + 8 * static_cast<uint32_t>(i), 0, 0});
  return wish;
}

} // namespace va::node
