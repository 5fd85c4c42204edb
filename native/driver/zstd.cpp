// Zstandard frames (RFC 8878), decompression only, without dictionaries.
//
// Fatbins hold PTX this way.  Speed does not matter here, bounds do: every read and every write
// is checked, and anything unexpected ends in -1.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "va100/driver.h"

namespace {

struct Corrupt {};

void require(bool condition) {
  if (!condition)
    throw Corrupt{};
}

int high_bit(uint32_t value) { return 31 - __builtin_clz(value); }

struct Span {
  const uint8_t *data;
  size_t size;

  Span take(size_t bytes) {
    require(bytes <= size);
    const Span head{data, bytes};
    data += bytes;
    size -= bytes;
    return head;
  }
  uint64_t number(size_t bytes) {
    const Span field = take(bytes);
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i)
      value |= static_cast<uint64_t>(field.data[i]) << 8 * i;
    return value;
  }
};

// Bits from the lowest of the first byte on.
class ForwardBits {
public:
  explicit ForwardBits(Span span) : span_(span) {}
  uint32_t read(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i, ++position_) {
      require(position_ < span_.size * 8);
      value |= static_cast<uint32_t>(span_.data[position_ / 8] >> position_ % 8 & 1) << i;
    }
    return value;
  }
  void back(size_t bits) { position_ -= bits; }
  size_t bytes() const { return (position_ + 7) / 8; }

private:
  Span span_;
  size_t position_ = 0;
};

// Bits from the highest of the last byte down; the highest set bit only marks the end.
class BackwardBits {
public:
  explicit BackwardBits(Span span) : data_(span.data) {
    require(span.size > 0 && span.data[span.size - 1]);
    left_ = static_cast<int64_t>(span.size - 1) * 8 + high_bit(span.data[span.size - 1]);
  }
  // Bits below the beginning read as zero; left() then is negative.
  uint64_t read(int count) {
    const uint64_t value = peek(count);
    left_ -= count;
    return value;
  }
  uint64_t peek(int count) const {
    uint64_t value = 0;
    for (int64_t position = left_ - 1; position >= left_ - count; --position)
      value = value << 1 | bit(position);
    return value;
  }
  void skip(int count) { left_ -= count; }
  int64_t left() const { return left_; }

private:
  uint64_t bit(int64_t position) const {
    return position < 0 ? 0 : data_[position / 8] >> position % 8 & 1;
  }
  const uint8_t *data_;
  int64_t left_;
};

struct FseCell {
  uint8_t symbol;
  uint8_t bits;
  uint16_t base;
};

struct FseTable {
  int log = -1; // -1: not there
  std::vector<FseCell> cells;
};

FseTable build_fse(const std::vector<int> &counts, int log) {
  const uint32_t size = 1u << log;
  FseTable table;
  table.log = log;
  table.cells.resize(size);
  std::vector<uint32_t> next(counts.size());
  uint32_t high = size;
  for (size_t symbol = 0; symbol < counts.size(); ++symbol) {
    if (counts[symbol] != -1)
      continue;
    require(high > 0);
    table.cells[--high].symbol = static_cast<uint8_t>(symbol);
    next[symbol] = 1;
  }
  const uint32_t step = (size >> 1) + (size >> 3) + 3;
  uint32_t position = 0;
  for (size_t symbol = 0; symbol < counts.size(); ++symbol) {
    if (counts[symbol] <= 0)
      continue;
    next[symbol] = static_cast<uint32_t>(counts[symbol]);
    for (int i = 0; i < counts[symbol]; ++i) {
      table.cells[position].symbol = static_cast<uint8_t>(symbol);
      do
        position = (position + step) & (size - 1);
      while (position >= high);
    }
  }
  require(position == 0);
  for (FseCell &cell : table.cells) {
    const uint32_t state = next[cell.symbol]++;
    cell.bits = static_cast<uint8_t>(log - high_bit(state));
    cell.base = static_cast<uint16_t>((state << cell.bits) - size);
  }
  return table;
}

