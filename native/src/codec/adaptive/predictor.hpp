// Predictions, and the sizes of residuals. docs/spec/adaptive.md, 8 to 11.
#pragma once

#include "src/codec/adaptive/reference.hpp"
#include "src/codec/adaptive/state.hpp"
#include "src/codec/adaptive/tables.hpp"
#include "src/codec/adaptive/unit_quaternion.hpp"

namespace uplink::detail {

// input_masks contains, for each set of inputs, -1 for each input in it, and 0 for the others.
struct InputMasks {
  int16_t of[16][4] = {};

  constexpr InputMasks() {
    for (int in = 0; in < 16; in++) {
      for (int i = 0; i < 4; i++) of[in][i] = static_cast<int16_t>(-(in >> i & 1));
    }
  }
};
constexpr InputMasks input_masks;

inline uint32_t chance(int bias, const int16_t w[4], unsigned inputs) {
  const int16_t *mask = input_masks.of[inputs & 15];
  int v = bias;
  for (int i = 0; i < 4; i++) v += w[i] & mask[i];
  v = v < -16384 ? -16384 : v > 16383 ? 16383 : v;
  return squash[(v + 16384) >> 6];
}

// Trace summarizes the residuals coded before, in logarithms.
struct Trace {
  int32_t previous = 0; // size of the previous residual in this group; 0: none
  int32_t run = 0;

  struct Terms {
    int32_t n, r, o;
  };

  Terms terms(int32_t m, int64_t offset) const {
    int32_t n = limited(previous - m, 4096) & -static_cast<int32_t>(previous != 0);
    return {n, run, limited(log(add(shl(absolute(offset), 6), 19)) - m, 4096)};
  }
  static int32_t lean(int32_t m, const int16_t l[3], const Terms &t) {
    int32_t v = m + ((t.n * l[0] + t.r * l[1] + t.o * l[2]) >> 12);
    return v < 3072 ? 3072 : v;
  }
  void observe(int32_t size, int32_t m) {
    previous = size;
    run += (limited(size - m, 3072) - run) >> 2;
  }

private:
  static int32_t limited(int32_t x, int32_t most) { return x < -most ? -most : x > most ? most : x; }
};

// Row is the row of the frequency table for a magnitude, and the number of low bits that are coded
// raw.
struct Row {
  int row;
  int shift;

