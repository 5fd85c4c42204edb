// A library of NVML's name that comes up and has nothing to say.  XLA counts no GPU where there is
// none; what it asks beyond that it goes without.
#define VA_STAND_IN extern "C" __attribute__((visibility("default")))

VA_STAND_IN int nvmlInit() { return 0; }

VA_STAND_IN int nvmlInit_v2() { return 0; }

VA_STAND_IN int nvmlShutdown() { return 0; }

VA_STAND_IN const char *nvmlErrorString(int) { return "there is no NVML in va100"; }
