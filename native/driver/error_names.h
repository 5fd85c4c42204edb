// Result codes by number: the shape of the generated tables.
#pragma once

#include <stddef.h>

namespace va {

struct ErrorName {
  int code;
  const char *name;
  const char *text;
};

extern const ErrorName kErrorNames[];
extern const size_t kErrorNameCount;

namespace rt {
extern const ErrorName kErrorNames[];
extern const size_t kErrorNameCount;
} // namespace rt

// The entry of a code, or nullptr.
inline const ErrorName *find_error(const ErrorName *table, size_t count, int code) {
  size_t low = 0;
  while (low < count) {
    const size_t middle = (low + count) / 2;
    if (table[middle].code == code)
      return &table[middle];
    if (table[middle].code < code)
      low = middle + 1;
    else
      count = middle;
  }
  return nullptr;
}

} // namespace va
