// Finds the most similar name, for messages about misspelled names.
#pragma once

#include "uplink/base.hpp"

namespace uplink::detail {

// Nearest finds the candidate with the fewest insertions and deletions of bytes from a name. Among
// equal ones it prefers the longest common prefix. Case is ignored.
class Nearest {
public:
  explicit Nearest(Bytes name) : name_{name.data, name.size < max_size ? name.size : max_size} {
    for (size_t i = 0; i < name_.size; i++) at_[lower(name_.data[i])] |= uint64_t{1} << i;
  }
  void consider(Bytes candidate) {
    const size_t d = distance(candidate);
    if (d >= distance_) return;
    distance_ = d;
    best_ = candidate;
  }
  // best returns the nearest candidate, or no bytes if there was none.
  Bytes best() const { return best_; }

private:
  // Number of bytes of a name that are compared, at most the bits of a uint64_t. It bounds the
  // time, because a server can send many long names.
  static constexpr size_t max_size = 64;

  static uint8_t lower(uint8_t c) { return c >= 'A' && c <= 'Z' ? static_cast<uint8_t>(c - 'A' + 'a') : c; }
  size_t distance(Bytes other) const {
    const size_t n = other.size < max_size ? other.size : max_size;
    // Bit i of rows is 0 if byte i of the name extends the longest common subsequence of the
    // candidate so far and the name up to byte i (Hyyrö, "Bit-Parallel LCS-length Computation
    // Revisited", 2004).
    uint64_t rows = ~uint64_t{0};
    for (size_t k = 0; k < n; k++) {
      const uint64_t matches = rows & at_[lower(other.data[k])];
      rows = (rows + matches) | (rows - matches);
    }
    size_t subsequence = 0;
    for (size_t i = 0; i < name_.size; i++) subsequence += (rows >> i & 1) == 0 ? 1 : 0;
    size_t common = 0;
    while (common < n && common < name_.size && lower(name_.data[common]) == lower(other.data[common]))
      common++;
    return 256 * (name_.size + n + 1 - 2 * subsequence) - common;
  }

  uint64_t at_[256] = {}; // bit i: the name has this byte at index i
  Bytes name_;
  Bytes best_;
  size_t distance_ = SIZE_MAX;
};

} // namespace uplink::detail
