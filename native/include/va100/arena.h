/* Device memory of every virtual GPU: one reserved range, device address = host address.
 *
 * Layout: VA_ARENA_BASE, VA_DEVICE_BYTES a device, VA_DEVICES devices, then one region of the
 * same size for host memory that kernels may touch.  Every 256-byte granule has a shadow byte:
 * zero when no live allocation owns it.  Addresses are constants so that compiled kernels may
 * embed them.  Thread safe.  No exceptions cross. */
#ifndef VA100_ARENA_H
#define VA100_ARENA_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#define VA_EXPORT __attribute__((visibility("default")))
#define VA_DEVICES 16
#define VA_DEVICE_SHIFT 37
#define VA_DEVICE_BYTES (1ULL << VA_DEVICE_SHIFT)
#define VA_ARENA_SHIFT 42
#define VA_ARENA_BYTES (1ULL << VA_ARENA_SHIFT)
#define VA_ARENA_BASE 0x200000000000ULL
#define VA_GRANULE_SHIFT 8
#define VA_GRANULE (1U << VA_GRANULE_SHIFT)
#define VA_SHADOW_BASE 0x2A0000000000ULL /* shadow of VA_ARENA_BASE */
#define VA_HOST_DEVICE VA_DEVICES        /* the "device" index of kernel-visible host memory */
#define VA_WINDOW_DEVICE (VA_DEVICES + 1) /* shared windows, local memory, parameter blocks */

typedef struct va_allocation {
  uint64_t base;
  uint64_t bytes; /* as asked for */
  int32_t device;
  uint32_t serial;
} va_allocation;

/* Reserve the ranges. Called by every other function; returns 0, or an errno value. */
VA_EXPORT int va_arena_open(void);
/* Capacity of a device in bytes (allocations beyond it fail); set before the first allocation. */
VA_EXPORT void va_arena_set_capacity(int device, uint64_t bytes);
VA_EXPORT uint64_t va_arena_capacity(int device);
VA_EXPORT uint64_t va_arena_used(int device);
/* Allocate; the result is a multiple of max(align, 256) and reads as zero the first time its
 * pages are touched only.  Returns 0 when the device is full. */
VA_EXPORT uint64_t va_arena_alloc(int device, uint64_t bytes, uint64_t align);
/* Free by base address; returns 0, or -1 when it is no live base. */
VA_EXPORT int va_arena_free(uint64_t base);
/* The live allocation that holds an address: 1 and *out, or 0. */
VA_EXPORT int va_arena_find(uint64_t address, va_allocation *out);
/* The granules that belong together around an address: a live allocation with its padding, or
 * registered host memory. 1 and its base and size, or 0. */
VA_EXPORT int va_arena_range(uint64_t address, uint64_t *base, uint64_t *bytes);
/* The live allocation nearest to an address (any device): 1 and *out, or 0 when none lives. */
VA_EXPORT int va_arena_nearest(uint64_t address, va_allocation *out);
/* Host memory outside the arena that kernels may touch (cuMemHostRegister). */
VA_EXPORT int va_arena_register_host(uint64_t base, uint64_t bytes);
VA_EXPORT int va_arena_unregister_host(uint64_t base);
/* 1 when [address, address+bytes) may be accessed by a kernel. */
VA_EXPORT int va_arena_accessible(uint64_t address, uint64_t bytes);
/* Free everything on every device and forget registered host memory. */
VA_EXPORT void va_arena_reset(void);

#ifdef __cplusplus
}
#endif
#endif