FseTable read_fse(Span *in, int most_log, size_t most_symbols) {
  ForwardBits bits(*in);
  const int log = static_cast<int>(bits.read(4)) + 5;
  require(log <= most_log);
  int left = 1 << log;
  std::vector<int> counts;
  while (left > 0) {
    require(counts.size() < most_symbols);
    const int width = high_bit(static_cast<uint32_t>(left + 1)) + 1;
    uint32_t value = bits.read(width);
    const uint32_t low_mask = (1u << (width - 1)) - 1;
    const uint32_t threshold = (1u << width) - 1 - static_cast<uint32_t>(left + 1);
    if ((value & low_mask) < threshold) {
      bits.back(1);
      value &= low_mask;
    } else if (value > low_mask) {
      value -= threshold;
    }
    const int count = static_cast<int>(value) - 1;
    left -= count < 0 ? -count : count;
    counts.push_back(count);
    while (count == 0) {
      const uint32_t zeros = bits.read(2);
      counts.insert(counts.end(), zeros, 0);
      require(counts.size() <= most_symbols);
      if (zeros != 3)
        break;
    }
  }
  require(left == 0);
  in->take(bits.bytes());
  return build_fse(counts, log);
}

class FseState {
public:
  FseState(const FseTable &table, BackwardBits *bits) : table_(table) {
    require(table.log >= 0);
    state_ = static_cast<uint32_t>(bits->read(table.log));
  }
  uint8_t symbol() const { return table_.cells[state_].symbol; }
  int needs() const { return table_.cells[state_].bits; }
  void advance(BackwardBits *bits) {
    const FseCell &cell = table_.cells[state_];
    state_ = cell.base + static_cast<uint32_t>(bits->read(cell.bits));
  }

private:
  const FseTable &table_;
  uint32_t state_;
};

struct HuffmanTable {
  int log = 0; // 0: not there
  std::vector<std::pair<uint8_t, uint8_t>> cells; // symbol, bits
};

std::vector<uint8_t> fse_weights(Span in) {
  const FseTable table = read_fse(&in, 6, 16);
  BackwardBits bits(in);
  FseState states[2] = {{table, &bits}, {table, &bits}};
  require(bits.left() >= 0);
  std::vector<uint8_t> weights;
  for (int turn = 0;; turn ^= 1) {
    require(weights.size() < 255);
    weights.push_back(states[turn].symbol());
    if (bits.left() < states[turn].needs()) {
      weights.push_back(states[turn ^ 1].symbol());
      return weights;
    }
    states[turn].advance(&bits);
  }
}

HuffmanTable read_huffman(Span *in) {
  const uint64_t head = in->number(1);
  std::vector<uint8_t> weights;
  if (head < 128) {
    weights = fse_weights(in->take(head));
  } else {
    const size_t count = head - 127;
    const Span packed = in->take((count + 1) / 2);
    for (size_t i = 0; i < count; ++i)
      weights.push_back(i % 2 ? packed.data[i / 2] & 15 : packed.data[i / 2] >> 4);
  }
  uint32_t sum = 0;
  for (const uint8_t weight : weights) {
    require(weight <= 12);
    sum += weight ? 1u << (weight - 1) : 0;
  }
  require(sum > 0);
  HuffmanTable table;
  table.log = high_bit(sum) + 1;
  require(table.log <= 11);
  const uint32_t rest = (1u << table.log) - sum;
  require((rest & (rest - 1)) == 0 && weights.size() < 256);
  weights.push_back(static_cast<uint8_t>(high_bit(rest) + 1));
  for (int weight = 1; weight <= table.log; ++weight)
    for (size_t symbol = 0; symbol < weights.size(); ++symbol)
      if (weights[symbol] == weight)
        table.cells.insert(table.cells.end(), size_t{1} << (weight - 1),
                           {static_cast<uint8_t>(symbol),
                            static_cast<uint8_t>(table.log + 1 - weight)});
  require(table.cells.size() == size_t{1} << table.log);
  return table;
}

void read_huffman_stream(const HuffmanTable &table, Span in, size_t count,
                         std::vector<uint8_t> *out) {
  BackwardBits bits(in);
  for (size_t i = 0; i < count; ++i) {
    const auto &[symbol, width] = table.cells[bits.peek(table.log)];
    bits.skip(width);
    require(bits.left() >= 0);
    out->push_back(symbol);
  }
  require(bits.left() == 0);
}

