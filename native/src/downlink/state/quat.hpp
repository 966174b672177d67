// Orientations of snapshots and state. docs/spec/snapshots.md, 10.
#pragma once

#include "src/downlink/state/arithmetic.hpp"

namespace uplink::detail::state {

// Quat is x, y, z, w in Q16.
struct Quat {
  int64_t e[4];
};

// Grain converts between elements in Q16 and the components of a field.
class Grain {
public:
  Grain() = default;
  Grain(int64_t lo, int64_t hi);

  int64_t pack(int64_t e) const { return ((mul(e, per_) + (1 << 23)) >> 24) + zero_ * 8; }
  int64_t size(int64_t a) const {
    int64_t s = log(a * 16) - unit_log_;
    return s > 0 ? s : 0;
  }
  Quat unpack(const int32_t *row) const;

private:
  int64_t step_ = 0;
  int64_t per_ = 0;
  int64_t zero_ = 0;
  int64_t unit_log_ = 0;
};

Quat multiply(const Quat &q, const Quat &b);
// exp returns the rotation by a vector in Q16.
Quat exp(const int64_t v[3]);
// rotation is exp of any vector.
Quat rotation(const int64_t v[3]);

} // namespace uplink::detail::state
