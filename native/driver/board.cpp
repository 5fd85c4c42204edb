#include "board.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <unistd.h>

#include "activity.h"
#include "choose.h"
#include "clock.h"
#include "fabric.h"
#include "identity.h"
#include "mig.h"
#include "models.h"
#include "place.h"
#include "settings.h"
#include "telemetry.h"
#include "thermal.h"
#include "va100/arena.h"
#include "va100/meter.h"
#include "visible.h"

namespace va {
namespace {

constexpr auto kDeviceUnavailable = static_cast<CUresult>(46);

// What limits leave of a grid's power; launches mostly repeat it.
struct Limited {
  std::mutex mutex;
  uint64_t generation = UINT64_MAX; // of the node's settled state that it was worked out from
  uint32_t asked_mw = 0, mw = 0, mhz = 0;
};

struct SeatOfDevice {
  Place place;
  uint32_t chip_sms = 1;
  std::unique_ptr<Limited> limited;
  std::unique_ptr<node::Meter> meter;
  std::unique_ptr<DeviceModel> own_model; // of a slice
  uint64_t strikes_seen = 0;              // of the GPU's, by this process
};

// Contexts of a device with lower numbers than this met a fault.
struct Struck {
  int device;
  uint64_t below_id;
  CUresult code;
};

struct StruckList {
  std::mutex mutex;
  std::atomic<uint64_t> generation{UINT64_MAX}; // of the node's state that was looked at
  std::atomic<bool> any{false};
  std::vector<Struck> all;
};

StruckList &struck_list() {
  static StruckList *const instance = new StruckList;
  return *instance;
}

struct Board {
  std::unique_ptr<node::Store> store;
  node::Slot *slot = nullptr;
  std::vector<SeatOfDevice> seats;
};

Board &board() {
  static Board *const instance = new Board;
  return *instance;
}

const DeviceModel *model_of(const node::DeviceState &state) {
  const char *const key = node::kNodeModels[state.model].key;
  for (size_t i = 0; i < kDeviceModelCount; ++i)
    if (!std::strcmp(kDeviceModels[i].key, key))
      return &kDeviceModels[i];
  return settings().model;
}

Card card_of(const node::DeviceState &state) {
  Card card;
  card.uuid = node::uuid_text("GPU-", state.uuid);
  card.mig = state.mig;
  card.lost = state.faults.lost;
  for (const node::GpuInstance &gi : state.instances)
    for (const node::ComputeInstance &ci : gi.compute)
      if (gi.used && ci.used && !card.lost)
        card.slices.push_back(Slice{node::uuid_text("MIG-", ci.uuid), gi.id, ci.id});
  std::sort(card.slices.begin(), card.slices.end(), [](const Slice &a, const Slice &b) {
    return std::make_pair(a.gpu_instance, a.compute_instance) <
           std::make_pair(b.gpu_instance, b.compute_instance);
  });
  return card;
}

std::string program_path() {
  char text[sizeof(node::Slot::name)] = {};
  const ssize_t got = readlink("/proc/self/exe", text, sizeof text - 1);
  return got > 0 ? text : "";
}

node::DeviceUse *use_of(int device) {
  Board &b = board();
  const bool known = device >= 0 && static_cast<size_t>(device) < b.seats.size();
  return known && b.seats[static_cast<size_t>(device)].meter
             ? &b.seats[static_cast<size_t>(device)].meter->use()
             : nullptr;
}

int place_of(int device) {
  return static_cast<int>(board().seats[static_cast<size_t>(device)].place.seat);
}

void tell_used(int device, uint64_t bytes) {
  node::DeviceUse *const use = use_of(device);
  if (!use)
    return;
  use->arena_bytes.store(bytes, std::memory_order_relaxed);
  if (bytes > use->peak_bytes.load(std::memory_order_relaxed))
    use->peak_bytes.store(bytes, std::memory_order_relaxed);
}

// The node of VA100_NODE, or the plain one that settings describe.
std::unique_ptr<node::Store> open_node() {
  const std::string name = node::chosen_node();
  if (name.empty())
    return node::open_plain(settings().model->key, settings().device_count);
  node::Refusal refusal;
  auto store = node::open_named(name, &refusal);
  if (!store)
    say("%s", refusal.text.c_str());
  return store;
}

void set_attribute(Device &device, int number, int value) {
  device.attributes[static_cast<size_t>(number)] = value;
  device.has_attribute[static_cast<size_t>(number)] = true;
}

// What depends on where the card sits rather than on the card.
void set_place(Device &device, const node::DeviceState &state) {
  static const int kBus = 33, kSlot = 34, kDomain = 50, kBoardGroup = 85;
  static const int kComputeMode = 20, kNuma = 131, kMps = 133, kHostNuma = 134;
  set_attribute(device, kBus, static_cast<int>(state.bus));
  set_attribute(device, kSlot, static_cast<int>(state.slot));
  set_attribute(device, kDomain, static_cast<int>(state.domain));
  set_attribute(device, kBoardGroup, static_cast<int>(state.minor));
  set_attribute(device, kComputeMode, state.compute_mode);
  set_attribute(device, kNuma, -1);
  set_attribute(device, kMps, 0);
  set_attribute(device, kHostNuma, std::max(0, state.numa));
  char text[32];
  snprintf(text, sizeof text, "%04X:%02X:%02X.0", state.domain, state.bus, state.slot);
  device.bus_id = text;
  std::memcpy(device.uuid.bytes, state.uuid.bytes, sizeof device.uuid.bytes);
}

// A slice has its share of the card, and clocks like the card's.
void set_slice(Device &device, SeatOfDevice &seat, const node::DeviceState &state) {
  static const int kSms = 16, kBusBits = 37, kL2 = 38, kCopyEngines = 40, kPersisting = 108,
                   kWindow = 109;
  const node::GpuInstance *gi = nullptr;
  const node::ComputeInstance *ci = nullptr;
  for (const node::GpuInstance &g : state.instances)
    for (const node::ComputeInstance &c : g.compute)
      if (g.used && c.used && g.id == seat.place.gpu_instance &&
          c.id == seat.place.compute_instance) {
        gi = &g;
        ci = &c;
      }
  if (!gi)
    return;
  const node::Share share = node::share_of(state, *gi, *ci);
  set_attribute(device, kSms, static_cast<int>(share.sms));
  set_attribute(device, kBusBits, static_cast<int>(share.bus_bits));
  set_attribute(device, kL2, static_cast<int>(share.l2_bytes));
  set_attribute(device, kCopyEngines, static_cast<int>(share.copy_engines));
  set_attribute(device, kPersisting, 0);
  set_attribute(device, kWindow, 0);
  std::memcpy(device.uuid.bytes, ci->uuid.bytes, sizeof device.uuid.bytes);
  const node::MigProfile &profile = node::kNodeModels[state.model].profiles[gi->profile];
  const std::string level =
      ci->slices == profile.compute_slices ? "" : std::to_string(ci->slices) + "c.";
  auto *const name = new std::string(std::string(device.model->name) + " MIG " + level + profile.name);
  seat.own_model = std::make_unique<DeviceModel>(*device.model);
  const double part = static_cast<double>(share.memory_slices) / node::kMemorySlices;
  seat.own_model->name = name->c_str(); // lives as long as the driver, which is never taken down
  seat.own_model->memory_bytes = share.memory_bytes;
  seat.own_model->copy_bytes_per_s *= part;
  seat.own_model->fill_bytes_per_s *= part;
  device.model = seat.own_model.get();
}

uint32_t within_limits(SeatOfDevice &seat, uint32_t asked_mw, uint32_t *mhz) {
  Limited &last = *seat.limited;
  const std::lock_guard<std::mutex> lock(last.mutex);
  const uint64_t generation = board().store->generation();
  if (last.generation != generation || last.asked_mw != asked_mw) {
    const node::DeviceState state = board().store->device(static_cast<int>(seat.place.seat));
    last.mw = node::limited_mw(state, asked_mw, &last.mhz);
    last.asked_mw = asked_mw;
    last.generation = generation;
  }
  *mhz = last.mhz;
  return last.mw;
}

bool is_alone_on(const Place &place) {
  const node::File &file = board().store->file();
  for (uint32_t i = 0; i < file.most_slots.load(); ++i)
    if (file.slots[i].pid.load() && &file.slots[i] != board().slot &&
        file.slots[i].devices[place.seat].contexts.load())
      return false;
  return true;
}

bool meets(const node::Strike &strike, const Place &place) {
  const bool whole = strike.gpu_instance == node::kNone;
  return (whole || strike.gpu_instance == place.gpu_instance) &&
         (!strike.pid || strike.pid == static_cast<uint32_t>(getpid()));
}

// Take note of faults that came since this was looked at last: all contexts there are met them.
void look_for_strikes(uint64_t generation) {
  StruckList &list = struck_list();
  Board &b = board();
  const std::lock_guard<std::mutex> lock(list.mutex);
  for (size_t i = 0; i < b.seats.size(); ++i) {
    SeatOfDevice &seat = b.seats[i];
    const node::DeviceState state = b.store->device(static_cast<int>(seat.place.seat));
    const uint64_t kept = std::min<uint64_t>(state.strike_count - seat.strikes_seen, node::kMostStrikes);
    for (uint64_t at = state.strike_count - kept; at < state.strike_count; ++at) {
      const node::Strike &strike = state.strikes[at % node::kMostStrikes];
      if (!meets(strike, seat.place))
        continue;
      list.all.push_back(Struck{static_cast<int>(i), driver().next_id.load(), static_cast<CUresult>(strike.code)});
      list.any.store(true);
    }
    seat.strikes_seen = state.strike_count;
  }
  list.generation.store(generation);
}

} // namespace

CUresult struck(const Context &context) {
  const Board &b = board();
  if (!b.store)
    return CUDA_SUCCESS;
  StruckList &list = struck_list();
  const uint64_t generation = b.store->generation();
  if (generation != list.generation.load(std::memory_order_relaxed))
    look_for_strikes(generation);
  if (!list.any.load(std::memory_order_relaxed))
    return CUDA_SUCCESS;
  const std::lock_guard<std::mutex> lock(list.mutex);
  for (const Struck &one : list.all) // the first one sticks
    if (one.device == context.device->ordinal && context.id < one.below_id)
      return one.code;
  return CUDA_SUCCESS;
}

int open_board() {
  Board &b = board();
  b.store = open_node();
  if (!b.store)
    return 0;
  std::vector<Card> cards;
  uint32_t count = 0;
  b.store->read([&](const node::NodeState &state) { count = state.device_count; });
  for (uint32_t i = 0; i < count; ++i)
    cards.push_back(card_of(b.store->device(static_cast<int>(i))));
  const Settings &s = settings();
  const std::vector<Place> places =
      s.some_visible ? visible_places(s.visible, cards) : all_places(cards);
  if (places.empty())
    return 0;
  b.store->reap();
  b.slot = b.store->claim(program_path().c_str());
  if (!b.slot)
    note("the node keeps no more processes; NVML will not list this one");
  for (const Place &place : places) {
    SeatOfDevice seat{place, 1, std::make_unique<Limited>(), nullptr, nullptr,
                      b.store->device(static_cast<int>(place.seat)).strike_count};
    if (b.slot)
      seat.meter = std::make_unique<node::Meter>(b.store.get(), b.slot, static_cast<int>(place.seat));
    b.seats.push_back(std::move(seat));
  }
  static const va_arena_watcher watcher{tell_used, held_elsewhere};
  va_arena_watch(&watcher);
  return static_cast<int>(places.size());
}

void seat_device(Device &device) {
  SeatOfDevice &seat = board().seats[static_cast<size_t>(device.ordinal)];
  const node::DeviceState state = board().store->device(static_cast<int>(seat.place.seat));
  device.model = model_of(state);
  seat.chip_sms = node::kNodeModels[state.model].sms;
  for (size_t i = 0; i < device.model->attribute_count; ++i)
    set_attribute(device, device.model->attributes[i].number, device.model->attributes[i].value);
  set_place(device, state);
  if (seat.place.gpu_instance != kNoInstance)
    set_slice(device, seat, state);
}

void enter_context(const Device &device) {
  enum { kProhibited = 2, kExclusiveProcess = 3 };
  const SeatOfDevice &seat = board().seats[static_cast<size_t>(device.ordinal)];
  node::DeviceUse *const use = use_of(device.ordinal);
  const node::DeviceState state = board().store->device(static_cast<int>(seat.place.seat));
  if (state.faults.lost || state.faults.needs_reset)
    fail(kDeviceUnavailable);
  look_for_strikes(board().store->generation()); // what was before does not meet the new context
  const int mode = state.compute_mode;
  if (mode == kExclusiveProcess)
    board().store->reap();
  if (mode == kProhibited || (mode == kExclusiveProcess && !is_alone_on(seat.place)))
    fail(kDeviceUnavailable);
  if (!use)
    return;
  use->gpu_instance.store(seat.place.gpu_instance);
  use->compute_instance.store(seat.place.compute_instance);
  use->contexts.fetch_add(1);
}

void leave_context(const Device &device) {
  node::DeviceUse *const use = use_of(device.ordinal);
  if (use && use->contexts.fetch_sub(1) == 1)
    node::release_clocks(board().store->file(), node::now_ns());
}

uint64_t held_elsewhere(int device) {
  const Board &b = board();
  if (!b.store || !b.store->chosen() || static_cast<size_t>(device) >= b.seats.size())
    return 0; // without a node of its choice, each process has its cards to itself
  const Place &place = b.seats[static_cast<size_t>(device)].place;
  const node::File &file = b.store->file();
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < file.most_slots.load(std::memory_order_acquire); ++i) {
    const node::Slot &slot = file.slots[i];
    const node::DeviceUse &use = slot.devices[place.seat];
    if (&slot == b.slot || !slot.pid.load() || !use.contexts.load())
      continue;
    if (use.gpu_instance.load() == place.gpu_instance && b.store->is_alive(static_cast<int>(i)))
      bytes += node::used_bytes(use);
  }
  return bytes;
}

