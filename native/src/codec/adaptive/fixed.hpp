// Fixed-point arithmetic that both ends agree on. docs/spec/adaptive.md, 1.
#pragma once

#include <cstdint>

#include "src/codec/bits.hpp"

namespace uplink::detail {

// Sums and products wrap. Signed overflow would be undefined in C++.
inline int64_t add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
inline int64_t mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
inline int64_t shl(int64_t a, int n) {
  return n >= 64 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << n);
}

// shr shifts arithmetically. C++17 leaves the result to the implementation; all compilers shift
// arithmetically.
inline int64_t shr(int64_t a, int n) {
  return a >> n;
}
static_assert((INT64_C(-3) >> 1) == -2, "right shifts of negative numbers must be arithmetic");

// The following functions are called for each coded number. They do not branch, because the signs
// and sizes of numbers are hard to predict.

inline int64_t negated_if(bool negative, int64_t a) {
  int64_t mask = -static_cast<int64_t>(negative);
  return sub(a ^ mask, mask);
}
inline int64_t absolute(int64_t a) {
  return negated_if(a < 0, a);
}
inline int64_t clamp(int64_t x, int64_t lo, int64_t hi) {
  return x < lo ? lo : x > hi ? hi : x;
}

// log is the binary logarithm of x + 1, for x >= 0, in Q10.
constexpr int32_t log(int64_t x) {
  uint64_t v = static_cast<uint64_t>(x) + 1;
  int n = highest_bit(v);
  return n << 10 | static_cast<int32_t>(v << (63 - n) >> 53 & 1023);
}

// wrap returns the number of w bits, in two's complement, that equals x modulo 2^w; x if w is 0.
inline int64_t wrap(int64_t x, int w) {
  int unused = (64 - w) & 63;
  return shr(shl(x, unused), unused);
}

// toward moves a probability towards 1 or 0.
inline uint16_t toward(uint16_t p, bool yes) {
  int v = p;
  return static_cast<uint16_t>(yes ? v + ((65500 - v) >> 4) : v - (v >> 4));
}

} // namespace uplink::detail
