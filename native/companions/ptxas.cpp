// A ptxas that leaves PTX as it is: its output is its input and a NUL, for a driver that compiles
// PTX.
//
// Triton and others start `ptxas [options] INPUT -o OUTPUT` and load what it wrote.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

namespace {

constexpr char kVersion[] =
    "ptxas of va100: passes PTX on\nCuda compilation tools, release 12.9, V12.9.86\n";

bool takes_value(const char *option) {
  return std::strcmp(option, "--opt-level") == 0 || std::strcmp(option, "--gpu-name") == 0;
}

}  // namespace

int main(int count, char **words) {
  const char *input = nullptr;
  std::string output = "elf.o";
  for (int i = 1; i < count; ++i) {
    const char *word = words[i];
    if (std::strcmp(word, "--version") == 0 || std::strcmp(word, "-V") == 0) {
      std::fputs(kVersion, stdout);
      return 0;
    }
    if ((std::strcmp(word, "-o") == 0 || std::strcmp(word, "--output-file") == 0) && i + 1 < count)
      output = words[++i];
    else if (takes_value(word))
      ++i;
    else if (word[0] != '-')
      input = word;
  }
  if (input == nullptr) {
    std::fputs("ptxas of va100: no input file\n", stderr);
    return 255;
  }
  std::ifstream source(input, std::ios::binary);
  std::ofstream target(output, std::ios::binary);
  target << source.rdbuf();
  target.put('\0'); // a driver takes text up to there, and XLA hands on the file and no more
  target.flush();
  if (source.is_open() && target.good()) return 0;
  std::fprintf(stderr, "ptxas of va100: cannot copy '%s' to '%s'\n", input, output.c_str());
  return 255;
}