namespace {

// What a grid is taken to do until launches like it were priced: the share of full power that its SMs
// are of the chip's, and of its SMs what keeps their pipes full, which sixteen warps do.  Memory is
// busy for as long as moving what the grid can reach takes, beside what else it does.
va_activity guessed_activity(const SeatOfDevice &seat, const Device &device, const GridShape &grid) {
  constexpr uint32_t kWarpsToFill = 16;
  constexpr double kOverheadSeconds = 4e-6;
  static const int kSms = 16;
  const auto sms = static_cast<uint32_t>(device.attribute(kSms));
  const double busy = static_cast<double>(std::min<uint64_t>(grid.ctas, sms)) / seat.chip_sms;
  const double full = std::min(1.0, static_cast<double>(grid.warps_per_sm) / kWarpsToFill);
  const double moving = static_cast<double>(grid.footprint_bytes) / device.model->copy_bytes_per_s;
  va_activity guess{};
  guess.power_mw = node::kClocksUpMw + static_cast<uint32_t>(node::kFullChipMw * busy * full);
  guess.permille[node::kMemoryUnit] = static_cast<uint32_t>(1000 * moving / (moving + kOverheadSeconds));
  return guess;
}

} // namespace

RunningGrid::RunningGrid(const Device &device, const GridShape &grid) : device_(device.ordinal) {
  SeatOfDevice &seat = board().seats[static_cast<size_t>(device_)];
  if (!seat.meter)
    return;
  va_activity does{};
  known_ = known_activity(grid.variant_id, grid.ctas, &does);
  if (!known_)
    does = guessed_activity(seat, device, grid);
  node::Activity activity;
  const uint32_t above = does.power_mw > node::kClocksUpMw ? does.power_mw - node::kClocksUpMw : 1;
  activity.mw = within_limits(seat, std::max(1u, above), &activity.mhz);
  std::copy_n(does.permille, node::kUnits, activity.permille);
  seat.meter->use().launches.fetch_add(1, std::memory_order_relaxed);
  began_ns_ = node::now_ns();
  seat.meter->begin(began_ns_, activity);
}

