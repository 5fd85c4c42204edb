// Linking one ELF object into the process: sections side by side, a table of far addresses, the
// relocations LLVM uses.  Knows nothing of what the code does.
#include "va100/code.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "va100/exec.h"

namespace va {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMostBytes = 1ull << 30;  // what 32-bit distances reach, and room to spare
// jmp *2(%rip), two bytes of padding, the address.
constexpr uint8_t kJump[] = {0xff, 0x25, 0x02, 0, 0, 0, 0x90, 0x90};
constexpr uint64_t kJumpBytes = 16;

// Functions that code loaded later may call, by name.
struct Provided {
  std::mutex lock;
  std::map<std::string, uint64_t> addresses;
};

Provided &all_provided() {
  static auto *found = new Provided;  // not torn down: kernels may still run at exit
  return *found;
}

uint64_t provided(const char *name) {
  Provided &all = all_provided();
  std::lock_guard<std::mutex> hold(all.lock);
  auto found = all.addresses.find(name);
  return found == all.addresses.end() ? 0 : found->second;
}

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

struct Code {
  uint8_t *base = nullptr;
  uint64_t bytes = 0;
  uint64_t frame_bytes = 0;  // of the function that takes most stack
  std::map<std::string, uint64_t> defined;

  ~Code() {
    if (base) munmap(base, bytes);
  }
};

// What a function takes from the stack beyond a page or so: its prologue says `sub $n, %rsp`.
uint64_t frame_of(const uint8_t *function, uint64_t bytes) {
  constexpr uint8_t kTake[] = {0x48, 0x81, 0xec};
  constexpr uint64_t kPrologue = 64;
  for (uint64_t i = 0; i + 7 <= std::min(bytes, kPrologue); i++) {
    if (memcmp(function + i, kTake, sizeof kTake)) continue;
    int32_t taken;
    memcpy(&taken, function + i + 3, sizeof taken);
    return taken > 0 ? static_cast<uint64_t>(taken) : 0;
  }
  return 0;
}

// A view of the object that never reads past its end.
class Object {
 public:
  Object(const uint8_t *data, size_t bytes) : data_(data), bytes_(bytes) {}

  template <typename T>
  const T *at(uint64_t offset, uint64_t count = 1) const {
    if (offset > bytes_ || count > (bytes_ - offset) / sizeof(T)) return nullptr;
    return reinterpret_cast<const T *>(data_ + offset);
  }

  const char *text(uint64_t offset) const {
    if (offset >= bytes_ || !memchr(data_ + offset, 0, bytes_ - offset)) return nullptr;
    return reinterpret_cast<const char *>(data_ + offset);
  }

 private:
  const uint8_t *data_;
  size_t bytes_;
};

class Linker {
 public:
  Linker(const uint8_t *object, size_t bytes, const void *beside, Code *code)
      : object_(object, bytes), beside_(beside), code_(code) {}

  bool link() {
    return read_header() && place_sections() && find_symbols() && map() && relocate() && seal();
  }

  const std::string &reason() const { return reason_; }

 private:
  bool fail(const std::string &why) {
    reason_ = why;
    return false;
  }

  bool read_header() {
    header_ = object_.at<Elf64_Ehdr>(0);
    if (!header_ || memcmp(header_->e_ident, ELFMAG, SELFMAG) || header_->e_type != ET_REL ||
        header_->e_machine != EM_X86_64)
      return fail("this is no ELF object for x86-64");
    sections_ = object_.at<Elf64_Shdr>(header_->e_shoff, header_->e_shnum);
    return sections_ ? true : fail("its sections end outside the file");
  }

  bool place_sections() {
    offsets_.assign(header_->e_shnum, 0);
    for (uint32_t i = 0; i < header_->e_shnum; i++) {
      const Elf64_Shdr &s = sections_[i];
      if (s.sh_type == SHT_SYMTAB) symbol_section_ = i;
      if (!(s.sh_flags & SHF_ALLOC) || s.sh_type == SHT_NOTE) continue;
      if (s.sh_type != SHT_NOBITS && !object_.at<uint8_t>(s.sh_offset, s.sh_size))
        return fail("a section ends outside the file");
      if (s.sh_addralign > kPage || s.sh_size > kMostBytes - size_)
        return fail("it is too large");
      size_ = round_up(size_, std::max<uint64_t>(s.sh_addralign, 1));
      offsets_[i] = size_;
      size_ += s.sh_size;
    }
    return symbol_section_ ? true : fail("it has no symbols");
  }