constexpr uint8_t kLengthBits[36] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  1,  1,
                                     1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
constexpr uint8_t kMatchBits[53] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0, 0,
                                    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  1,  1,  1, 1,
                                    2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

// What a length code stands for: each code begins where the one before ends.
template <size_t kCount> uint32_t code_base(const uint8_t (&bits)[kCount], size_t code,
                                            uint32_t first) {
  uint32_t base = first;
  for (size_t i = 0; i < code; ++i)
    base += 1u << bits[i];
  return base;
}

const std::vector<int> kLengthCounts = {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
                                        2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
const std::vector<int> kMatchCounts = {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};
const std::vector<int> kOffsetCounts = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1,  1,  1,  1, 1,
                                        1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};

class Frame {
public:
  Frame(uint8_t *out, size_t capacity) : first_(out), out_(out), limit_(out + capacity) {}

  void decode(Span *in) {
    require(in->number(4) == 0xFD2FB528u);
    const uint64_t descriptor = in->number(1);
    const bool single = descriptor & 0x20;
    static const size_t kDictionaryBytes[4] = {0, 1, 2, 4};
    static const size_t kSizeBytes[4] = {0, 2, 4, 8};
    if (!single)
      in->take(1); // window size: the whole output is the window here
    require(in->number(kDictionaryBytes[descriptor & 3]) == 0);
    const size_t size_flag = descriptor >> 6;
    in->take(size_flag ? kSizeBytes[size_flag] : single ? 1 : 0);
    start_ = out_;
    for (bool last = false; !last;) {
      const uint64_t head = in->number(3);
      last = head & 1;
      block(in, head >> 1 & 3, head >> 3);
    }
    if (descriptor & 4)
      in->take(4); // checksum of the content, not checked
  }

  uint8_t *end() const { return out_; }
  uint8_t *begin() const { return first_; }

private:
  void block(Span *in, uint64_t type, size_t size) {
    require(type != 3);
    if (type == 0) {
      append(in->take(size).data, size);
    } else if (type == 1) {
      const uint8_t byte = static_cast<uint8_t>(in->number(1));
      require(size <= static_cast<size_t>(limit_ - out_));
      std::memset(out_, byte, size);
      out_ += size;
    } else {
      Span body = in->take(size);
      const std::vector<uint8_t> literals = read_literals(&body);
      read_sequences(body, literals);
    }
  }

  std::vector<uint8_t> read_literals(Span *in) {
    require(in->size > 0);
    const unsigned type = in->data[0] & 3, format = in->data[0] >> 2 & 3;
    if (type < 2) {
      static const size_t kHead[4] = {1, 2, 1, 3};
      static const int kShift[4] = {3, 4, 3, 4};
      const size_t count = in->number(kHead[format]) >> kShift[format];
      require(count <= 1 << 20);
      if (type == 1)
        return std::vector<uint8_t>(count, static_cast<uint8_t>(in->number(1)));
      const Span raw = in->take(count);
      return std::vector<uint8_t>(raw.data, raw.data + raw.size);
    }
    static const size_t kHead[4] = {3, 3, 4, 5};
    static const int kWidth[4] = {10, 10, 14, 18};
    const uint64_t head = in->number(kHead[format]);
    const uint64_t mask = (1u << kWidth[format]) - 1;
    const size_t count = head >> 4 & mask;
    Span body = in->take(head >> (4 + kWidth[format]) & mask);
    if (type == 2)
      huffman_ = read_huffman(&body);
    require(huffman_.log > 0);
    std::vector<uint8_t> literals;
    literals.reserve(count);
    if (format == 0) {
      read_huffman_stream(huffman_, body, count, &literals);
      return literals;
    }
    size_t sizes[3];
    for (size_t &size : sizes)
      size = body.number(2);
    const size_t quarter = (count + 3) / 4;
    require(quarter * 3 <= count);
    for (const size_t size : sizes)
      read_huffman_stream(huffman_, body.take(size), quarter, &literals);
    read_huffman_stream(huffman_, body, count - 3 * quarter, &literals);
    return literals;
  }