RunningGrid::~RunningGrid() {
  SeatOfDevice &seat = board().seats[static_cast<size_t>(device_)];
  if (!seat.meter)
    return;
  const uint64_t now = node::now_ns();
  seat.meter->end(now);
  if (!known_ && board().store->chosen())
    ran_unknown(now - began_ns_);
}

Crowding crowding_of(int device) {
  constexpr double kOthers = node::kComputeSlices - 1;
  const node::DeviceUse *const mine = use_of(device);
  if (!mine || mine->gpu_instance.load() == node::kNone)
    return {};
  const SeatOfDevice &seat = board().seats[static_cast<size_t>(device)];
  const node::Store &store = *board().store;
  const node::DeviceState state = store.device(static_cast<int>(seat.place.seat));
  uint32_t slices = 0, mw = mine->active_mw.load();
  const node::File &file = store.file();
  for (uint32_t i = 0; i < file.most_slots.load(std::memory_order_acquire); ++i) {
    const node::DeviceUse &use = file.slots[i].devices[seat.place.seat];
    const uint32_t instance = use.gpu_instance.load();
    if (!file.slots[i].pid.load() || !use.contexts.load() || !use.active_since_ns.load() ||
        instance == seat.place.gpu_instance || !store.is_alive(static_cast<int>(i)))
      continue;
    for (const node::GpuInstance &gi : state.instances)
      if (gi.used && gi.id == instance)
        slices += node::kNodeModels[state.model].profiles[gi.profile].compute_slices;
    mw += use.active_mw.load();
  }
  if (!slices)
    return {};
  // All draw on one power limit, and one clock is for all.
  uint32_t alone_mhz = 0, together_mhz = 0;
  node::limited_mw(state, mine->active_mw.load(), &alone_mhz);
  node::limited_mw(state, mw, &together_mhz);
  const double share = std::min(1.0, slices / kOthers);
  return {(1 + node::kSharingComputeRatio * share) * alone_mhz / std::max(together_mhz, 1u),
          1 + node::kSharingMemoryRatio * share};
}

