// Fixed-point arithmetic of snapshots and state. docs/spec/snapshots.md, 1.
#pragma once

#include "src/codec/adaptive/fixed.hpp"

namespace uplink::detail::state {

inline int64_t mod(int64_t v, int64_t n) {
  int64_t r = v % n;
  return r < 0 ? r + n : r;
}

// wrap returns the difference d of two values that wrap after n, nearest to 0.
inline int64_t wrap(int64_t d, int64_t n) {
  return mod(d + n / 2, n) - n / 2;
}

// log returns the binary logarithm of |v| + 12, Q8, less 5.
inline int64_t log(int64_t v) {
  uint64_t x = static_cast<uint64_t>(absolute(v)) + 12;
  int n = bit_length(x);
  uint64_t fraction = (n >= 9 ? x >> (n - 9) : x << (9 - n)) & 255;
  return (n - 5) * 256 + static_cast<int64_t>(fraction);
}

constexpr int levels = 40;

inline int level(int64_t scale) {
  return static_cast<int>(clamp(((scale + 256) * 3) >> 8, 0, levels - 1));
}

// isqrt returns the floor of the square root of v, which is 0 to 2^32.
inline int64_t isqrt(int64_t v) {
  int64_t root = 0;
  for (int64_t bit = 65536; bit > 0; bit >>= 1) {
    if ((root + bit) * (root + bit) <= v) root += bit;
  }
  return root;
}

} // namespace uplink::detail::state
