/* Work of other libraries of ours in a stream's order: collectives.
 *
 * The driver runs work in the calling thread, so a stream is idle when a call returns.  Work that
 * waits for other threads is told of by holding the stream: whoever uses the stream next first
 * calls the holder back, which returns when the work is done.  Nothing here moves data. */
#ifndef VA100_OUTSIDE_H
#define VA100_OUTSIDE_H
#include <stddef.h>
#include <stdint.h>

#include "va100/arena.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct va_outside_place {
  void *stream; /* the driver's own, not a handle */
  int device;   /* as this process numbers it */
  int capturing;
} va_outside_place;

/* Where work goes that is asked for on a stream's handle; does not wait for what holds the stream.
 * Returns a CUresult. */
VA_EXPORT int va_outside_stream(void *handle, va_outside_place *out);
/* The same inside a function that a stream or graph has called, whichever handle it was given;
 * stream is null outside of one. */
VA_EXPORT va_outside_place va_outside_running(void);
/* Functions that hold streams themselves and so need not wait for what holds them: this one. */
VA_EXPORT void va_outside_trust(void (*call)(void *));

typedef void (*va_outside_settle)(void *ticket);
/* Until the ticket is done, users of the stream call settle first. */
VA_EXPORT void va_outside_hold(void *stream, va_outside_settle settle, void *ticket);
/* When a stream's work so far is over, in its process's virtual time. */
VA_EXPORT double va_outside_ready(void *stream);
/* Tickets that were done together: the streams meet, not before a moment that others named, each is
 * busy for so long from there on, and nothing holds them any more.  `sent` are the bytes out of
 * each one's device. */
VA_EXPORT void va_outside_done(void *const *tickets, const uint64_t *sent, size_t count,
                               double not_before_s, double seconds);
/* Work that came to nothing: the streams are let go and no time passes. */
VA_EXPORT void va_outside_drop(void *const *tickets, size_t count);

/* NVLinks between two GPUs of the node, by place in it; 0: PCIe alone. */
VA_EXPORT int va_fabric_links(int gpu, int peer);
/* NVLinks of a GPU that work. */
VA_EXPORT int va_fabric_gpu_links(int gpu);
/* Whether cards meet under bridges, with no switch between them. */
VA_EXPORT int va_fabric_bridged(void);
/* PCIe generation of the node's hosts. */
VA_EXPORT int va_fabric_pcie_generation(void);
/* Place in the node of a device as this process numbers it; -1: there is no such device. */
VA_EXPORT int va_fabric_gpu(int device);
/* GPUs of the node. */
VA_EXPORT int va_fabric_gpus(void);

#ifdef __cplusplus
}
#endif
#endif
