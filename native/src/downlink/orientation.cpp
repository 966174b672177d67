#include "src/downlink/orientation.hpp"

namespace uplink::detail::downlink {

Int root(Int v) {
  uint64_t rest = bits_of(v), r = 0;
  for (uint64_t bit = uint64_t{1} << 62; bit != 0; bit >>= 2) {
    if (rest >= r + bit) {
      rest -= r + bit;
      r = (r >> 1) + bit;
    } else {
      r >>= 1;
    }
  }
  return wrapped(r);
}

Quantizer::Quantizer(int32_t lo, int32_t hi) {
  const Int span = Int{hi} - lo;
  step_ = (Int{46341} << 24) / span;
  per_ = (span * 8 << 24) / 46341;
  zero_ = Int{lo} + hi;
  unit_log_ = log((Int{92682} / span + 1) * 16);
}

Rotation Quantizer::unpack(const int32_t *c) const {
  Rotation q;
  Int rest = Int{1} << 32;
  for (int i = 0, k = 1; i < 4; i++) {
    if (i == c[0]) continue;
    q.e[i] = ((Int{c[k++]} * 2 - zero_) * step_ + (1 << 23)) >> 24;
    rest -= q.e[i] * q.e[i];
  }
  q.e[c[0]] = root(greatest(rest, 0));
  return q;
}

Rotation multiply(const Rotation &q, const Rotation &b) {
  const Int &qx = q.e[0], &qy = q.e[1], &qz = q.e[2], &qw = q.e[3];
  const Int &bx = b.e[0], &by = b.e[1], &bz = b.e[2], &bw = b.e[3];
  return {{(qw * bx + qx * bw + qy * bz - qz * by) >> 16, (qw * by - qx * bz + qy * bw + qz * bx) >> 16,
           (qw * bz + qx * by - qy * bx + qz * bw) >> 16, (qw * bw - qx * bx - qy * by - qz * bz) >> 16}};
}

Rotation exp(const Int (&from)[3]) {
  Int v[3], x = 0;
  for (int i = 0; i < 3; i++) {
    v[i] = clamp(from[i], -196608, 196608);
    x += v[i] * v[i];
  }
  x = least(x >> 18, 196608);
  const Int sin = one - (x * (one - (x * (one - (x * (one - x / 72) >> 16) / 42) >> 16) / 20) >> 16) / 6;
  const Int cos = one - (x * (one - (x * (one - (x * (one - x / 56) >> 16) / 30) >> 16) / 12) >> 16) / 2;
  return {{v[0] * sin >> 17, v[1] * sin >> 17, v[2] * sin >> 17, cos}};
}

Rotation turn(const Int (&v)[3]) {
  int n = 0;
  for (const Int &x : v)
    while ((absolute(x) >> n) > one) n++;
  Rotation q = exp({v[0] >> n, v[1] >> n, v[2] >> n});
  for (; n > 0; n--) q = multiply(q, q);
  return q;
}

} // namespace uplink::detail::downlink
