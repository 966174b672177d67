// The range coder of state packets. docs/spec/state.md, 3 and 5.
#pragma once

#include "src/codec/rangecoder.hpp"
#include "src/downlink/state/plan.hpp"

namespace uplink::detail::state {

// Frequencies are the cumulative frequencies of the symbols of each level.
struct Frequencies {
  uint16_t cumulative[levels][65];
};

constexpr int64_t size_of_symbol(int s) {
  return s < 4 ? s : static_cast<int64_t>(2 + (s & 1)) << ((s - 2) / 2);
}

constexpr Frequencies make_frequencies() {
  Frequencies out{};
  for (int l = 0; l < levels; l++) {
    constexpr int64_t mids[3] = {72, 90, 114};
    int64_t mid = (mids[l % 3] << (l / 3)) * 2;
    auto above = [mid](int s) {
      return s == 0 ? 65472 : 65472 * mid / (mid + (size_of_symbol(s) << 8) - 128);
    };
    int64_t sum = 0, frequencies[64] = {};
    for (int s = 0; s < 64; s++) {
      frequencies[s] = above(s) + 1 - (s < 63 ? above(s + 1) : 0);
      sum += frequencies[s];
    }
    frequencies[0] += 65536 - sum;
    int64_t total = 0;
    for (int s = 0; s < 64; s++) {
      out.cumulative[l][s] = static_cast<uint16_t>(total);
      total += frequencies[s];
    }
  }
  return out;
}

inline constexpr Frequencies state_frequencies = make_frequencies();

// StateCoder decodes the coded part of a packet. It sets bad for input that no sender produces.
class StateCoder {
public:
  void begin(Bytes b) {
    decoder_.begin(b.data, b.size, 0);
    bad_ = false;
  }
  bool bit(Chance &c) {
    bool b = decoder_.decide(65536u - c.p);
    int32_t to = b ? 65535 : 0;
    c.p =
        static_cast<uint16_t>(clamp(c.p + ((int64_t{to - c.p} * (131072 / (2 * c.n + 3))) >> 16), 24, 65512));
    if (c.n < 45) c.n++;
    return b;
  }
  int64_t number(int l) {
    unsigned s = decoder_.symbol(state_frequencies.cumulative[l]);
    if (s == 0) return 0;
    unsigned rest = s < 4 ? 0 : (s - 2) / 2;
    uint64_t x = decoder_.raw(rest + 1);
    int64_t size = size_of_symbol(static_cast<int>(s)) | static_cast<int64_t>(x >> 1);
    return (x & 1) != 0 ? -size : size;
  }
  int64_t rare(StateModels *m, Rare which, int l) { return bit(m->rare[which]) ? number(l) : 0; }
  uint64_t raw(unsigned n) { return decoder_.raw(n); }
  int32_t bounded(int64_t v, int32_t lo, int32_t hi) {
    if (v >= lo && v <= hi) return static_cast<int32_t>(v);
    bad_ = true;
    return lo;
  }
  int32_t uniform(int32_t lo, int32_t hi) {
    uint32_t span = static_cast<uint32_t>(int64_t{hi} - lo);
    return bounded(lo + static_cast<int64_t>(decoder_.raw(static_cast<unsigned>(bit_length(span)))), lo, hi);
  }
  // changed_byte decodes a byte against its old value. differed reports whether the previous byte
  // differed.
  uint8_t changed_byte(Chance (&differs)[2], Chance (&flip)[8], bool *differed, uint8_t was) {
    *differed = bit(differs[*differed ? 1 : 0]);
    if (!*differed) return was;
    unsigned x = 0;
    for (unsigned i = 0; i < 8; i++) x |= static_cast<unsigned>(bit(flip[i])) << i;
    return static_cast<uint8_t>(was ^ x);
  }
  void fail() { bad_ = true; }
  bool bad() const { return bad_; }
  bool finish() const { return !bad_ && decoder_.finish(); }

private:
  RangeDecoder decoder_;
  bool bad_ = false;
};

} // namespace uplink::detail::state
