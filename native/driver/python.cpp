// Entering Python from a process that may have none: found by name at run time, never linked.
#include <cstdlib>
#include <cwchar>
#include <dlfcn.h>

#include "compiler.h"
#include "settings.h"

namespace va {
namespace {

// The few functions of the stable C API that are needed.
struct Python {
  int (*is_initialized)();
  void (*initialize)(int);
  void *(*decode_locale)(const char *, size_t *);
  void (*set_program_name)(const wchar_t *);
  int (*run)(const char *);
  int (*ensure)();
  void (*release)(int);
  void *(*save_thread)();
};

template <typename Function> bool find(void *library, const char *name, Function *out) {
  *out = reinterpret_cast<Function>(dlsym(library, name));
  return *out != nullptr;
}

bool bind(void *library, Python *python) {
  find(library, "Py_SetProgramName", &python->set_program_name); // gone from newer versions
  find(library, "Py_DecodeLocale", &python->decode_locale);
  return find(library, "Py_IsInitialized", &python->is_initialized) &&
         find(library, "Py_InitializeEx", &python->initialize) &&
         find(library, "PyRun_SimpleString", &python->run) &&
         find(library, "PyGILState_Ensure", &python->ensure) &&
         find(library, "PyGILState_Release", &python->release) &&
         find(library, "PyEval_SaveThread", &python->save_thread);
}

std::string script() {
  const std::string &spec = settings().backend;
  const size_t colon = spec.find(':');
  const std::string module = spec.substr(0, colon);
  const std::string function = colon == std::string::npos ? "connect" : spec.substr(colon + 1);
  return "from " + module + " import " + function + " as _va100_connect\n_va100_connect()\n";
}

std::string open(Python *python) {
  if (bind(RTLD_DEFAULT, python) && python->is_initialized())
    return {}; // this process is Python already
  const std::string &path = settings().python_library;
  if (path.empty())
    return "there is no Python to compile with: VA100_LIBPYTHON does not name a libpython\n"
           "  to fix: start the program with `va100 run`; `va100 doctor` says whether its Python "
           "has a shared library";
  void *const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    return std::string("VA100_LIBPYTHON: ") + dlerror();
  if (!bind(library, python))
    return "VA100_LIBPYTHON: " + path + " is no libpython that can be used";
  return {};
}

void initialize(const Python &python) {
  const std::string &program = settings().python;
  if (!program.empty()) {
    // Newer versions take the interpreter's place from here instead.
    setenv("PYTHONEXECUTABLE", program.c_str(), 0);
    if (python.set_program_name && python.decode_locale) {
      void *const name = python.decode_locale(program.c_str(), nullptr);
      if (name)
        python.set_program_name(static_cast<const wchar_t *>(name)); // kept by the interpreter
    }
  }
  python.initialize(0);
}

// A process that is not Python's own never finalises the interpreter; run what was left for the
// end, reports for one.
Python *g_own = nullptr;

void run_exit_functions() {
  const int state = g_own->ensure();
  g_own->run("import atexit, sys\natexit._run_exitfuncs()\nsys.stdout.flush()\n");
  g_own->release(state);
}

} // namespace

std::string start_python() {
  Python python{};
  std::string failure = open(&python);
  if (!failure.empty())
    return failure;
  int status;
  if (python.is_initialized()) {
    const int state = python.ensure();
    status = python.run(script().c_str());
    python.release(state);
  } else {
    initialize(python);
    status = python.run(script().c_str());
    python.save_thread(); // let go of the interpreter: any thread may call next
    g_own = new Python(python);
    std::atexit(run_exit_functions);
  }
  return status == 0 ? std::string()
                     : "importing " + settings().backend + " failed; its message stands above";
}

} // namespace va
