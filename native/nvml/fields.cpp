// Field values: many readings in one call, by number.
#include <functional>
#include <map>

#include "clock.h"
#include "links.h"
#include "nvml_api.h"
#include "readings.h"

namespace va::nvml {
namespace {

enum : unsigned { kDouble = 0, kUnsigned = 1, kUnsignedLongLong = 3, kSignedInt = 5 };

struct Answer {
  unsigned type;
  uint64_t value;
};
using Question = std::function<Answer(const Device &, unsigned scope)>;

Answer number(uint64_t value) { return Answer{kUnsigned, value}; }
Answer wide(uint64_t value) { return Answer{kUnsignedLongLong, value}; }

uint64_t ecc(const Device &d, bool aggregate, bool uncorrected, int where) {
  if (!d.state.ecc)
    fail(NVML_ERROR_NOT_SUPPORTED);
  const node::EccCounts &c =
      aggregate ? d.state.faults.ecc_aggregate : d.state.faults.ecc_volatile;
  const uint64_t sram = uncorrected ? c.sram_uncorrected : c.sram_corrected;
  const uint64_t dram = uncorrected ? c.dram_uncorrected : c.dram_corrected;
  return where == 0 ? sram + dram : where == 1 ? sram : dram;
}

unsigned links_up(const Device &d) {
  unsigned up = 0;
  for (unsigned link = 0; link < d.model().links; ++link)
    up += is_link_up(d, link);
  return up;
}

unsigned link_mbps(const Device &d) {
  return static_cast<unsigned>(d.model().link_bytes_per_s / 1'000'000);
}

LinkBytes scoped_bytes(const Device &d, unsigned scope) {
  constexpr unsigned kAll = 0xFFFFFFFF;
  if (scope != kAll && scope >= d.model().links)
    fail(NVML_ERROR_INVALID_ARGUMENT);
  return bytes_of(d, scope == kAll ? -1 : static_cast<int>(scope));
}

// Over PCIe, by processes that are gone and those that are not.
LinkBytes pcie_bytes(const Device &d) {
  store().reap();
  const DeviceState state = store().device(d.index);
  LinkBytes sum{state.pcie_tx_bytes, state.pcie_rx_bytes};
  const node::File &file = store().file();
  for (uint32_t i = 0; i < file.most_slots.load(std::memory_order_acquire); ++i)
    if (file.slots[i].pid.load()) {
      sum.tx += file.slots[i].devices[d.index].pcie_tx_bytes.load();
      sum.rx += file.slots[i].devices[d.index].pcie_rx_bytes.load();
    }
  return sum;
}

// Of errors on a link nothing is counted but that an injected one went down.
Answer link_errors(const Device &, unsigned) { return wide(0); }

void add_ecc(std::map<unsigned, Question> &t) {
  struct Row {
    unsigned corrected, uncorrected;
    bool aggregate;
    int where; // 0 all, 1 SRAM, 2 DRAM
  };
  for (const Row &row : {Row{3, 4, false, 0}, Row{5, 6, true, 0}, Row{9, 10, false, 1},
                         Row{11, 12, false, 2}, Row{20, 21, true, 1}, Row{22, 23, true, 2}}) {
    t[row.corrected] = [row](const Device &d, unsigned) {
      return wide(ecc(d, row.aggregate, false, row.where));
    };
    t[row.uncorrected] = [row](const Device &d, unsigned) {
      return wide(ecc(d, row.aggregate, true, row.where));
    };
  }
}

void add_links(std::map<unsigned, Question> &t) {
  // Flit, data, replay and recovery errors: links 0 to 5 with their sum, then 6 to 11; ECC, all.
  for (unsigned first : {32u, 39u, 46u, 53u})
    for (unsigned i = 0; i < 7; ++i)
      t[first + i] = link_errors;
  for (unsigned first : {96u, 102u, 108u, 114u})
    for (unsigned i = 0; i < 6; ++i)
      t[first + i] = link_errors;
  for (unsigned i = 148; i <= 163; ++i)
    t[i] = link_errors;
  for (unsigned i = 0; i < 6; ++i) {
    t[84 + i] = [i](const Device &d, unsigned) { return number(is_link_up(d, i) ? link_mbps(d) : 0); };
    t[132 + i] = [i](const Device &d, unsigned) {
      return number(is_link_up(d, i + 6) ? link_mbps(d) : 0);
    };
  }
  t[90] = [](const Device &d, unsigned) { return number(links_up(d) ? link_mbps(d) : 0); };
  t[91] = [](const Device &d, unsigned) { return number(links_up(d)); };
  t[138] = t[140] = [](const Device &d, unsigned s) { return wide(scoped_bytes(d, s).tx >> 10); };
  t[139] = t[141] = [](const Device &d, unsigned s) { return wide(scoped_bytes(d, s).rx >> 10); };
  t[164] = [](const Device &d, unsigned s) {
    return number(s < d.model().links && is_link_up(d, s) ? link_mbps(d) : 0);
  };
  t[165] = [](const Device &d, unsigned s) { return number(s < d.model().links && is_link_up(d, s)); };
  t[166] = [](const Device &, unsigned) { return number(5); };
  t[202] = [](const Device &d, unsigned s) { return wide(scoped_bytes(d, s).tx); };
  t[204] = [](const Device &d, unsigned s) { return wide(scoped_bytes(d, s).rx); };
}

void add_readings(std::map<unsigned, Question> &t) {
  t[82] = [](const Device &d, unsigned) {
    return number(static_cast<uint64_t>(reading_of(d).memory_c + 0.5));
  };
  t[83] = t[191] = [](const Device &d, unsigned) { return wide(reading_of(d).energy_nj / 1'000'000); };
  t[186] = [](const Device &d, unsigned) { return number(reading_of(d).instant_power_mw); };
  t[187] = [](const Device &d, unsigned) { return number(d.model().least_limit_mw); };
  t[188] = [](const Device &d, unsigned) { return number(d.model().most_limit_mw); };
  t[189] = [](const Device &d, unsigned) { return number(d.model().limit_mw); };
  t[190] = t[192] = [](const Device &d, unsigned) { return number(d.state.power_limit_mw); };
  t[197] = [](const Device &d, unsigned) { return wide(pcie_bytes(d).tx); };
  t[198] = [](const Device &d, unsigned) { return wide(pcie_bytes(d).rx); };
}

void add_states(std::map<unsigned, Question> &t) {
  t[1] = [](const Device &d, unsigned) { return number(d.state.ecc); };
  t[2] = [](const Device &d, unsigned) { return number(d.state.ecc_pending); };
  t[94] = [](const Device &d, unsigned) { return number(d.state.faults.pcie_replays); };
  t[95] = [](const Device &, unsigned) { return number(0); };
  t[142] = [](const Device &d, unsigned) { return number(d.state.faults.remapped_corrected); };
  t[143] = [](const Device &d, unsigned) { return number(d.state.faults.remapped_uncorrected); };
  t[144] = [](const Device &d, unsigned) { return number(d.state.faults.remap_pending); };
  t[145] = [](const Device &d, unsigned) { return number(d.state.faults.remap_failed); };
  t[184] = [](const Device &, unsigned) { return number(0); };
  t[226] = [](const Device &d, unsigned) { return number(d.state.faults.needs_reset); };
  t[227] = [](const Device &, unsigned) { return number(0); };
  t[230] = [](const Device &d, unsigned) { // 0 none, 1 reset, 2 reboot, 4 drain and reset
    const node::Faults &f = d.state.faults;
    return number(f.needs_reset ? 1 : f.remap_pending ? 4 : 0);
  };
}

const std::map<unsigned, Question> &questions() {
  static const std::map<unsigned, Question> *const table = [] {
    auto *const made = new std::map<unsigned, Question>;
    add_states(*made);
    add_ecc(*made);
    add_links(*made);
    add_readings(*made);
    return made;
  }();
  return *table;
}

void answer(const Device &device, nvmlFieldValue_t &field) {
  constexpr unsigned kLimit = 310;
  const uint64_t begin = node::now_ns();
  field.timestamp = static_cast<long long>(node::wall_us());
  field.value.ullVal = 0;
  const auto found = questions().find(field.fieldId);
  if (found == questions().end()) {
    field.nvmlReturn = field.fieldId && field.fieldId < kLimit ? NVML_ERROR_NOT_SUPPORTED
                                                               : NVML_ERROR_INVALID_ARGUMENT;
    return;
  }
  try {
    const Answer given = found->second(device, field.scopeId);
    field.valueType = given.type;
    if (given.type == kUnsignedLongLong)
      field.value.ullVal = given.value;
    else
      field.value.uiVal = static_cast<unsigned>(given.value);
    field.nvmlReturn = NVML_SUCCESS;
  } catch (const Failure &failure) {
    field.nvmlReturn = failure.code;
  }
  field.latencyUsec = static_cast<long long>((node::now_ns() - begin) / 1000);
}

} // namespace

namespace api {

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t handle, int valuesCount,
                                      nvmlFieldValue_t *values) {
  const Device device = device_of(handle);
  if (valuesCount < 1)
    return NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < valuesCount; ++i)
    if (device.mig) // of a MIG device, only what its GPU has settled
      values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    else
      answer(device, values[i]);
  return NVML_SUCCESS;
}

// Of what is asked here, one counter can be cleared.
nvmlReturn_t nvmlDeviceClearFieldValues(nvmlDevice_t handle, int valuesCount,
                                        nvmlFieldValue_t *values) {
  constexpr unsigned kPcieReplays = 94;
  const Device device = gpu_of(handle);
  if (valuesCount < 1)
    return NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < valuesCount; ++i) {
    nvmlFieldValue_t &field = values[i];
    field.timestamp = static_cast<long long>(node::wall_us());
    field.latencyUsec = 0;
    field.nvmlReturn = questions().count(field.fieldId) ? NVML_ERROR_NOT_SUPPORTED
                                                        : NVML_ERROR_INVALID_ARGUMENT;
    if (field.fieldId != kPcieReplays)
      continue;
    change(device.index, [](DeviceState &d) {
      d.faults.pcie_replays = 0;
      return NVML_SUCCESS;
    });
    field.nvmlReturn = NVML_SUCCESS;
  }
  return NVML_SUCCESS;
}

} // namespace api
} // namespace va::nvml
