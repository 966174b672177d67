// The name that was probably meant.
#pragma once

#include "uplink/base.hpp"

namespace uplink::detail {

// Nearest finds the candidate with the fewest insertions and deletions of bytes from a name,
// and among these the one that has the most bytes in common with its start. The case does not count.
class Nearest {
public:
  explicit Nearest(Bytes name) : name_{name.data, name.size < max_size ? name.size : max_size} {}
  void consider(Bytes candidate) {
    const size_t d = distance(candidate);
    if (d >= distance_) return;
    distance_ = d;
    best_ = candidate;
  }
  // best returns the nearest candidate, or no bytes without one.
  Bytes best() const { return best_; }

private:
  static constexpr size_t max_size = 64; // bytes that count: the time grows with its square

  static int lower(uint8_t c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; }
  size_t distance(Bytes other) const {
    size_t row[max_size + 1];
    const size_t n = other.size < max_size ? other.size : max_size;
    for (size_t k = 0; k <= n; k++) row[k] = k;
    for (size_t i = 0; i < name_.size; i++) {
      size_t diagonal = row[0];
      row[0] = i + 1;
      for (size_t k = 0; k < n; k++) {
        const size_t replaced = diagonal + (lower(name_.data[i]) == lower(other.data[k]) ? 0 : 2);
        diagonal = row[k + 1];
        size_t least = row[k] < row[k + 1] ? row[k] + 1 : row[k + 1] + 1;
        if (replaced < least) least = replaced;
        row[k + 1] = least;
      }
    }
    size_t common = 0;
    while (common < n && common < name_.size && lower(name_.data[common]) == lower(other.data[common]))
      common++;
    return 256 * (row[n] + 1) - common;
  }

  Bytes name_;
  Bytes best_;
  size_t distance_ = SIZE_MAX;
};

} // namespace uplink::detail
