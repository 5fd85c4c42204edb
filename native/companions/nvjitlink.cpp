// An nvJitLink without its functions, opened ahead of NVIDIA's under the same name.
//
// NVIDIA's makes machine code, which va100 cannot run.  Clients that find no functions in it let
// the driver link PTX instead: cuda.core's Linker, and numba-cuda through it.
extern "C" {
__attribute__((visibility("default"))) int va100_nvjitlink_links_nothing = 1;
}
