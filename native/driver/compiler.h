// The driver's side of the crossing into the compiler: who is registered, and starting Python
// when nobody is.  What the calls mean is told in va100/backend.h.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "va100/backend.h"

namespace va {

// Start the compiler now; otherwise the first image does.
void compiler_begin();
// Load PTX text into a module; a CUresult, and what went wrong in text.
int compiler_load(va_module *module, const char *image, size_t bytes, int device,
                  std::string *text);
void compiler_unload(va_module *module);
int compiler_compile(uint64_t compiler_id, const uint32_t block[3], va_variant *out,
                     uint64_t *variant_id, std::string *text);
// Join PTX texts, each with its name, into one; a CUresult, and what went wrong in text.
struct LinkInput {
  std::string name, text;
};
int compiler_link(const std::vector<LinkInput> &inputs, std::string *out, std::string *text);
std::string compiler_explain(uint64_t compiler_id, uint64_t variant_id, const va_fault &fault);
// Run a launch of a variant without machine code.
void compiler_launch(uint64_t compiler_id, uint64_t variant_id, va_launch *launch);
// Fill durations in; false when nobody can.
bool price(va_launch_record *records, size_t count);

// Start an interpreter, or enter the one of this process, and have it register a compiler.
// Returns what went wrong, or an empty string.
std::string start_python();

} // namespace va
