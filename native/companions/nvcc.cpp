// An nvcc that gives PTX where machine code alone is asked for, for clients that start `nvcc --cubin`
// and load what it wrote.  Everything else is what the real nvcc does with the same words.
//
// The real one is VA100_NVCC, or the first nvcc in PATH that is not this program.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace {

bool is_same_file(const std::string &a, const std::string &b) {
  struct stat one, other;
  return !stat(a.c_str(), &one) && !stat(b.c_str(), &other) && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

std::string real_nvcc() {
  const char *const told = std::getenv("VA100_NVCC");
  if (told && *told && !is_same_file(told, "/proc/self/exe")) return told;
  const char *const path = std::getenv("PATH");
  const std::string folders = path ? path : "";
  for (size_t at = 0; at <= folders.size();) {
    const size_t end = std::min(folders.find(':', at), folders.size());
    const std::string candidate = folders.substr(at, end - at) + "/nvcc";
    if (!access(candidate.c_str(), X_OK) && !is_same_file(candidate, "/proc/self/exe"))
      return candidate;
    at = end + 1;
  }
  return {};
}

bool has_suffix(const std::string &text, const std::string &suffix) {
  return text.size() > suffix.size() &&
         !text.compare(text.size() - suffix.size(), suffix.size(), suffix);
}

// What nvcc would call its output: the source's name in the folder it works in.
std::string output_of(const std::string &source) {
  const size_t slash = source.rfind('/');
  const std::string name = slash == std::string::npos ? source : source.substr(slash + 1);
  return name.substr(0, name.size() - 3) + ".cubin";
}

} // namespace

int main(int count, char **words) {
  const std::string program = real_nvcc();
  if (program.empty()) {
    std::fputs("nvcc of va100: no other nvcc is in PATH; VA100_NVCC may name one\n", stderr);
    return 127;
  }
  std::vector<std::string> said{program};
  std::string source;
  bool machine_code = false, has_output = false;
  for (int i = 1; i < count; ++i) {
    std::string word = words[i];
    if (word == "--cubin" || word == "-cubin") {
      machine_code = true;
      word = "--ptx";
    }
    has_output |= word == "-o" || word == "--output-file";
    if (has_suffix(word, ".cu")) source = word;
    said.push_back(word);
  }
  if (machine_code && !has_output && !source.empty()) {
    said.push_back("-o");
    said.push_back(output_of(source));
  }
  std::vector<char *> arguments;
  for (std::string &word : said) arguments.push_back(&word[0]);
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  std::fprintf(stderr, "nvcc of va100: cannot start '%s'\n", program.c_str());
  return 127;
}
