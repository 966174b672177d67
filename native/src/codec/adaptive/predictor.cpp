#include "src/codec/adaptive/predictor.hpp"

#include <cstring>

namespace uplink::detail {

bool differs(const ByteString &a, const ByteString &b) {
  return a.size != b.size || (a.size > 0 && std::memcmp(a.data, b.data, a.size) != 0);
}

Turns::Turns(const Group &g, const Reference &r, const int32_t *now, unsigned wanted) {
  q = unpack(r.b.c + g.first, g.scale);
  if (g.family == Family::turned) {
    int64_t a[3];
    for (size_t i = 0; i < 3; i++) {
      int64_t sum = static_cast<int64_t>(now[g.derivative + i]) + r.b.c[g.derivative + i];
      a[i] = clamp(mul(sum, mul(r.d, g.factor)) >> 8, -(INT64_C(8) << 30), INT64_C(8) << 30);
    }
    t0 = product(exp(a[0], a[1], a[2]), q);
  } else {
    t0 = r.r1 == 0 ? q : extended(unpack(r.h1.c + g.first, g.scale), q, r.r1);
    if ((wanted & 4) != 0) t1 = r.rd == 0 ? q : extended(unpack(r.hd.c + g.first, g.scale), q, r.rd);
  }
  likely = 0;
  int64_t most = absolute(t0.e[0]), runner_up = -1;
  for (int i = 1; i < 4; i++) {
    int64_t v = absolute(t0.e[i]);
    if (v > most) {
      runner_up = most;
      most = v;
      likely = i;
    } else if (v > runner_up) {
      runner_up = v;
    }
  }
  int64_t m = 30 - bit_length(static_cast<uint64_t>(most - runner_up));
  ambiguity = static_cast<int>(clamp(m, 0, 9));
}

void Turns::chart(const Group &g, int index, unsigned wanted, int32_t base[3], Features features[3]) const {
  int64_t b[3], a[3];
  smallest(q, index, g.field->bits, b);
  for (int k = 0; k < 3; k++) base[k] = static_cast<int32_t>((b[k] + 8) >> 4);
  smallest(t0, index, g.field->bits, a);
  for (int k = 0; k < 3; k++) features[k].f[0] = a[k] - shl(base[k], 4);
  if (g.family == Family::turned || (wanted & 4) == 0) return;
  smallest(t1, index, g.field->bits, a);
  for (int k = 0; k < 3; k++) features[k].f[1] = a[k] - shl(base[k], 4);
}

} // namespace uplink::detail
