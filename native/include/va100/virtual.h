/* Addresses that clients lay out themselves: ranges reserved behind the arena's regions, onto which
 * pieces of files are mapped.  A granule of a mapped range is a kernel's to touch once it is open.
 * Sizes and addresses of ranges are multiples of VA_VIRTUAL_UNIT, unless said otherwise.
 * Thread safe.  No exceptions cross. */
#ifndef VA100_VIRTUAL_H
#define VA100_VIRTUAL_H
#include "va100/arena.h"
#ifdef __cplusplus
extern "C" {
#endif

#define VA_VIRTUAL_UNIT (2ULL << 20)
#define VA_VIRTUAL_BASE (VA_ARENA_BASE + (uint64_t)(VA_DEVICES + 2) * VA_DEVICE_BYTES)
#define VA_VIRTUAL_END (VA_ARENA_BASE + VA_ARENA_BYTES)

/* Reserve addresses; at `wanted` when it is free, anywhere when it is not or is 0.  0: none left. */
VA_EXPORT uint64_t va_virtual_reserve(uint64_t bytes, uint64_t align, uint64_t wanted);
/* Give a whole reservation back; -1 when it is none, or when something is mapped there. */
VA_EXPORT int va_virtual_release(uint64_t base, uint64_t bytes);
/* The reservation that holds an address: 1, its base and size; or 0. */
VA_EXPORT int va_virtual_reserved(uint64_t address, uint64_t *base, uint64_t *bytes);
/* Map a piece of a file; all multiples of 4 KiB.  0, or -1 outside reservations or where something
 * is mapped already, or an errno value. */
VA_EXPORT int va_virtual_map(uint64_t address, uint64_t bytes, int fd, uint64_t offset);
/* Undo exactly what va_virtual_map did, or several such next to each other; closes, too. */
VA_EXPORT int va_virtual_unmap(uint64_t address, uint64_t bytes);
/* Let kernels of `device` and its peers touch these bytes, which are mapped; or no longer. */
VA_EXPORT int va_virtual_open(uint64_t address, uint64_t bytes, int device);
VA_EXPORT int va_virtual_close(uint64_t address, uint64_t bytes);

/* Memory of a device that lies in no region of the arena counts all the same: 0, or -1 when the
 * device is full. */
VA_EXPORT int va_arena_charge(int device, uint64_t bytes);
VA_EXPORT void va_arena_discharge(int device, uint64_t bytes);
/* Keep an allocation from now on in a file that other processes can map: the whole pages it touches,
 * its neighbours' bytes on them included.  *fd is the file, which is the arena's and holds a whole
 * device; *offset is the allocation's place in it.  0, -1 when the address is no allocation's base,
 * or an errno value.  Kernels may run meanwhile; those that write there wait. */
VA_EXPORT int va_arena_share(uint64_t address, int *fd, uint64_t *offset);

#ifdef __cplusplus
}
#endif
#endif