void priced(int device, double seconds) {
  if (node::DeviceUse *const use = use_of(device))
    use->virtual_ns.fetch_add(static_cast<uint64_t>(seconds * 1e9), std::memory_order_relaxed);
}

void copied_over_pcie(int device, uint64_t to_device_bytes, uint64_t from_device_bytes) {
  if (use_of(device))
    board().seats[static_cast<size_t>(device)].meter->copied(node::now_ns(), to_device_bytes, from_device_bytes);
}

bool read_links(NodeLinks *out, uint64_t *generation) {
  const Board &b = board();
  if (!b.store)
    return false;
  const uint64_t now = b.store->generation();
  if (now == *generation)
    return true;
  *generation = now;
  b.store->read([&](const node::NodeState &state) { *out = node::joined_of(state); });
  return true;
}

void sent_over_links(int from, int to, uint64_t bytes) {
  node::DeviceUse *const sender = use_of(from), *const receiver = use_of(to);
  if (!sender || !receiver)
    return;
  const auto add = [bytes](std::atomic<uint64_t> *counters, uint32_t links) {
    const auto count = static_cast<uint64_t>(__builtin_popcount(links));
    for (int link = 0; link < node::kMostLinks; ++link)
      if (links >> link & 1)
        counters[link].fetch_add(bytes / count);
  };
  const int here = place_of(from), there = place_of(to);
  const uint32_t out = links_between(here, there);
  if (!out) { // over PCIe, then
    copied_over_pcie(from, 0, bytes);
    copied_over_pcie(to, bytes, 0);
    return;
  }
  add(sender->link_tx_bytes, out);
  add(receiver->link_rx_bytes, links_between(there, here));
}

} // namespace va
