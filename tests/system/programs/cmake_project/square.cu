// A device function that another file calls.
__device__ int square(int x) { return x * x; }
