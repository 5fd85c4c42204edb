/* A C program that does wrong with the driver alone: it loads no module, so nothing but the checker
 * brings the compiler in.  Its argument says what is wrong; its status is 0 when the driver was
 * there at all. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct context_object *context;

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(context *out, int device);
int cuCtxSetCurrent(context c);
int cuMemAlloc_v2(uint64_t *address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t count);

int main(int count, char **words) {
  const char *const fault = count > 1 ? words[1] : "none";
  context c;
  uint64_t data;
  char host[64];
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&c, 0) || cuCtxSetCurrent(c) ||
      cuMemAlloc_v2(&data, sizeof host))
    return 1;
  if (strcmp(fault, "undefined-copy")) cuMemsetD8_v2(data, 7, sizeof host);
  cuMemcpyDtoH_v2(host, data, sizeof host + !strcmp(fault, "bad-range"));
  if (!strcmp(fault, "invalid-free")) cuMemFree_v2(data + 16);
  if (strcmp(fault, "leak")) cuMemFree_v2(data);
  if (!strcmp(fault, "double-free")) cuMemFree_v2(data);
  return 0;
}
