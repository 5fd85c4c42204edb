#include "models.h"

#include <strings.h>

namespace va::node {

size_t model_named(const char *name) {
  for (size_t i = 0; i < kNodeModelCount; ++i)
    if (!strcasecmp(kNodeModels[i].key, name) || !strcasecmp(kNodeModels[i].name, name))
      return i;
  return kNodeModelCount;
}

const Kind *kind_named(const char *name) {
  for (size_t i = 0; i < kKindCount; ++i)
    if (!strcasecmp(kKinds[i].name, name))
      return &kKinds[i];
  return nullptr;
}

} // namespace va::node
