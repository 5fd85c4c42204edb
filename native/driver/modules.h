// Loading PTX into a context, and finding what it holds.
#pragma once

#include "objects.h"

namespace va {

// Options of the driver's PTX compiler that are read: where to write its messages.
class JitLog {
public:
  JitLog(unsigned count, const CUjit_option *options, void **values);
  void error(const std::string &text);
  // Say that there is nothing to say: empty texts of no bytes.
  void clear();

private:
  void write(int buffer_option, const std::string &text);

  unsigned count_;
  const CUjit_option *options_;
  void **values_;
};

// Compile into a context; fails with the compiler's code after telling why.
va_module *load_module(Context &context, const std::string &ptx, JitLog *log);
Function *find_function(const va_module &module, const std::string &name);
// Fails, and says why, when the kernel cannot run.
Function &runnable(Function &function);

// The function a launch or a query names: a function, or a kernel in the current context.
Function &function_of(CUfunction handle);
// The same; a kernel's function in this context.
Function &function_for(CUfunction handle, Context &context);
Kernel &kernel_of(CUkernel handle);
// A library's module in a context, loaded at first use.
va_module *module_in(Library &library, Context &context, JitLog *log = nullptr);
void forget_module(Library &library, Context &context);

// Bytes of a file; fails with FILE_NOT_FOUND.
std::string read_file(const char *path);

// How many CTAs of a function one SM holds at once; 0 when it holds none.
uint32_t resident_ctas_per_sm(const Device &device, const Function &function, uint32_t threads,
                              size_t dynamic_shared_bytes);
// L1 that each of as many CTAs on an SM has for itself.
uint32_t l1_cta_bytes(const Device &device, const Function &function, uint32_t ctas_per_sm,
                      size_t dynamic_shared_bytes);

} // namespace va
