// The one driver release that is emulated.
#pragma once

#include "va100/version.h"

namespace va::nvml {

constexpr char kDriverVersion[] = "580.95.05";
constexpr char kDriverBranch[] = "r580_00";
constexpr char kNvmlVersion[] = "13.580.95.05";
constexpr int kCudaVersion = kNewestCuda; // where VA100_DRIVER_VERSION says nothing

// Read on an A100-SXM4-40GB; the other models' are not known and taken as equal.
constexpr char kVbios[] = "92.00.45.00.03";
constexpr char kPartNumber[] = "692-2G506-0200-003";
constexpr char kInforomImage[] = "G506.0200.00.04";
constexpr char kInforomOem[] = "2.0";
constexpr char kInforomEcc[] = "6.16";

} // namespace va::nvml
