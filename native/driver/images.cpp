#include "images.h"

#include <cstring>
#include <vector>

#include "compiler.h"
#include "settings.h"
#include "va100/driver.h"

namespace va {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243B1;
constexpr uint32_t kFatbinMagic = 0xBA55ED50;
constexpr uint32_t kElfMagic = 0x464C457F;
constexpr uint32_t kPrelinkedWrapper = 2; // its version; a list of the linked fatbins is behind it
constexpr uint16_t kEntryPtx = 1;
constexpr uint16_t kEntryElf = 2;
constexpr uint64_t kFlagLz4 = 0x2000;
constexpr uint64_t kFlagZstd = 0x8000;
constexpr uint32_t kHighestArch = 80;
constexpr uint64_t kMostTextBytes = 1ULL << 31;

const char kNoPtx[] = "the image holds machine code only (SASS), which va100 cannot run; compile "
                      "with PTX in it, e.g. nvcc -gencode arch=compute_80,code=compute_80";

template <typename Number> Number read(const uint8_t *at) {
  Number value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

FoundPtx refused(CUresult result, std::string problem) {
  return FoundPtx{result, {}, std::move(problem)};
}

struct Entry {
  uint16_t kind;
  uint32_t arch;
  uint64_t flags;
  const uint8_t *payload;
  uint64_t payload_bytes;
  uint32_t packed_bytes;
  uint64_t raw_bytes;
};

// Entries of a fatbin; stops at the first one that does not fit.
std::vector<Entry> entries_of(const uint8_t *at, const uint8_t *end) {
  std::vector<Entry> entries;
  while (end - at >= 64) {
    Entry e{};
    e.kind = read<uint16_t>(at);
    const uint32_t head = read<uint32_t>(at + 4);
    e.payload_bytes = read<uint64_t>(at + 8);
    e.packed_bytes = read<uint32_t>(at + 16);
    e.arch = read<uint32_t>(at + 28);
    e.flags = read<uint64_t>(at + 40);
    e.raw_bytes = read<uint64_t>(at + 56);
    const uint64_t room = static_cast<uint64_t>(end - at);
    if (head < 64 || head > room || e.payload_bytes > room - head)
      break;
    e.payload = at + head;
    entries.push_back(e);
    at += head + e.payload_bytes;
  }
  return entries;
}

FoundPtx unpack(const Entry &e) {
  FoundPtx found;
  if (!(e.flags & (kFlagLz4 | kFlagZstd))) {
    found.text.assign(reinterpret_cast<const char *>(e.payload), e.payload_bytes);
  } else {
    const uint64_t packed = e.packed_bytes ? e.packed_bytes : e.payload_bytes;
    if (packed > e.payload_bytes || e.raw_bytes > kMostTextBytes)
      return refused(CUDA_ERROR_INVALID_IMAGE, "a fatbin entry is longer than its room");
    found.text.resize(e.raw_bytes);
    const auto expand = e.flags & kFlagZstd ? va_expand_zstd : va_expand_lz4;
    const int64_t bytes = expand(e.payload, packed, &found.text[0], found.text.size());
    if (bytes < 0)
      return refused(CUDA_ERROR_INVALID_IMAGE, "a fatbin entry could not be decompressed");
    found.text.resize(static_cast<size_t>(bytes));
  }
  found.text.resize(std::strlen(found.text.c_str())); // padded with NULs
  return found;
}

FoundPtx from_fatbin(const uint8_t *image) {
  const uint64_t bytes = read<uint64_t>(image + 8);
  const uint8_t *const first = image + read<uint16_t>(image + 6);
  const Entry *best = nullptr;
  uint32_t lowest = 0;
  bool has_elf = false;
  const std::vector<Entry> entries = entries_of(first, first + bytes);
  for (const Entry &e : entries) {
    has_elf = has_elf || e.kind == kEntryElf;
    if (e.kind != kEntryPtx)
      continue;
    if (!lowest || e.arch < lowest)
      lowest = e.arch;
    if (e.arch <= kHighestArch && (!best || e.arch > best->arch))
      best = &e;
  }
  if (best)
    return unpack(*best);
  if (lowest)
    return refused(CUDA_ERROR_NO_BINARY_FOR_GPU,
                   "the PTX in the image is for compute_" + std::to_string(lowest) +
                       " and newer; an A100 is compute_80: compile with -arch=compute_80");
  return refused(has_elf ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE,
                 has_elf ? kNoPtx : "the fatbin is empty");
}

struct PrelinkedObjects {
  std::vector<LinkInput> inputs;
  size_t without_ptx = 0; // that a compiler switch could have given some
};

const char kObjectsWithoutPtx[] =
    " of the program's object files hold machine code only (SASS), which va100 cannot run; "
    "compile every file with PTX in it, e.g. nvcc -rdc=true -arch=compute_80";

// The program's object files, each a fatbin.  CUDA's own device runtime is among them; it has no
// PTX for an A100, and what it supplies the compiler supplies.
PrelinkedObjects prelinked_objects(const uint8_t *const *fatbins) {
  PrelinkedObjects found;
  for (size_t i = 0; fatbins[i]; ++i) {
    if (read<uint32_t>(fatbins[i]) != kFatbinMagic)
      continue;
    FoundPtx ptx = from_fatbin(fatbins[i]);
    if (ptx.result == CUDA_SUCCESS)
      found.inputs.push_back({"object " + std::to_string(i + 1), std::move(ptx.text)});
    else
      found.without_ptx += ptx.problem == kNoPtx;
  }
  return found;
}

// A program of several files that nvcc linked: the PTX of each lies beside what was linked.
FoundPtx from_prelinked(const uint8_t *const *fatbins) {
  const PrelinkedObjects objects = prelinked_objects(fatbins);
  if (objects.inputs.empty())
    return refused(CUDA_ERROR_NO_BINARY_FOR_GPU, kNoPtx);
  const std::string hint =
      objects.without_ptx ? std::to_string(objects.without_ptx) + kObjectsWithoutPtx : "";
  FoundPtx found;
  std::string problem;
  found.result =
      static_cast<CUresult>(compiler_link(objects.inputs, &found.text, &problem));
  if (found.result != CUDA_SUCCESS)
    return refused(found.result, hint.empty() ? problem : problem + "\n  hint: " + hint);
  if (!hint.empty())
    note("%s", hint.c_str());
  return found;
}

FoundPtx from_text(const char *text, size_t bytes) {
  const std::string_view view(text, bytes);
  if (view.find(".version") == std::string_view::npos)
    return refused(CUDA_ERROR_INVALID_IMAGE,
                   "the image is neither PTX text nor a fatbin (its first bytes are no magic "
                   "number known here, and it has no .version)");
  FoundPtx found;
  found.text.assign(text, bytes);
  return found;
}

// The containers, told by their first four bytes; false when the image is none of them.
bool from_container(const uint8_t *image, FoundPtx *found) {
  switch (read<uint32_t>(image)) {
  case kElfMagic:
    *found = refused(CUDA_ERROR_NO_BINARY_FOR_GPU, kNoPtx);
    return true;
  case kFatbinMagic:
    *found = from_fatbin(image);
    return true;
  case kWrapperMagic: {
    const auto *const prelinked = read<const uint8_t *const *>(image + 16);
    if (read<uint32_t>(image + 4) == kPrelinkedWrapper && prelinked && prelinked[0]) {
      *found = from_prelinked(prelinked);
      return true;
    }
    const uint8_t *const data = read<const uint8_t *>(image + 8);
    if (!data || read<uint32_t>(data) != kFatbinMagic)
      *found = refused(CUDA_ERROR_INVALID_IMAGE, "the fatbin wrapper points to no fatbin");
    else
      *found = from_fatbin(data);
    return true;
  }
  default:
    return false;
  }
}

} // namespace

FoundPtx find_ptx(const void *image) {
  const auto *const bytes = static_cast<const uint8_t *>(image);
  const char *const text = static_cast<const char *>(image);
  // Text of one to three characters is no image, and reading four bytes of it would be too many.
  for (int i = 0; i < 4; ++i)
    if (!bytes[i])
      return refused(CUDA_ERROR_INVALID_IMAGE, "the image is empty");
  FoundPtx found;
  return from_container(bytes, &found) ? found : from_text(text, std::strlen(text));
}

FoundPtx find_ptx(const void *image, size_t bytes) {
  FoundPtx found;
  if (bytes >= 16 && from_container(static_cast<const uint8_t *>(image), &found))
    return found;
  const char *const text = static_cast<const char *>(image);
  return from_text(text, strnlen(text, bytes));
}

std::vector<FoundPtx> find_embedded_ptx(const void *file, size_t bytes) {
  constexpr size_t kHeader = 16;
  const auto *const first = static_cast<const uint8_t *>(file);
  std::vector<FoundPtx> found;
  // Sections of archive members may lie at any even offset.
  for (size_t at = 0; at + kHeader <= bytes;) {
    const uint64_t size = read<uint32_t>(first + at) == kFatbinMagic &&
                                  read<uint16_t>(first + at + 6) == kHeader
                              ? read<uint64_t>(first + at + 8)
                              : 0;
    if (!size || size > bytes - at - kHeader) {
      at += 2;
      continue;
    }
    FoundPtx ptx = from_fatbin(first + at);
    if (ptx.result == CUDA_SUCCESS)
      found.push_back(std::move(ptx));
    at += kHeader + size;
  }
  return found;
}

} // namespace va
