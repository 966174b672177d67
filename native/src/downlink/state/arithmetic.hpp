// The arithmetic of snapshots on plain integers. State packets cannot cause overflows.
// docs/spec/snapshots.md, 1.
#pragma once

#include "src/codec/adaptive/fixed.hpp"
#include "src/downlink/integer.hpp"

namespace uplink::detail::state {

inline int64_t mod(int64_t v, int64_t n) {
  return downlink::modulo(v, n).v;
}
// wrap returns the difference d of two values with modulus n, in the range nearest to 0.
inline int64_t wrap(int64_t d, int64_t n) {
  return downlink::wrap(d, n).v;
}
inline int64_t log(int64_t v) {
  return downlink::log(v).v;
}

constexpr int levels = 40;

inline int level(int64_t scale) {
  return static_cast<int>(downlink::level(scale).v);
}

} // namespace uplink::detail::state
