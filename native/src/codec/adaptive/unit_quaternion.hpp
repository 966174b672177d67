// Orientations in fixed point. docs/spec/adaptive.md, 11.
#pragma once

#include "src/codec/adaptive/fixed.hpp"

namespace uplink::detail {

// Quat is x, y, z, w in Q30.
struct Quat {
  int64_t e[4];
};

// scale_of returns the size of a component step for quats with the given number of bits.
int64_t scale_of(int bits);
// unpack restores a quat from its components: the index and the other three elements.
Quat unpack(const int32_t *c, int64_t scale);
Quat product(const Quat &a, const Quat &b);
// exp returns the rotation by twice the given vector in Q30.
Quat exp(int64_t x, int64_t y, int64_t z);
// extended continues the rotation from a to b by rate in Q16.
Quat extended(const Quat &a, const Quat &b, int64_t rate);
// smallest returns the three elements other than the one at index, in Q4.
void smallest(const Quat &q, int index, int bits, int64_t out[3]);

} // namespace uplink::detail
