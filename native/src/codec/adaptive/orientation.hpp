// Orientations in fixed point. docs/spec/adaptive.md, 11.
#pragma once

#include "src/codec/adaptive/fixed.hpp"

namespace uplink::detail {

// Quat is x, y, z, w in Q30.
struct Quat {
  int64_t e[4];
};

// scale_of returns the size of a step of the components of a quat of a number of bits.
int64_t scale_of(int bits);
// unpack restores a quat by its components: the index and three others.
Quat unpack(const int32_t *c, int64_t scale);
Quat product(const Quat &a, const Quat &b);
// exp returns the rotation by twice a vector in Q30.
Quat exp(int64_t x, int64_t y, int64_t z);
// extended returns where b is when it turns on as it did since a; rate is Q16.
Quat extended(const Quat &a, const Quat &b, int64_t rate);
// smallest returns the three components other than that of index, Q4.
void smallest(const Quat &q, int index, int bits, int64_t out[3]);

} // namespace uplink::detail
