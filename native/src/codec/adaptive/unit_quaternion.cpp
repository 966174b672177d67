#include "src/codec/adaptive/unit_quaternion.hpp"

#include "src/codec/adaptive/tables.hpp"

namespace uplink::detail {

namespace {

constexpr int64_t one = INT64_C(1) << 30;

int64_t root(int64_t v) {
  v = clamp(v, INT64_C(1) << 58, INT64_C(1) << 60) >> 30;
  int64_t y = seed[(v >> 23) - 32];
  for (int i = 0; i < 2; i++) y = mul(y, sub(3 * one, mul(v, mul(y, y) >> 30) >> 30)) >> 31;
  return mul(v, y) >> 30;
}

} // namespace

int64_t scale_of(int bits) {
  int64_t m = (INT64_C(1) << (bits - 1)) - 1;
  return (((INT64_C(1) << 45) / m) * 92682 + 32768) >> 16;
}

Quat unpack(const int32_t *c, int64_t scale) {
  Quat q;
  int64_t rest = INT64_C(1) << 60;
  for (int i = 0; i < 3; i++) {
    int64_t v = mul(c[1 + i], scale) >> 16;
    rest = sub(rest, mul(v, v));
    q.e[i + (i >= c[0] ? 1 : 0)] = v;
  }
  q.e[c[0]] = root(rest);
  return q;
}

Quat product(const Quat &a, const Quat &b) {
  // element returns (a.w * b.i + a.i * b.w + a.j * b.k - a.k * b.j) of the vector's element i.
  auto element = [&](int i, int j, int k) {
    return sub(add(add(mul(a.e[3], b.e[i]), mul(a.e[i], b.e[3])), mul(a.e[j], b.e[k])),
               mul(a.e[k], b.e[j])) >>
           30;
  };
  int64_t w = mul(a.e[3], b.e[3]);
  for (int i = 0; i < 3; i++) w = sub(w, mul(a.e[i], b.e[i]));
  return {{element(0, 1, 2), element(1, 2, 0), element(2, 0, 1), w >> 30}};
}

Quat exp(int64_t x, int64_t y, int64_t z) {
  int n = 0;
  auto large = [](int64_t v) { return absolute(v) >= 644245094; };
  while (large(x) || large(y) || large(z)) x >>= 1, y >>= 1, z >>= 1, n++;
  int64_t a = (x * x + y * y + z * z) >> 30;
  int64_t s = one - ((a * (178956971 - ((a * (8947849 - ((a * 213044) >> 30))) >> 30))) >> 30);
  int64_t c = 1491308 - ((a * 26631) >> 30);
  c = 44739243 - ((a * c) >> 30);
  c = 536870912 - ((a * c) >> 30);
  c = one - ((a * c) >> 30);
  Quat q{{(x * s) >> 30, (y * s) >> 30, (z * s) >> 30, c}};
  for (; n > 0; n--) q = product(q, q);
  return q;
}

Quat extended(const Quat &from, const Quat &b, int64_t rate) {
  Quat a = from;
  int64_t dot = 0;
  for (int i = 0; i < 4; i++) dot = add(dot, mul(a.e[i], b.e[i]));
  dot >>= 30;
  if (dot < 0) {
    for (int64_t &e : a.e) e = -e;
    dot = -dot;
  }
  int64_t u = one - dot < 0 ? 0 : one - dot;
  int64_t w = mul(mul(rate, rate) >> 16, u) >> 16;
  if (w > INT64_C(1) << 29) w = INT64_C(1) << 29;
  int64_t f = w - u;
  int64_t s = sub(one, mul(f, 357913941) >> 30);
  s = add(s, mul(mul(f >> 15, (w - 4 * u) >> 15), 35791394) >> 30);
  s = mul(rate, s) >> 30;
  int64_t c = add(one - w, mul(mul(w >> 15, f >> 15), 178956970) >> 30);
  int64_t k = sub(c, mul(s, u) >> 16);
  Quat q;
  for (int i = 0; i < 4; i++) q.e[i] = add(mul(b.e[i], k) >> 30, mul(sub(b.e[i], a.e[i]), s) >> 16);
  return q;
}

void smallest(const Quat &q, int index, int bits, int64_t out[3]) {
  int64_t k = ((INT64_C(1) << (bits - 1)) - 1) * 92682;
  if (q.e[index] < 0) k = -k;
  for (int i = 0; i < 3; i++) out[i] = add(mul(q.e[i + (i >= index ? 1 : 0)], k), INT64_C(1) << 41) >> 42;
}

} // namespace uplink::detail
