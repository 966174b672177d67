// 64-bit integers that wrap, and functions on them. docs/spec/snapshots.md, 1.
#pragma once

#include <cstdint>

#include "src/codec/bits.hpp"

namespace uplink::detail::downlink {

// Int is an integer whose operations wrap and whose right shift is arithmetic. Signed overflow
// would be undefined in C++.
struct Int {
  int64_t v = 0;

  constexpr Int() = default;
  constexpr Int(int64_t value) : v(value) {}
  explicit constexpr operator int64_t() const { return v; }
  constexpr size_t index() const { return static_cast<size_t>(v); }
};

constexpr Int wrapped(uint64_t v) {
  return {static_cast<int64_t>(v)};
}
constexpr uint64_t bits_of(Int a) {
  return static_cast<uint64_t>(a.v);
}
constexpr Int operator+(Int a, Int b) {
  return wrapped(bits_of(a) + bits_of(b));
}
constexpr Int operator-(Int a, Int b) {
  return wrapped(bits_of(a) - bits_of(b));
}
constexpr Int operator-(Int a) {
  return wrapped(0 - bits_of(a));
}
constexpr Int operator*(Int a, Int b) {
  return wrapped(bits_of(a) * bits_of(b));
}
// A division rounds toward zero. The divisor is positive.
constexpr Int operator/(Int a, Int b) {
  return {a.v / b.v};
}
constexpr Int operator<<(Int a, int n) {
  return wrapped(bits_of(a) << n);
}
constexpr Int operator>>(Int a, int n) {
  return {a.v >> n};
}
static_assert((INT64_C(-3) >> 1) == -2, "right shifts of negative numbers must be arithmetic");
constexpr Int &operator+=(Int &a, Int b) {
  return a = a + b;
}
constexpr Int &operator-=(Int &a, Int b) {
  return a = a - b;
}
constexpr bool operator<(Int a, Int b) {
  return a.v < b.v;
}
constexpr bool operator>(Int a, Int b) {
  return a.v > b.v;
}
constexpr bool operator<=(Int a, Int b) {
  return a.v <= b.v;
}
constexpr bool operator>=(Int a, Int b) {
  return a.v >= b.v;
}
constexpr bool operator==(Int a, Int b) {
  return a.v == b.v;
}
constexpr bool operator!=(Int a, Int b) {
  return a.v != b.v;
}

constexpr Int absolute(Int a) {
  return a < 0 ? -a : a;
}
constexpr Int least(Int a, Int b) {
  return a < b ? a : b;
}
constexpr Int greatest(Int a, Int b) {
  return a > b ? a : b;
}
constexpr Int clamp(Int a, Int lo, Int hi) {
  return least(greatest(a, lo), hi);
}
// modulo returns v modulo n > 0, at least 0.
constexpr Int modulo(Int a, Int n) {
  const Int r = {a.v % n.v};
  return r < 0 ? r + n : r;
}
constexpr Int wrap(Int d, Int n) {
  return modulo(d + n / 2, n) - n / 2;
}
// sign3 returns 0 for 0, 1 for positive and 2 for negative numbers.
constexpr Int sign3(Int a) {
  return a > 0 ? 1 : a < 0 ? 2 : 0;
}
// part returns 1/i in Q16, 0 for 0.
constexpr Int part(Int i) {
  return i == 0 ? Int{0} : (65536 + i / 2) / i;
}

Int root(Int v); // square root, rounded down

// log returns a binary logarithm in Q8.
inline Int log(Int v) {
  const uint64_t x = bits_of(absolute(v) + 12);
  const int n = bit_length(x);
  const uint64_t fraction = x << (64 - n) << 1 >> 56;
  return Int{n - 5} * 256 + wrapped(fraction);
}

constexpr Int level(Int s) {
  return clamp((s + 256) * 3 >> 8, 0, 39);
}

constexpr size_t terms = 16;

// predict returns the weighted sum of terms. Weights are in Q16.
inline Int predict(const int32_t (&w)[terms], const Int (&x)[terms]) {
  Int sum = 0;
  for (size_t i = 0; i < terms; i++) sum += Int{w[i]} * x[i];
  return sum >> 16;
}

} // namespace uplink::detail::downlink
