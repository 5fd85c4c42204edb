// The newest CUDA whose driver calls are here.  The driver release that is emulated came with 13.0;
// this is what it says with NVIDIA's forward-compatibility package for data-centre cards, which
// clients of newer toolkits need.  libcuda, libcudart 13, NVML and nvidia-smi all say it, or all
// what VA100_DRIVER_VERSION says.
#pragma once

namespace va {

constexpr int kNewestCuda = 13050;

} // namespace va