  bool find_symbols() {
    const Elf64_Shdr &table = sections_[symbol_section_];
    count_ = table.sh_size / sizeof(Elf64_Sym);
    symbols_ = object_.at<Elf64_Sym>(table.sh_offset, count_);
    if (!symbols_ || table.sh_link >= header_->e_shnum) return fail("its symbols are damaged");
    uint64_t names = sections_[table.sh_link].sh_offset;
    jumps_ = round_up(size_, kJumpBytes);
    addresses_.assign(count_, 0);
    for (uint64_t i = 1; i < count_; i++) {
      const char *name = object_.text(names + symbols_[i].st_name);
      if (!name) return fail("a symbol's name is damaged");
      if (symbols_[i].st_shndx == SHN_UNDEF) {
        uint64_t address = va_exec_helper(name);
        if (!address && beside_) address = va_code_symbol(beside_, name);
        if (!address) address = provided(name);
        if (!address) address = reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, name));
        if (!address) return fail(std::string("nobody provides `") + name + "`");
        addresses_[i] = address;
        jump_of_[i] = far_.size();
        far_.push_back(address);
      } else if (symbols_[i].st_shndx < header_->e_shnum) {
        addresses_[i] = offsets_[symbols_[i].st_shndx] + symbols_[i].st_value;
        if (ELF64_ST_BIND(symbols_[i].st_info) != STB_LOCAL) code_->defined[name] = addresses_[i];
      }
    }
    return true;
  }

  bool map() {
    code_->bytes = round_up(jumps_ + far_.size() * kJumpBytes, kPage);
    void *p = mmap(nullptr, code_->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return fail("there is no memory for it");
    code_->base = static_cast<uint8_t *>(p);
    for (uint32_t i = 0; i < header_->e_shnum; i++) {
      const Elf64_Shdr &s = sections_[i];
      if (s.sh_flags & SHF_ALLOC && s.sh_type != SHT_NOBITS && s.sh_type != SHT_NOTE)
        memcpy(code_->base + offsets_[i], object_.at<uint8_t>(s.sh_offset), s.sh_size);
    }
    for (size_t i = 0; i < far_.size(); i++) {
      uint8_t *jump = code_->base + jumps_ + i * kJumpBytes;
      memcpy(jump, kJump, sizeof kJump);
      memcpy(jump + 8, &far_[i], 8);
    }
    auto base = reinterpret_cast<uint64_t>(code_->base);
    for (auto &[name, address] : code_->defined) address += base;
    for (uint64_t i = 1; i < count_; i++)
      if (symbols_[i].st_shndx != SHN_UNDEF && symbols_[i].st_shndx < header_->e_shnum)
        addresses_[i] += base;
    for (uint64_t i = 1; i < count_; i++)
      if (ELF64_ST_TYPE(symbols_[i].st_info) == STT_FUNC && symbols_[i].st_shndx != SHN_UNDEF &&
          addresses_[i] - base < jumps_ && symbols_[i].st_size <= jumps_ - (addresses_[i] - base))
        code_->frame_bytes = std::max(
            code_->frame_bytes,
            frame_of(reinterpret_cast<const uint8_t *>(addresses_[i]), symbols_[i].st_size));
    return true;
  }

  bool relocate() {
    for (uint32_t i = 0; i < header_->e_shnum; i++) {
      const Elf64_Shdr &s = sections_[i];
      if (s.sh_type != SHT_RELA || s.sh_info >= header_->e_shnum) continue;
      if (!(sections_[s.sh_info].sh_flags & SHF_ALLOC)) continue;
      uint64_t count = s.sh_size / sizeof(Elf64_Rela);
      const auto *entries = object_.at<Elf64_Rela>(s.sh_offset, count);
      if (!entries) return fail("its relocations end outside the file");
      for (uint64_t k = 0; k < count; k++)
        if (!apply(s.sh_info, entries[k])) return false;
    }
    return true;
  }

  bool apply(uint32_t section, const Elf64_Rela &r) {
    uint64_t index = ELF64_R_SYM(r.r_info), kind = ELF64_R_TYPE(r.r_info);
    uint64_t width = kind == R_X86_64_64 || kind == R_X86_64_PC64 ? 8 : 4;
    if (index >= count_ || r.r_offset > sections_[section].sh_size ||
        width > sections_[section].sh_size - r.r_offset)
      return fail("a relocation is damaged");
    uint8_t *where = code_->base + offsets_[section] + r.r_offset;
    uint64_t value = addresses_[index] + static_cast<uint64_t>(r.r_addend);
    auto here = reinterpret_cast<uint64_t>(where);
    auto jump = jump_of_.find(index);
    uint64_t entry = jump == jump_of_.end() ? 0
                     : reinterpret_cast<uint64_t>(code_->base) + jumps_ + jump->second * kJumpBytes;
    switch (kind) {
      case R_X86_64_64:
        return put64(where, value);
      case R_X86_64_PC64:
        return put64(where, value - here);
      case R_X86_64_PC32:
      case R_X86_64_PLT32:
        if (entry) value = entry + static_cast<uint64_t>(r.r_addend);
        return put32(where, value - here);
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX:
        if (!entry) return fail("it looks up the address of what it defines itself");
        return put32(where, entry + 8 + static_cast<uint64_t>(r.r_addend) - here);
      default:
        return fail("relocation kind " + std::to_string(kind) + " is unknown");
    }
  }

  bool put64(uint8_t *where, uint64_t value) {
    memcpy(where, &value, 8);
    return true;
  }

  bool put32(uint8_t *where, uint64_t value) {
    auto distance = static_cast<int64_t>(value);
    auto narrow = static_cast<int32_t>(distance);
    if (narrow != distance) return fail("a relocation does not reach");
    memcpy(where, &narrow, 4);
    return true;
  }

  bool seal() {
    if (mprotect(code_->base, code_->bytes, PROT_READ | PROT_EXEC))
      return fail("its memory cannot be made executable");
    return true;
  }

  Object object_;
  const void *beside_;
  Code *code_;
  std::string reason_;
  const Elf64_Ehdr *header_ = nullptr;
  const Elf64_Shdr *sections_ = nullptr;
  const Elf64_Sym *symbols_ = nullptr;
  uint32_t symbol_section_ = 0;
  uint64_t count_ = 0, size_ = 0, jumps_ = 0;
  std::vector<uint64_t> offsets_;    // of sections, in the mapping
  std::vector<uint64_t> addresses_;  // of symbols
  std::vector<uint64_t> far_;        // addresses outside the mapping, each with a jump of its own
  std::map<uint64_t, size_t> jump_of_;
};

}  // namespace
}  // namespace va

