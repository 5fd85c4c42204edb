// Products of whole matrices for Python: cuts them into rows and panels of eight columns and hands
// these to the kernels; no arithmetic here.
#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "mma_terms.h"
#include "mma_kernels.h"

namespace va {
namespace mma {
namespace {

using Product = va_mma_product;

constexpr size_t kWidth = 8;             // columns of a panel
constexpr size_t kChunk = 256;           // k that panel and rows stay in the first cache for
constexpr size_t kGroupNumbers = 1 << 20;  // of a taken apart at a time

const Kernels &kernels_of(const Product &p) {
  return (p.flags & VA_MMA_PORTABLE ? kPlainBuild : build()).kernels;
}

size_t rounded_up(size_t x, size_t to) { return (x + to - 1) / to * to; }

// Rows of eight columns of b from `column` on, zeros around it.
template <typename Raw>
void copy_panel(const Product &p, const Raw *b, size_t depth, size_t column, Raw *to) {
  size_t rows = p.index ? 2 * p.k : p.k, width = std::min(kWidth, p.n - column);
  std::fill(to, to + depth * kWidth, Raw{});
  for (size_t k = 0; k < rows; k++)
    for (size_t n = 0; n < width; n++) to[kWidth * k + n] = b[k * p.n + column + n];
}

template <typename Raw>
void copy_rows(const Raw *a, size_t count, size_t k, size_t depth, Raw *to) {
  for (size_t i = 0; i < count; i++) {
    std::copy(a + i * k, a + (i + 1) * k, to + i * depth);
    std::fill(to + i * depth + k, to + (i + 1) * depth, Raw{});
  }
}

// What of a panel's sums lies in the matrix.
template <typename Word>
void load_sums(const Product &p, const Word *c, size_t rows, size_t column, Word *to) {
  size_t width = std::min(kWidth, p.n - column);
  for (size_t i = 0; i < rows; i++) {
    std::fill(to + kWidth * i, to + kWidth * (i + 1), Word{});
    std::copy(c + i * p.n, c + i * p.n + width, to + kWidth * i);
  }
}
template <typename Word>
void store_sums(const Product &p, const Word *from, size_t rows, size_t column, Word *d) {
  size_t width = std::min(kWidth, p.n - column);
  for (size_t i = 0; i < rows; i++)
    std::copy(from + kWidth * i, from + kWidth * i + width, d + i * p.n);
}

// Numbers taken apart, with room for the wide way once it is asked for.
class Room {
 public:
  void resize(size_t count) {
    value_.resize(count);
    exponent_.resize(count);
  }
  void widen() {
    significand_.resize(value_.size());
    special_.resize(value_.size());
  }
  Terms terms(size_t from = 0) {
    float *value = value_.data() + from;
    if (significand_.empty()) return {value, exponent_.data() + from, value, value};
    return {value, exponent_.data() + from, significand_.data() + from, special_.data() + from};
  }

 private:
  std::vector<float> value_, significand_, special_;
  std::vector<int32_t> exponent_;
};

// f16, bf16, tf32.
template <typename Raw, typename Word>
class AlignedJob {
 public:
  using Element = Raw;
  using Sum = Word;
  static constexpr size_t kStep = 8;

  explicit AlignedJob(const Product &p) : p_(p) {}

  void set_rows(const Raw *a, size_t count, size_t depth) {
    count_ = count, depth_ = depth;
    raw_ = a;
    if (depth != p_.k) {
      padded_.resize(count * depth);
      copy_rows(a, count, p_.k, depth, padded_.data());
      raw_ = padded_.data();
    }
    a_.resize(count * depth);
    prepared_ = false;
    wide_.assign(count, 0);
    if (!kernels_.unpack(p_.kind, raw_, count * depth, a_.terms())) return;
    prepare_rows();
    for (size_t i = 0; i < count; i++)
      wide_[i] = kernels_.unpack(p_.kind, raw_ + i * depth, depth, a_.terms(i * depth));
  }

  void set_panel(const Raw *b, size_t depth, size_t column) {
    panel_.resize(depth * kWidth);
    copy_panel(p_, b, depth, column, panel_.data());
    b_.resize(depth * kWidth);
    panel_wide_ = kernels_.unpack(p_.kind, panel_.data(), depth * kWidth, b_.terms());
    if (!panel_wide_ && !prepared_) return;
    b_.widen();
    kernels_.prepare(p_.kind, panel_.data(), depth * kWidth, b_.terms());
    if (!prepared_) prepare_rows();
  }

  void run(size_t from, size_t depth, const uint32_t *index, Word *sums) {
    float *numbers = as_floats(sums);
    Terms b = b_.terms(index ? 0 : from * kWidth);
    for (size_t i = 0; i < count_;) {
      size_t end = i + 1;
      bool wide = panel_wide_ || wide_[i];
      while (end < count_ && wide == (panel_wide_ || wide_[end])) end++;
      kernels_.rows(p_.kind, wide, a_.terms(i * depth_ + from), depth_, b,
                    index ? index + i * depth_ + from : nullptr, end - i, depth,
                    numbers + kWidth * i);
      i = end;
    }
    from_floats(sums);
  }

