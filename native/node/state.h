// The layout of a node's state: one file, mapped by every process that uses or watches the node.
//
// Three kinds of words live here.  Settled state (NodeState) exists twice: a writer changes the copy
// that is not current and then moves `generation`, so that whoever is killed leaves the old or the
// new and nothing between.  Hot figures (Slot, Board) are single words that their owner stores and
// anybody loads.  Nothing here points anywhere, and all of it starts as zeros.
//
// Who may write: settled state, under the lock of store.h; a slot, the process that holds it.
#pragma once

#include <atomic>
#include <cstdint>

namespace va::node {

constexpr uint64_t kMagic = 0x31454D4F4E303031ULL;
constexpr uint32_t kLayoutVersion = 5; // of this file; a node of another layout is refused

constexpr int kMostDevices = 16;
constexpr int kMostProcesses = 256;
constexpr int kMostInstances = 7; // GPU instances of a GPU, compute instances of a GPU instance
constexpr int kBuckets = 64;
constexpr uint64_t kBucketNs = 25'000'000; // what the power sensor averages over
constexpr int kMostLinks = 12;
constexpr int kMostDenied = 8;
constexpr int kNameBytes = 48;
constexpr int kMostEvents = 64;
constexpr int kMostEnded = 64;
constexpr int kMostStrikes = 16;
constexpr uint32_t kNone = 0xFFFFFFFF; // no GPU instance, no compute instance

// What of a GPU a kernel keeps busy, beside the GPU as a whole.
enum Unit { kMemoryUnit, kTensorUnit, kFp64Unit, kFp32Unit, kFp16Unit, kUnits };

struct Uuid {
  uint8_t bytes[16];
};

struct ComputeInstance {
  uint8_t used;
  uint8_t id;      // as users see it
  uint8_t profile; // place in kComputeProfiles
  uint8_t start;   // compute slice within its GPU instance
  uint8_t slices;
  uint8_t unused[3];
  uint32_t serial; // never used twice on a GPU
  Uuid uuid;
};

struct GpuInstance {
  uint8_t used;
  uint8_t id;      // follows from the placement
  uint8_t profile; // place in the model's profiles
  uint8_t start;   // memory slice
  uint8_t size;
  uint8_t unused[3];
  uint32_t serial;
  ComputeInstance compute[kMostInstances];
};

// Counts of errors by where they happened.
struct EccCounts {
  uint64_t sram_corrected, sram_uncorrected, dram_corrected, dram_uncorrected;
};

// What an operator broke on purpose, or what broke with it.
struct Faults {
  uint32_t last_xid;
  uint8_t lost;        // fell off the bus
  uint8_t thermal;     // hardware slows down for heat
  uint8_t power_brake; // an external signal asks for less power
  uint8_t needs_reset;
  uint8_t remap_pending, remap_failed;
  uint8_t unused[2];
  uint32_t remapped_corrected, remapped_uncorrected;
  uint32_t links_down; // a bit a link
  uint32_t pcie_replays;
  EccCounts ecc_volatile, ecc_aggregate;
};

// A fault that ends contexts, those there are when it happens.
struct Strike {
  uint32_t code;         // CUresult that their calls return from then on
  uint32_t gpu_instance; // kNone: whichever they are on
  uint32_t pid;          // 0: whoever they belong to
};

// A process that is gone, for the accounting queries.
struct EndedProcess {
  uint32_t pid;
  uint32_t utilization_percent;
  uint64_t peak_bytes;
  uint64_t busy_ns, lived_ns;
  uint64_t started_us; // since 1970
};

struct DeviceState {
  // What it is.
  uint32_t model; // place in kNodeModels
  uint32_t minor;
  uint32_t domain, bus, slot;
  int32_t numa;
  Uuid uuid;
  char serial[16];

  // What it is set to.
  uint32_t power_limit_mw;
  uint32_t clock_low_mhz, clock_high_mhz; // locked graphics clocks; 0: not locked
  uint32_t application_clock_mhz;         // 0: default
  uint8_t compute_mode;
  uint8_t persistence;
  uint8_t ecc, ecc_pending;
  uint8_t mig, mig_pending;
  uint8_t accounting;
  uint8_t unused;

  uint32_t next_serial;
  uint32_t resets; // how often it was reset: what held it before holds no more
  GpuInstance instances[kMostInstances];
  Faults faults;
  uint64_t strike_count; // ever; the last ones are kept
  Strike strikes[kMostStrikes];