extern "C" {

void *va_code_load(const uint8_t *object, size_t bytes, const void *beside, char *reason,
                   size_t capacity) {
  auto *code = new (std::nothrow) va::Code;
  if (!code) return nullptr;
  try {
    va::Linker linker(object, bytes, beside, code);
    if (linker.link()) return code;
    snprintf(reason, capacity, "%s", linker.reason().c_str());
  } catch (...) {
    snprintf(reason, capacity, "there is no memory for it");
  }
  delete code;
  return nullptr;
}

uint64_t va_code_symbol(const void *code, const char *name) {
  const auto &defined = static_cast<const va::Code *>(code)->defined;
  auto found = defined.find(name);
  return found == defined.end() ? 0 : found->second;
}

uint64_t va_code_extent(const void *code, uint64_t *bytes) {
  const auto *c = static_cast<const va::Code *>(code);
  *bytes = c->bytes;
  return reinterpret_cast<uint64_t>(c->base);
}

int va_code_provide(const char *name, uint64_t address) {
  try {
    va::Provided &all = va::all_provided();
    std::lock_guard<std::mutex> hold(all.lock);
    all.addresses[name] = address;
    return 1;
  } catch (...) {
    return 0;
  }
}

uint64_t va_code_frame(const void *code) { return static_cast<const va::Code *>(code)->frame_bytes; }

void va_code_free(void *code) { delete static_cast<va::Code *>(code); }

}  // extern "C"