 private:
  void prepare_rows() {
    a_.widen();
    kernels_.prepare(p_.kind, raw_, count_ * depth_, a_.terms());
    prepared_ = true;
  }

  float *as_floats(Word *sums) {
    if constexpr (sizeof(Word) == 4) {
      return reinterpret_cast<float *>(sums);
    } else {
      halves_.resize(count_ * kWidth);
      kernels_.widen_halves(sums, count_ * kWidth, halves_.data());
      return halves_.data();
    }
  }
  void from_floats(Word *sums) {
    if constexpr (sizeof(Word) == 2)
      kernels_.narrow_halves(halves_.data(), count_ * kWidth, sums);
  }

  const Product &p_;
  const Kernels &kernels_ = kernels_of(p_);
  size_t count_ = 0, depth_ = 0;
  bool prepared_ = false, panel_wide_ = false;
  const Raw *raw_ = nullptr;
  std::vector<Raw> padded_, panel_;
  std::vector<uint8_t> wide_;
  std::vector<float> halves_;
  Room a_, b_;
};

class DoubleJob {
 public:
  using Element = double;
  using Sum = double;
  static constexpr size_t kStep = 4;

  explicit DoubleJob(const Product &p) : p_(p) {}

  void set_rows(const double *a, size_t count, size_t depth) {
    count_ = count, depth_ = depth;
    a_.resize(count * depth);
    copy_rows(a, count, p_.k, depth, a_.data());
  }
  void set_panel(const double *b, size_t depth, size_t column) {
    b_.resize(depth * kWidth);
    copy_panel(p_, b, depth, column, b_.data());
  }
  void run(size_t from, size_t depth, const uint32_t *, double *sums) {
    kernels_of(p_).double_rows(p_.flags, a_.data() + from, depth_, b_.data() + from * kWidth,
                                count_, depth, sums);
  }

 private:
  const Product &p_;
  size_t count_ = 0, depth_ = 0;
  std::vector<double> a_, b_;
};

class IntegerJob {
 public:
  using Element = uint8_t;
  using Sum = int32_t;
  static constexpr size_t kStep = 2;

  explicit IntegerJob(const Product &p) : p_(p) {}

  void set_rows(const uint8_t *a, size_t count, size_t depth) {
    count_ = count, depth_ = depth;
    raw_.resize(count * depth);
    copy_rows(a, count, p_.k, depth, raw_.data());
    as_floats(raw_, p_.flags & VA_MMA_A_SIGNED, &a_);
  }
  void set_panel(const uint8_t *b, size_t depth, size_t column) {
    raw_.resize(depth * kWidth);
    copy_panel(p_, b, depth, column, raw_.data());
    as_floats(raw_, p_.flags & VA_MMA_B_SIGNED, &b_);
  }
  void run(size_t from, size_t depth, const uint32_t *index, int32_t *sums) {
    size_t step = p_.kind == VA_MMA_INT8 ? 32 : 64;
    kernels_of(p_).integer_rows(p_.flags & VA_MMA_SATFINITE, a_.data() + from, depth_,
                                 b_.data() + (index ? 0 : from * kWidth),
                                 index ? index + from : nullptr, count_, depth, step, sums);
  }

 private:
  static void as_floats(const std::vector<uint8_t> &from, bool is_signed, std::vector<float> *to) {
    to->resize(from.size());
    float *out = to->data();
    if (is_signed)
      for (size_t i = 0; i < from.size(); i++) out[i] = static_cast<int8_t>(from[i]);
    else
      for (size_t i = 0; i < from.size(); i++) out[i] = from[i];
  }

  const Product &p_;
  size_t count_ = 0, depth_ = 0;
  std::vector<uint8_t> raw_;
  std::vector<float> a_, b_;
};

// Zeros and ones, a byte each, packed to words.
class BitJob {
 public:
  using Element = uint8_t;
  using Sum = int32_t;
  static constexpr size_t kStep = 64;

  explicit BitJob(const Product &p) : p_(p) {}

  void set_rows(const uint8_t *a, size_t count, size_t depth) {
    count_ = count, words_ = depth / 64;
    a_.assign(count * words_, 0);
    for (size_t i = 0; i < count; i++)
      for (size_t k = 0; k < p_.k; k++) set(&a_, i, k, a[i * p_.k + k]);
  }
  void set_panel(const uint8_t *b, size_t, size_t column) {
    b_.assign(kWidth * words_, 0);
    size_t width = std::min<size_t>(kWidth, p_.n - column);
    for (size_t k = 0; k < p_.k; k++)
      for (size_t n = 0; n < width; n++) set(&b_, n, k, b[k * p_.n + column + n]);
  }
  void run(size_t from, size_t, const uint32_t *, int32_t *sums) {
    if (from) return;  // all of k in one go
    kernels_of(p_).bit_rows(p_.kind == VA_MMA_B1_AND, a_.data(), b_.data(), count_, words_, sums);
  }