  // What went before: folded in when processes end.
  uint64_t energy_nj;
  uint64_t busy_ns;
  uint64_t link_tx_bytes[kMostLinks], link_rx_bytes[kMostLinks];
  uint64_t pcie_tx_bytes, pcie_rx_bytes;

  // Temperature at a moment, from which it relaxes towards what the power asks for.
  double gpu_c;
  uint64_t gpu_c_at_ns;
  uint64_t gpu_c_energy_nj; // of the board at that moment

  uint64_t ended_count;
  EndedProcess ended[kMostEnded];
};

struct Event {
  uint32_t device;
  uint32_t xid;
  uint64_t type; // a bit of nvmlEventType
  uint64_t at_ns;
  uint32_t gpu_instance, compute_instance;
};

struct NodeState {
  char kind[kNameBytes];
  uint32_t device_count;
  uint32_t board; // Board kind of topology.h
  uint32_t switches_down; // a bit an NVSwitch
  uint32_t denied_count;
  char denied[kMostDenied][kNameBytes]; // NVML functions that need more rights than anybody has
  uint64_t boot_ns;                     // on the monotonic clock: when the node came up
  char boot_id[40];
  uint64_t event_count; // ever; the last ones are kept
  Event events[kMostEvents];
  uint64_t folded[kMostProcesses]; // the incarnation of each slot that was last folded in
  DeviceState devices[kMostDevices];
};

// Work of one bucket's time.  `head` holds the bucket's number, 32 bits, and busy nanoseconds.
struct Bucket {
  std::atomic<uint64_t> head;
  std::atomic<uint64_t> energy_nj;
  std::atomic<uint64_t> pcie_bytes; // to the device, 32 bits of KiB; from it
  std::atomic<uint64_t> unit_ns[kUnits]; // of which each unit was busy
};

// What a process does on one GPU.
struct alignas(64) DeviceUse {
  std::atomic<uint32_t> turn; // odd while an interval is being closed
  std::atomic<uint32_t> contexts;
  std::atomic<uint32_t> gpu_instance, compute_instance; // valid while there is a context
  std::atomic<uint32_t> resets;                         // of the device, when this began
  std::atomic<uint64_t> arena_bytes;
  std::atomic<uint64_t> peak_bytes;
  std::atomic<uint64_t> active_since_ns; // 0: nothing runs
  std::atomic<uint32_t> active_mw;       // above idle, while something runs
  std::atomic<uint32_t> active_permille[kUnits];
  std::atomic<uint32_t> active_mhz;
  std::atomic<uint64_t> seen_ns; // when somebody last saw that something runs
  std::atomic<uint64_t> busy_ns; // of what is over
  std::atomic<uint64_t> energy_nj;
  std::atomic<uint64_t> launches;
  std::atomic<uint64_t> virtual_ns; // what the chip would have taken
  std::atomic<uint64_t> pcie_tx_bytes, pcie_rx_bytes;
  std::atomic<uint64_t> link_tx_bytes[kMostLinks], link_rx_bytes[kMostLinks];
  std::atomic<uint64_t> last_active_ns;
  Bucket buckets[kBuckets];
};

// A process that uses the node.  It is alive while the kernel says that somebody holds the lock on
// the slot's byte of the file beside the state.
struct alignas(64) Slot {
  std::atomic<uint32_t> pid; // 0: free
  std::atomic<uint64_t> incarnation;
  std::atomic<uint64_t> started_ns;
  uint64_t started_us; // since 1970
  char name[96];
  DeviceUse devices[kMostDevices];
};

// Of a GPU, whoever uses it: since when its clocks are up, and until when if no work comes.
struct alignas(64) Board {
  std::atomic<uint32_t> turn; // odd while a new time begins
  std::atomic<uint64_t> held_since_ns, held_until_ns;
  std::atomic<uint64_t> held_before_ns; // all times before this one, together
};

struct File {
  uint64_t magic;
  uint32_t version;
  uint32_t bytes; // sizeof(File): a second check of the layout
  std::atomic<uint64_t> generation;
  std::atomic<uint64_t> next_incarnation;
  std::atomic<uint32_t> most_slots; // slots at and above were never used
  std::atomic<uint32_t> deleted;
  NodeState copies[2];
  Board boards[kMostDevices];
  Slot slots[kMostProcesses];
};

static_assert(std::atomic<uint64_t>::is_always_lock_free, "words are shared between processes");

} // namespace va::node
