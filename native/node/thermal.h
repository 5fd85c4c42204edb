// How warm a card gets from the power it takes, and what its clocks cost: the constants, each with
// where it is from.  They are for every model: only the 40 GB PCIe card was measured.
#pragma once

#include "models.h"
#include "power_facts.h"

namespace va::node {

// A card at its idle power settles here (nvidia-smi of an idle A100-SXM4-40GB).
constexpr double kIdleC = 33.0;
// Rise per watt above idle, the memory a degree above the chip: least squares through the plateaus of
// public power traces, 37 C at 59 W and 53 C at 146 W.
constexpr double kDegreesPerWatt = 0.184;
constexpr double kMemoryAboveC = 1.0;
// Assumed: the traces' first half minute from 38 C to 46 C at 189 W, 57 C asked for in the end.
constexpr double kRelaxSeconds = 50.0;

inline double idle_temperature_c(const NodeModel &) { return kIdleC; }

// What clocks that are up cost without work: 58 W read between bursts, idle 49.7 W.
constexpr uint32_t kClocksUpMw = 8'300;
// What a grid that fills the chip with fused multiply-adds adds to that: 189.4 W read.
constexpr uint32_t kFullChipMw = 131'400;
// How long clocks stay up after work.  Assumed; cards differ.
constexpr uint64_t kClocksStayNs = 2'000'000'000;

// Share of dynamic power at a share of the highest clock: work slows with the clock, and each piece
// of it takes the square of the voltage.  As power_w of perf/energy.py, where the constants are fitted.
inline double power_share(double clock_share) {
  using namespace facts;
  const double reach = clock_share > kFlatRatio ? (clock_share - kFlatRatio) / (1 - kFlatRatio) : 0;
  const double full = 1 + kVoltageLinear + kVoltageSquare;
  return clock_share * (1 + kVoltageLinear * reach + kVoltageSquare * reach * reach) / full;
}

} // namespace va::node