 private:
  void set(std::vector<uint64_t> *to, size_t row, size_t k, uint8_t bit) const {
    (*to)[row * words_ + k / 64] |= static_cast<uint64_t>(bit & 1) << (k % 64);
  }

  const Product &p_;
  size_t count_ = 0, words_ = 0;
  std::vector<uint64_t> a_, b_;
};

template <typename Word>
class VoltaJob {
 public:
  using Element = uint16_t;
  using Sum = Word;
  static constexpr size_t kStep = 4;

  explicit VoltaJob(const Product &p) : p_(p) {}

  void set_rows(const uint16_t *a, size_t count, size_t depth) {
    count_ = count, depth_ = depth;
    raw_.resize(count * depth), a_.resize(count * depth);
    copy_rows(a, count, p_.k, depth, raw_.data());
    kernels_.widen_halves(raw_.data(), count * depth, a_.data());
  }
  void set_panel(const uint16_t *b, size_t depth, size_t column) {
    raw_.resize(depth * kWidth), b_.resize(depth * kWidth);
    copy_panel(p_, b, depth, column, raw_.data());
    kernels_.widen_halves(raw_.data(), depth * kWidth, b_.data());
  }
  void run(size_t from, size_t depth, const uint32_t *, Word *sums) {
    if constexpr (sizeof(Word) == 2) {
      halves_.resize(count_ * kWidth);
      kernels_.widen_halves(sums, count_ * kWidth, halves_.data());
      multiply(true, from, depth, halves_.data());
      kernels_.narrow_halves(halves_.data(), count_ * kWidth, sums);
    } else {
      multiply(false, from, depth, reinterpret_cast<float *>(sums));
      for (size_t i = 0; i < count_ * kWidth; i++)
        if ((sums[i] & 0x7fffffffu) > 0x7f800000u) sums[i] = 0x7fffffffu;
    }
  }

 private:
  void multiply(bool half, size_t from, size_t depth, float *sums) {
    kernels_.volta_rows(half, a_.data() + from, depth_, b_.data() + from * kWidth, count_, depth,
                        sums);
  }

  const Product &p_;
  const Kernels &kernels_ = kernels_of(p_);
  size_t count_ = 0, depth_ = 0;
  std::vector<uint16_t> raw_;
  std::vector<float> a_, b_, halves_;
};

template <typename Job>
int multiply(const Product &p) {
  using Element = typename Job::Element;
  using Sum = typename Job::Sum;
  size_t depth = rounded_up(p.k, Job::kStep);
  if (p.index && depth != p.k) return 1;
  size_t b_depth = p.index ? 2 * depth : depth;
  size_t group = std::max<size_t>(16, kGroupNumbers / std::max<size_t>(depth, 1) / 16 * 16);
  std::vector<Sum> sums;
  Job job(p);
  for (size_t item = 0; item < p.batch; item++) {
    auto *a = static_cast<const Element *>(p.a) + item * p.a_stride;
    auto *b = static_cast<const Element *>(p.b) + item * p.b_stride;
    auto *c = static_cast<const Sum *>(p.c) + item * p.c_stride;
    auto *d = static_cast<Sum *>(p.d) + item * p.m * p.n;
    for (size_t row = 0; row < p.m; row += group) {
      size_t count = std::min<size_t>(group, p.m - row);
      const uint32_t *index = p.index ? p.index + row * p.k : nullptr;
      sums.resize(count * kWidth);
      job.set_rows(a + row * p.k, count, depth);
      for (size_t column = 0; column < p.n; column += kWidth) {
        job.set_panel(b, b_depth, column);
        load_sums(p, c + row * p.n + column, count, column, sums.data());
        for (size_t k = 0; k < depth; k += kChunk)
          job.run(k, std::min(kChunk, depth - k), index, sums.data());
        store_sums(p, sums.data(), count, column, d + row * p.n + column);
      }
    }
  }
  return 0;
}

int multiply_any(const Product &p) {
  switch (p.kind) {
    case VA_MMA_F16_F32: case VA_MMA_BF16_F32: return multiply<AlignedJob<uint16_t, uint32_t>>(p);
    case VA_MMA_F16_F16: return multiply<AlignedJob<uint16_t, uint16_t>>(p);
    case VA_MMA_TF32_F32: return multiply<AlignedJob<uint32_t, uint32_t>>(p);
    case VA_MMA_F64: return multiply<DoubleJob>(p);
    case VA_MMA_INT8: case VA_MMA_INT4: return multiply<IntegerJob>(p);
    case VA_MMA_B1_XOR: case VA_MMA_B1_AND: return multiply<BitJob>(p);
    case VA_MMA_VOLTA_F32: return multiply<VoltaJob<uint32_t>>(p);
    case VA_MMA_VOLTA_F16: return multiply<VoltaJob<uint16_t>>(p);
    default: return 1;
  }
}

}  // namespace
}  // namespace mma
}  // namespace va

extern "C" int va_mma_multiply(const va_mma_product *product) {
  try {
    return va::mma::multiply_any(*product);
  } catch (const std::bad_alloc &) {
    return 1;
  }
}
