// An nvidia-smi that reads virtual nodes: it starts the one that is written in Python.
//
// It stands at va100/_native/smi/nvidia-smi beside the package, whose folder Python is told; what
// else is installed there is not looked at, so that it starts quickly.
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

constexpr int kLevels = 4; // nvidia-smi, smi, _native, va100

// The folder that holds the package.
std::string packages() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0 || length >= static_cast<ssize_t>(sizeof path))
    return {};
  std::string folder(path, static_cast<size_t>(length));
  for (int i = 0; i < kLevels; ++i) {
    const size_t slash = folder.rfind('/');
    if (slash == std::string::npos)
      return {};
    folder.resize(slash);
  }
  return folder;
}

// The Python that runs va100, else the one in PATH.
std::string python() {
  const char *const told = std::getenv("VA100_PYTHON");
  return told && *told ? told : "python3";
}

} // namespace

int main(int count, char **words) {
  const std::string folder = packages();
  if (folder.empty()) {
    std::fputs("nvidia-smi of va100: cannot tell where it lies\n", stderr);
    return 127;
  }
  std::vector<std::string> said{
      python(), "-I", "-S", "-c",
      "import sys; sys.path.insert(0, sys.argv.pop(1)); from va100.cli import smi; smi.program()",
      folder};
  said.insert(said.end(), words + 1, words + count);
  std::vector<char *> arguments;
  for (std::string &word : said)
    arguments.push_back(&word[0]);
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "nvidia-smi of va100: cannot start '%s'; VA100_PYTHON may name a Python\n",
               arguments[0]);
  return 127;
}
