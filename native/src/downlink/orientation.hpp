// Orientations of snapshots and state. docs/spec/snapshots.md, 10.
#pragma once

#include "src/downlink/integer.hpp"

namespace uplink::detail::downlink {

constexpr Int one = 65536;

// Rotation is a quaternion, Q16: x, y, z, w.
struct Rotation {
  Int e[4];
};

// Quantizer converts between elements in Q16 and components of a field.
class Quantizer {
public:
  Quantizer() = default;
  Quantizer(int32_t lo, int32_t hi);

  // pack returns a component in Q4.
  Int pack(Int e) const { return ((e * per_ + (1 << 23)) >> 24) + zero_ * 8; }
  Int size(Int a) const { return greatest(log(a * 16) - unit_log_, 0); }
  Rotation unpack(const int32_t *c) const;

private:
  Int step_, per_, zero_, unit_log_;
};

Rotation multiply(const Rotation &q, const Rotation &b);
// exp returns the rotation by a vector in Q16 with elements of up to 3.
Rotation exp(const Int (&from)[3]);
// turn is exp for any vector.
Rotation turn(const Int (&v)[3]);

} // namespace uplink::detail::downlink
