#include "describe.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "clock.h"
#include "identity.h"
#include "models.h"
#include "place.h"
#include "telemetry.h"

namespace va::node {
namespace {

// Writes JSON; the caller keeps the order of words right.
class Json {
public:
  void open(char bracket) {
    comma();
    text_ += bracket;
    fresh_ = true;
  }
  void close(char bracket) {
    text_ += bracket;
    fresh_ = false;
  }
  void key(const char *name) {
    string(name);
    text_ += ": ";
    fresh_ = true;
  }
  void string(const std::string &value) {
    comma();
    text_ += '"';
    for (const char c : value) {
      char escaped[8];
      if (c == '"' || c == '\\')
        text_ += '\\';
      if (static_cast<unsigned char>(c) < 0x20) {
        snprintf(escaped, sizeof escaped, "\\u%04x", c);
        text_ += escaped;
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }
  void raw(const std::string &value) {
    comma();
    text_ += value;
  }
  void field(const char *name, const std::string &value) { key(name), string(value); }
  void field(const char *name, const char *value) { key(name), string(value); }
  void field(const char *name, uint64_t value) { key(name), raw(std::to_string(value)); }
  void flag(const char *name, bool value) { key(name), raw(value ? "true" : "false"); }
  void real(const char *name, double value) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", value);
    key(name);
    raw(text);
  }
  std::string take() { return std::move(text_); }

private:
  void comma() {
    if (!fresh_)
      text_ += ", ";
    fresh_ = false;
  }
  std::string text_;
  bool fresh_ = true;
};

std::string bus_id(const DeviceState &d) {
  char text[32];
  snprintf(text, sizeof text, "%08X:%02X:%02X.0", d.domain, d.bus, d.slot);
  return text;
}

void add_instances(Json &json, const DeviceState &d) {
  const NodeModel &model = kNodeModels[d.model];
  json.key("gpu_instances");
  json.open('[');
  for (const GpuInstance &gi : d.instances) {
    if (!gi.used)
      continue;
    json.open('{');
    json.field("id", uint64_t{gi.id});
    json.field("profile", model.profiles[gi.profile].name);
    json.field("profile_id", uint64_t{model.profiles[gi.profile].id});
    json.field("start", uint64_t{gi.start});
    json.field("size", uint64_t{gi.size});
    json.key("compute_instances");
    json.open('[');
    for (const ComputeInstance &ci : gi.compute) {
      if (!ci.used)
        continue;
      json.open('{');
      json.field("id", uint64_t{ci.id});
      json.field("profile_id", uint64_t{kComputeProfiles[ci.profile].id});
      json.field("slices", uint64_t{ci.slices});
      json.field("start", uint64_t{ci.start});
      json.field("uuid", uuid_text("MIG-", ci.uuid));
      json.close('}');
    }
    json.close(']');
    json.close('}');
  }
  json.close(']');
}

void add_faults(Json &json, const Faults &f) {
  json.key("faults");
  json.open('{');
  json.field("last_xid", uint64_t{f.last_xid});
  json.flag("lost", f.lost);
  json.flag("thermal", f.thermal);
  json.flag("power_brake", f.power_brake);
  json.flag("needs_reset", f.needs_reset);
  json.field("remapped_corrected", uint64_t{f.remapped_corrected});
  json.field("remapped_uncorrected", uint64_t{f.remapped_uncorrected});
  json.flag("remap_pending", f.remap_pending);
  json.flag("remap_failed", f.remap_failed);
  json.field("links_down", uint64_t{f.links_down});
  json.field("ecc_sram_corrected", f.ecc_volatile.sram_corrected);
  json.field("ecc_sram_uncorrected", f.ecc_volatile.sram_uncorrected);
  json.field("ecc_dram_corrected", f.ecc_volatile.dram_corrected);
  json.field("ecc_dram_uncorrected", f.ecc_volatile.dram_uncorrected);
  json.close('}');
}

// Shares of the last sample period, 0 to 1.
void add_units(Json &json, const DeviceUse &use, uint64_t at_ns) {
  static const char *const kNames[kUnits + 1] = {"memory", "tensor", "fp64", "fp32", "fp16", "any"};
  json.key("active");
  json.open('{');
  for (int unit = 0; unit <= kUnits; ++unit)
    json.real(kNames[unit], busy_permille(use, at_ns, unit) * 1e-3);
  json.close('}');
}

void add_processes(Json &json, const Store &store, int device, uint64_t at_ns) {
  json.key("processes");
  json.open('[');
  const File &file = store.file();
  for (uint32_t i = 0; i < file.most_slots.load(); ++i) {
    const Slot &slot = file.slots[i];
    const DeviceUse &use = slot.devices[device];
    if (!slot.pid.load() || !use.contexts.load())
      continue;
    json.open('{');
    json.field("pid", uint64_t{slot.pid.load()});
    json.field("name", std::string(slot.name, strnlen(slot.name, sizeof slot.name)));
    json.field("used_bytes", used_bytes(use));
    json.field("allocated_bytes", use.arena_bytes.load());
    json.field("busy_percent", uint64_t{busy_percent(use, at_ns, false)});
    json.field("memory_busy_percent", uint64_t{busy_percent(use, at_ns, true)});
    add_units(json, use, at_ns);
    json.real("busy_s", static_cast<double>(use.busy_ns.load()) * 1e-9);
    json.field("launches", use.launches.load());
    json.real("virtual_s", static_cast<double>(use.virtual_ns.load()) * 1e-9);
    const uint32_t gi = use.gpu_instance.load(), ci = use.compute_instance.load();
    json.key("gpu_instance");
    json.raw(gi == kNone ? "null" : std::to_string(gi));
    json.key("compute_instance");
    json.raw(ci == kNone ? "null" : std::to_string(ci));
    json.close('}');
  }
  json.close(']');
}

void add_device(Json &json, const Store &store, int index, uint64_t at_ns) {
  const DeviceState d = store.device(index);
  const NodeModel &model = kNodeModels[d.model];
  const Reading r = read_device(store, index, at_ns);
  json.open('{');
  json.field("index", static_cast<uint64_t>(index));
  json.field("model", model.key);
  json.field("name", model.name);
  json.field("uuid", uuid_text("GPU-", d.uuid));
  json.field("serial", d.serial);
  json.field("bus_id", bus_id(d));
  json.key("numa");
  json.raw(std::to_string(d.numa));
  json.field("memory_bytes", model.memory_bytes);
  json.flag("mig", d.mig);
  json.flag("mig_pending", d.mig_pending);
  json.flag("ecc", d.ecc);
  json.real("power_limit_w", d.power_limit_mw * 1e-3);
  json.real("power_w", r.power_mw * 1e-3);
  json.real("energy_j", static_cast<double>(r.energy_nj) * 1e-9);
  json.field("busy_percent", uint64_t{r.gpu_percent});
  json.field("sm_clock_hz", uint64_t{r.sm_mhz} * 1'000'000);
  json.real("gpu_c", std::round(r.gpu_c * 10) / 10);
  add_instances(json, d);
  add_faults(json, d.faults);
  add_processes(json, store, index, at_ns);
  json.close('}');
}

} // namespace

std::string describe(Store &store) {
  store.reap();
  NodeState state;
  store.read([&](const NodeState &now) { std::memcpy(static_cast<void *>(&state), &now, sizeof state); });
  Json json;
  json.open('{');
  const std::string &path = store.path();
  const size_t slash = path.rfind('/'), dot = path.rfind('.');
  json.field("name", path.empty() ? "" : path.substr(slash + 1, dot - slash - 1));
  json.field("path", path);
  json.field("kind", state.kind);
  json.field("board", uint64_t{state.board});
  json.field("switches_down", uint64_t{state.switches_down});
  json.key("denied");
  json.open('[');
  for (uint32_t i = 0; i < state.denied_count; ++i)
    json.string(state.denied[i]);
  json.close(']');
  json.key("gpus");
  json.open('[');
  for (uint32_t i = 0; i < state.device_count; ++i)
    add_device(json, store, static_cast<int>(i), now_ns());
  json.close(']');
  json.close('}');
  return json.take();
}

} // namespace va::node
