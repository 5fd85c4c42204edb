/* Texture and surface objects as kernels see them: numbers the driver gives out, and what each
 * stands for.  A number that stands for nothing finds nothing, whatever it is.  Thread safe.
 * The layout of va_texture is the contract with src/va100/gpu/texture.py. */
#ifndef VA100_TEXTURE_H
#define VA100_TEXTURE_H
#include "va100/arena.h"
#ifdef __cplusplus
extern "C" {
#endif

enum va_texture_kind { VA_TEXTURE = 1, VA_SURFACE = 2 };

enum va_texture_layout {
  VA_LAYOUT_LINEAR = 0, /* one row of device memory; what lies outside reads as zero */
  VA_LAYOUT_PITCH = 1,  /* rows of device memory */
  VA_LAYOUT_ARRAY = 2   /* an array of the driver's */
};

/* As CUarray_format numbers them. */
enum va_texel_format {
  VA_TEXEL_U8 = 0x01,
  VA_TEXEL_U16 = 0x02,
  VA_TEXEL_U32 = 0x03,
  VA_TEXEL_S8 = 0x08,
  VA_TEXEL_S16 = 0x09,
  VA_TEXEL_S32 = 0x0a,
  VA_TEXEL_F16 = 0x10,
  VA_TEXEL_F32 = 0x20
};

/* As CUaddress_mode numbers them. */
enum va_address_mode {
  VA_ADDRESS_WRAP = 0,
  VA_ADDRESS_CLAMP = 1,
  VA_ADDRESS_MIRROR = 2,
  VA_ADDRESS_BORDER = 3
};

typedef struct va_texture {
  uint64_t base;  /* of the first texel */
  uint64_t pitch; /* bytes from row to row */
  uint64_t slice; /* bytes from slice, layer or face to the next */
  uint32_t kind;
  uint32_t layout;
  uint32_t width, height, depth; /* texels; 0 for an extent it does not have */
  uint32_t layers;               /* 0: not layered; of a cube map: cubes, 0 for a single one */
  uint32_t is_cube;
  uint32_t format, channels;
  uint32_t address[3]; /* by dimension */
  uint32_t linear;     /* filter: 0 takes the nearest texel, 1 interpolates */
  uint32_t normalized; /* coordinates run from 0 to 1 */
  uint32_t as_integer; /* 8- and 16-bit integers are given as they are, not scaled to a float */
  uint32_t border[4];  /* bits of the color outside */
} va_texture;

/* Give a description a number, never 0 unless the table is full. */
VA_EXPORT uint64_t va_texture_add(const va_texture *what);
/* Forget a number; 0, or -1 when it stands for nothing of the kind. */
VA_EXPORT int va_texture_remove(uint64_t number, uint32_t kind);
/* What a number stands for: 1 and *out, or 0. */
VA_EXPORT int va_texture_find(uint64_t number, va_texture *out);
/* Size of va_texture, for those who mirror it. */
VA_EXPORT uint64_t va_texture_bytes(void);

#ifdef __cplusplus
}
#endif
#endif
