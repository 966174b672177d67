// Sets of sequence numbers.
#pragma once

#include "src/base/memory.hpp"

namespace uplink::detail {

// SequenceSet holds some of the newest sequences of a stream.
class SequenceSet {
public:
  // create makes room for n sequences, a power of two from 128 on.
  bool create(const Allocator &a, size_t n) {
    size_ = n;
    return words_.create(a, n / 64);
  }
  void set(uint64_t sequence, bool in) {
    size_t p = place(sequence);
    uint64_t bit = UINT64_C(1) << p % 64;
    words_[p / 64] = in ? words_[p / 64] | bit : words_[p / 64] & ~bit;
  }
  bool has(uint64_t sequence) const {
    size_t p = place(sequence);
    return (words_[p / 64] >> p % 64 & 1) != 0;
  }
  // below returns the set of the newest sequences up to top. Bit i stands for top - i.
  uint64_t below(uint64_t top) const {
    size_t p = place(top), word = p / 64, shift = p % 64;
    uint64_t v = words_[word] >> shift;
    if (shift != 0) v |= words_[(word + 1) & (words_.size() - 1)] << (64 - shift);
    return v;
  }
  // forget removes the sequences from first to last.
  void forget(uint64_t first, uint64_t last) {
    if (last - first >= size_) {
      clear();
      return;
    }
    for (uint64_t s = first; s <= last; s++) set(s, false);
  }
  void clear() {
    for (uint64_t &w : words_) w = 0;
  }

private:
  // place returns descending positions, so that below needs no reversal.
  size_t place(uint64_t sequence) const { return size_ - 1 - (static_cast<size_t>(sequence) & (size_ - 1)); }

  Array<uint64_t> words_;
  size_t size_ = 0;
};

// capacity_for returns the lowest power of two that is at least n and at least 128.
inline size_t capacity_for(size_t n) {
  size_t c = 128;
  while (c < n) c *= 2;
  return c;
}

} // namespace uplink::detail
