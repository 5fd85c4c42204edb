/* Machine code out of a cache or fresh from the compiler: an ELF object, linked and made runnable. */
#ifndef VA100_CODE_H
#define VA100_CODE_H
#include "va100/arena.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Link an ELF object for x86-64. What it calls is looked up among the native helpers, then in the
 * code `beside`, if any, then among what is provided, then in the process. Returns a handle, or NULL and a reason. */
VA_EXPORT void *va_code_load(const uint8_t *object, size_t bytes, const void *beside, char *reason,
                             size_t capacity);
/* Address of a function the object defines; 0 when there is none. */
VA_EXPORT uint64_t va_code_symbol(const void *code, const char *name);
/* Let code that is loaded from now on call a function by name; it must stay where it is. Returns 0
 * where there is no memory for the name. */
VA_EXPORT int va_code_provide(const char *name, uint64_t address);
/* Where the code lies, for those who look at it. */
VA_EXPORT uint64_t va_code_extent(const void *code, uint64_t *bytes);
/* Bytes of stack that its hungriest function takes. */
VA_EXPORT uint64_t va_code_frame(const void *code);
VA_EXPORT void va_code_free(void *code);

#ifdef __cplusplus
}
#endif
#endif
