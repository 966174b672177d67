#include "src/downlink/state/quat.hpp"

namespace uplink::detail::state {

Grain::Grain(int64_t lo, int64_t hi) {
  int64_t span = hi - lo;
  step_ = (INT64_C(46341) << 24) / span;
  per_ = ((span * 8) << 24) / 46341;
  zero_ = lo + hi;
  unit_log_ = log((92682 / span + 1) * 16);
}

Quat Grain::unpack(const int32_t *row) const {
  Quat q{};
  int64_t left = INT64_C(1) << 32;
  for (int i = 0, k = 1; i < 4; i++) {
    if (i == row[0]) continue;
    q.e[i] = ((2 * int64_t{row[k++]} - zero_) * step_ + (1 << 23)) >> 24;
    left -= q.e[i] * q.e[i];
  }
  q.e[row[0]] = isqrt(left > 0 ? left : 0);
  return q;
}

Quat multiply(const Quat &q, const Quat &b) {
  auto sum = [](int64_t x, int64_t y, int64_t z, int64_t w) { return add(add(x, y), add(z, w)) >> 16; };
  auto p = [&](int i, int j) { return mul(q.e[i], b.e[j]); };
  auto n = [&](int i, int j) { return sub(0, mul(q.e[i], b.e[j])); };
  return {{sum(p(3, 0), p(0, 3), p(1, 2), n(2, 1)), sum(p(3, 1), n(0, 2), p(1, 3), p(2, 0)),
           sum(p(3, 2), p(0, 1), n(1, 0), p(2, 3)), sum(p(3, 3), n(0, 0), n(1, 1), n(2, 2))}};
}

Quat exp(const int64_t v[3]) {
  int64_t c[3];
  for (int i = 0; i < 3; i++) c[i] = clamp(v[i], -196608, 196608);
  int64_t x = (c[0] * c[0] + c[1] * c[1] + c[2] * c[2]) >> 18;
  if (x > 196608) x = 196608;
  auto term = [x](int64_t inner, int64_t n) { return ((x * inner) >> 16) / n; };
  int64_t sin = 65536 - term(65536 - term(65536 - term(65536 - x / 72, 42), 20), 6);
  int64_t cos = 65536 - term(65536 - term(65536 - term(65536 - x / 56, 30), 12), 2);
  return {{(c[0] * sin) >> 17, (c[1] * sin) >> 17, (c[2] * sin) >> 17, cos}};
}

Quat rotation(const int64_t v[3]) {
  int n = 0;
  auto large = [&](int i) { return absolute(v[i]) >> n > 65536; };
  while (large(0) || large(1) || large(2)) n++;
  const int64_t small[3] = {v[0] >> n, v[1] >> n, v[2] >> n};
  Quat q = exp(small);
  for (; n > 0; n--) q = multiply(q, q);
  return q;
}

} // namespace uplink::detail::state