  explicit Row(int32_t magnitude) : row((magnitude - 3072) >> 8), shift(0) {
    if (row < static_cast<int>(symbol_rows)) return;
    shift = (row - 48) / 4 + 1;
    row -= 4 * shift;
  }
};

// symbol_of returns the symbol of a magnitude.
inline unsigned symbol_of(uint64_t v) {
  int e = highest_bit(v | 1);
  return static_cast<unsigned>(2 * e) + static_cast<unsigned>(v >> (e - (e > 0 ? 1 : 0)) & 1);
}
// low_of returns the lowest magnitude of a symbol other than 0.
inline uint64_t low_of(unsigned s) {
  return (UINT64_C(2) + s % 2) << (s / 2) >> 1;
}
// extra_of returns the number of bits that select a magnitude within a symbol.
inline unsigned extra_of(unsigned s) {
  return s / 2 - (s > 1 ? 1 : 0);
}

// next returns the next step of a counter.
inline int32_t next_count(const Group &g, size_t k, const Reference &r) {
  size_t c = g.first + k;
  int64_t step = wrap(static_cast<int64_t>(r.b.c[c]) - r.h1.c[c], g.width(k));
  return g.fit(add(r.b.c[c], add(mul(step, r.r1), 32768) >> 16), k);
}

inline bool counts_on(const Group &g, const int32_t *c, const Reference &r) {
  for (size_t k = 0; k < g.count; k++) {
    if (c[g.first + k] != next_count(g, k, r)) return false;
  }
  return true;
}

// ByteString is a byte string of a frame.
struct ByteString {
  uint8_t *data;
  size_t size;
};

inline ByteString string_of(const Model &m, const Group &g, const FrameView &f) {
  size_t n = static_cast<size_t>(g.field->string);
  return {f.bytes + m.schema->offsets[n], f.lengths[n]};
}

bool differs(const ByteString &a, const ByteString &b);

// group_inputs returns the inputs of a group that the reference determines, and whether frame x
// differs from the reference.
inline unsigned group_inputs(const Model &m, const Group &g, const Reference &r, const FrameView &x) {
  unsigned in = 0;
  if (g.type == Group::Type::string) {
    if (differs(string_of(m, g, r.b), string_of(m, g, r.p))) in = Inputs::moved;
    return differs(string_of(m, g, r.b), string_of(m, g, x)) ? in | Inputs::differs : in;
  }
  for (size_t k = 0; k < g.count; k++) in |= r.changes[g.first + k];
  return in;
}

// Features are the features of one component, Q4.
struct Features {
  int64_t f[9];
};

constexpr unsigned all_experts = 15;

// number_features sets the features of a component outside of quats that the experts in wanted
// need, a set of bits. now contains the components of the current frame that are known so far.
template <Family family>
inline void number_features(const Model &m, const Group &g, size_t k, const Reference &r, const int32_t *now,
                            unsigned wanted, Features &out) {
  size_t c = g.first + k;
  if constexpr (family == Family::derived) {
    size_t v = g.derivative + k;
    int64_t b = r.b.c[v], n = now[v], df = mul(r.d, g.factor);
    out.f[0] = mul(add(b, n), df) >> 16;
    if ((wanted & 2) == 0) return;
    int64_t bend = sub(shl(n - b, 16), mul(b - r.h1.c[v], r.r1)) >> 4;
    out.f[1] = mul(bend, df / 3) >> 28;
    out.f[2] = mul(n - b, df) >> 16;
  } else {
    int w = g.width(k);
    auto slope = [&](const FrameView &a, const FrameView &b, int64_t rate) {
      return mul(wrap(static_cast<int64_t>(a.c[c]) - b.c[c], w), rate) >> 12;
    };
    if ((wanted & 6) != 0) out.f[0] = slope(r.b, r.h1, r.r1);
    if ((wanted & 4) != 0) {
      out.f[1] = slope(r.hd, r.hdd, r.rdd);
      out.f[2] = slope(r.h1, r.h2, r.r12);
      out.f[3] = slope(r.b, r.hd, r.rd);
      out.f[4] = slope(r.h2, r.h4, r.r24);
    }
    if (family != Family::angled || (wanted & 8) == 0) return;
    for (int i = 0; i < 2; i++) {
      int y = m.scalars[i];
      out.f[5 + 2 * i] = y < 0 ? 0 : shl(now[y] * r.d, 6);
      out.f[6 + 2 * i] = y < 0 ? 0 : shl(r.b.c[y] * r.d, 6);
    }
  }
}

// expert_sum returns the prediction of an expert, as an offset in Q16.
template <Family family> inline int64_t expert_sum(unsigned e, const ClassState &s, const Features &x) {
  const int16_t *w = s.weight, *v = s.scalar_weight;
  switch (family) {
  case Family::plain:
  case Family::angled:
    if (e == 0) return 0;
    if (e == 1) return mul(w[0], x.f[0]);
    if (e == 2)
      return add(add(add(mul(w[1], x.f[0]), mul(w[2], x.f[1])), add(mul(w[3], x.f[2]), mul(w[4], x.f[3]))),
                 mul(w[5], x.f[4]));
    return add(add(mul(v[0], x.f[5]), mul(v[1], x.f[6])), add(mul(v[2], x.f[7]), mul(v[3], x.f[8])));
  case Family::derived:
    if (e == 0) return mul(w[0], x.f[0]);
    return add(add(mul(w[1], x.f[0]), mul(w[2], x.f[1])), mul(w[3], x.f[2]));
  case Family::turned:
    return mul(w[0], x.f[0]);
  case Family::extrapolated:
    break;
  }
  return e == 0 ? 0 : mul(w[e - 1], x.f[e - 1]);
}

// Distance is the interpolation of a prediction between two classes for distance d.
struct Distance {
  size_t cls, from, low, high;
  int64_t share_of;

  explicit Distance(int64_t d) {
    cls = d == 1 ? 0 : d <= 5 ? 1 : 2;
    from = d <= 4 ? 0 : 1;
    share_of = share[d > 64 ? 64 : d];
    low = share_of >= 256 ? from + 1 : from;
    high = share_of == 0 ? from : from + 1;
  }
};

struct Prediction {
  int64_t offset;
  int32_t magnitude;
  unsigned shape;
};

template <Family family>
inline Prediction predict(const ComponentState &c, const Distance &at, const Features &x,
                          const Trace &trace) {
  const ClassState &low = c.of[at.low], &high = c.of[at.high];
  int64_t sum = expert_sum<family>(low.expert, low, x);
  if (at.high != at.low) {
    int64_t other = expert_sum<family>(high.expert, high, x);
    sum = add(sum, mul(sub(other, sum) >> 8, at.share_of));
  }
  Prediction p;
  p.offset = add(sum, 32768) >> 16;
  int64_t a = c.of[at.from].expected, z = c.of[at.from + 1].expected;
  int32_t m = static_cast<int32_t>(a + (((z - a > -200 ? z - a : -200) * at.share_of) >> 8));
  p.magnitude = Trace::lean(m, c.lean, trace.terms(m, p.offset));
  p.shape = c.of[at.cls].shape;
  return p;
}

// Turns contains the predictions of an orientation.
struct Turns {
  Quat q, t0;
  Quat t1;       // set if the third expert is wanted
  int likely;    // most likely index
  int ambiguity; // 0 to 9

  Turns(const Group &g, const Reference &r, const int32_t *now, unsigned wanted);
  // chart sets the base and the features of the three components other than index.
  void chart(const Group &g, int index, unsigned wanted, int32_t base[3], Features features[3]) const;
};

} // namespace uplink::detail