  void choose(FseTable *table, unsigned mode, Span *in, const std::vector<int> &standard,
              int standard_log, int most_log) {
    if (mode == 0) {
      *table = build_fse(standard, standard_log);
    } else if (mode == 1) {
      const uint8_t symbol = static_cast<uint8_t>(in->number(1));
      table->log = 0;
      table->cells = {{symbol, 0, 0}};
    } else if (mode == 2) {
      *table = read_fse(in, most_log, 64);
    }
    require(table->log >= 0);
  }

  static size_t sequence_count(Span *in) {
    const uint64_t first = in->number(1);
    if (first < 128)
      return first;
    if (first < 255)
      return ((first - 128) << 8) + in->number(1);
    return in->number(2) + 0x7F00;
  }

  void read_sequences(Span in, const std::vector<uint8_t> &literals) {
    const size_t count = sequence_count(&in);
    size_t used = 0;
    if (count) {
      const uint64_t modes = in.number(1);
      choose(&lengths_, modes >> 6 & 3, &in, kLengthCounts, 6, 9);
      choose(&offsets_, modes >> 4 & 3, &in, kOffsetCounts, 5, 8);
      choose(&matches_, modes >> 2 & 3, &in, kMatchCounts, 6, 9);
      BackwardBits bits(in);
      FseState length(lengths_, &bits), offset(offsets_, &bits), match(matches_, &bits);
      for (size_t i = 0; i < count; ++i) {
        require(length.symbol() < 36 && match.symbol() < 53 && offset.symbol() < 32);
        const uint64_t value = (1ULL << offset.symbol()) + bits.read(offset.symbol());
        const size_t match_length = code_base(kMatchBits, match.symbol(), 3) +
                                    bits.read(kMatchBits[match.symbol()]);
        const size_t literal_length = code_base(kLengthBits, length.symbol(), 0) +
                                      bits.read(kLengthBits[length.symbol()]);
        require(bits.left() >= 0 && literal_length <= literals.size() - used);
        append(literals.data() + used, literal_length);
        used += literal_length;
        copy(distance(value, literal_length == 0), match_length);
        if (i + 1 == count)
          break;
        length.advance(&bits);
        match.advance(&bits);
        offset.advance(&bits);
      }
      require(bits.left() == 0);
    }
    append(literals.data() + used, literals.size() - used);
  }

  uint64_t distance(uint64_t value, bool no_literals) {
    if (value > 3) {
      recent_ = {value - 3, recent_[0], recent_[1]};
      return recent_[0];
    }
    const uint64_t index = value - 1 + no_literals;
    if (index == 0)
      return recent_[0];
    const uint64_t chosen = index == 3 ? recent_[0] - 1 : recent_[index];
    if (index != 1)
      recent_[2] = recent_[1];
    recent_[1] = recent_[0];
    recent_[0] = chosen;
    return chosen;
  }

  void append(const uint8_t *from, size_t bytes) {
    require(bytes <= static_cast<size_t>(limit_ - out_));
    if (bytes)
      std::memcpy(out_, from, bytes);
    out_ += bytes;
  }

  void copy(uint64_t back, size_t bytes) {
    require(back && back <= static_cast<uint64_t>(out_ - start_) &&
            bytes <= static_cast<size_t>(limit_ - out_));
    for (size_t i = 0; i < bytes; ++i, ++out_)
      *out_ = *(out_ - back); // may overlap on purpose
  }

  uint8_t *first_, *out_, *limit_;
  uint8_t *start_ = nullptr; // of this frame's content
  HuffmanTable huffman_;
  FseTable lengths_, offsets_, matches_;
  std::array<uint64_t, 3> recent_{{1, 4, 8}};
};

} // namespace

extern "C" int64_t va_expand_zstd(const void *from, size_t bytes, void *to, size_t capacity) {
  try {
    Span in{static_cast<const uint8_t *>(from), bytes};
    Frame frame(static_cast<uint8_t *>(to), capacity);
    frame.decode(&in); // what follows the frame is padding
    return frame.end() - frame.begin();
  } catch (...) {
    return -1;
  }
}
