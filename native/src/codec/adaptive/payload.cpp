#include "src/codec/adaptive/payload.hpp"

#include <cstring>

namespace uplink::detail {

namespace {

// Writes and Reads are the two directions of FrameCoder. A decoder returns values; an encoder is
// passed the same values as arguments.
struct Writes {
  static constexpr bool writes = true;
  RangeEncoder &c;

  bool decide(bool b, uint32_t chance_of_0) {
    c.decide(b, chance_of_0);
    return b;
  }
  uint64_t raw(uint64_t v, unsigned n) {
    c.raw(v, n);
    return v;
  }
  unsigned symbol(const uint16_t *cumulative, unsigned s) {
    c.symbol(cumulative, s);
    return s;
  }
};

struct Reads {
  static constexpr bool writes = false;
  RangeDecoder &c;

  bool decide(bool, uint32_t chance_of_0) { return c.decide(chance_of_0); }
  uint64_t raw(uint64_t, unsigned n) { return c.raw(n); }
  unsigned symbol(const uint16_t *cumulative, unsigned) { return c.symbol(cumulative); }
};

// number_of returns component k of a group as an integer.
int64_t number_of(const Group &g, size_t k, int32_t c) {
  if (g.width(k) > 0 && !g.is_signed(k)) return static_cast<uint32_t>(c);
  return c;
}

// magnitude returns the number of bits of the largest magnitude that a component of a group has.
unsigned magnitude(const Group &g, const FrameView &f) {
  uint64_t any = 0;
  for (size_t k = 0; k < g.count; k++)
    any |= static_cast<uint64_t>(absolute(number_of(g, k, f.c[g.first + k])));
  return static_cast<unsigned>(bit_length(any));
}

// FrameCoder codes one frame.
template <typename Direction> class FrameCoder {
public:
  FrameCoder(const PayloadPart &p, const FrameView &frame, Direction direction)
      : m_(*p.model), s_(*p.state), prior_(*p.prior), x_(frame), code_(direction) {}

  // alone codes a frame without a reference.
  void alone() {
    for (const Group &g : m_.groups) {
      switch (g.type) {
      case Group::Type::flags:
        bit_values(g);
        break;
      case Group::Type::quat:
        quat_values(g);
        break;
      case Group::Type::string: {
        ByteString b = string_of(m_, g, x_);
        b.size = length(g, b.size);
        for (size_t i = 0; i < b.size && !bad_; i++)
          b.data[i] = static_cast<uint8_t>(code_.raw(b.data[i], 8));
        break;
      }
      case Group::Type::numbers:
        if (g.field->kind == Kind::angle)
          bit_values(g);
        else
          number_values(g);
      }
    }
  }

  // from codes a frame against its reference.
  void from(const Reference &r) {
    Distance at(r.d);
    unsigned last = 0, buttons = 0;
    for (size_t i = 0; i < m_.groups.size(); i++) {
      const Group &g = m_.groups[i];
      const GroupState &state = s_.groups[i];
      unsigned in = group_inputs(m_, g, r, Direction::writes ? x_ : r.b) | last | buttons;
      bool changed = (in & Inputs::differs) != 0;
      bool counts = g.counter && state.steps > 2048;
      if (Direction::writes && counts) changed = !counts_on(g, x_.c, r);
      changed = code_.decide(changed, 65536 - chance(state.bias[at.cls], state.w, in));
      last = changed ? Inputs::after : 0;
      if (!changed) {
        if constexpr (!Direction::writes) keep(g, r, counts);
        continue;
      }
      switch (g.type) {
      case Group::Type::numbers:
        if (g.family == Family::derived)
          numbers<Family::derived>(g, r, at);
        else if (g.family == Family::angled)
          numbers<Family::angled>(g, r, at);
        else
          numbers<Family::plain>(g, r, at);
        break;
      case Group::Type::quat:
        quat(g, r, at);
        break;
      case Group::Type::string:
        string(g, r);
        break;
      case Group::Type::flags:
        bits(g, r);
        buttons = Inputs::buttons;
      }
    }
  }

  bool bad() const { return bad_; }

private:
  const Model &m_;
  const State &s_;
  const PriorImpl &prior_;
  FrameView x_;
  Direction code_;
  Trace trace_;
  bool bad_ = false;

  // experts returns the set of experts that predict a component, as bits.
  static unsigned experts(const ComponentState &s, const Distance &at) {
    return 1u << s.of[at.low].expert | 1u << s.of[at.high].expert;
  }

  bool decide0(bool b, uint32_t p) { return code_.decide(b, p); }
  bool decide1(bool b, uint32_t p) { return code_.decide(b, 65536 - p); }

  // keep sets an unchanged group from its reference, or from the next step of a counter.
  void keep(const Group &g, const Reference &r, bool counts) {
    if (g.type == Group::Type::string) {
      ByteString b = string_of(m_, g, r.b);
      x_.lengths[g.field->string] = static_cast<uint16_t>(b.size);
      if (b.size > 0) std::memcpy(string_of(m_, g, x_).data, b.data, b.size);
      return;
    }
    for (size_t k = 0; k < g.count; k++)
      x_.c[g.first + k] = counts ? next_count(g, k, r) : r.b.c[g.first + k];
  }

  // Groups without a reference.

  void bit_values(const Group &g) {
    for (size_t k = 0; k < g.count; k++) {
      int32_t &c = x_.c[g.first + k];
      unsigned w = static_cast<unsigned>(g.width(k));
      if (!decide0(c != 0, 32768))
        c = 0;
      else if (w == 1)
        c = 1;
      else
        c = static_cast<int32_t>(static_cast<uint32_t>(code_.raw(static_cast<uint32_t>(c), w)));
    }
  }

  void quat_values(const Group &g) {
    int32_t *c = x_.c + g.first, m = g.hi;
    c[0] = static_cast<int32_t>(code_.raw(static_cast<uint32_t>(c[0]), 2));
    unsigned w = static_cast<unsigned>(bit_length(2 * static_cast<uint64_t>(m)));
    for (size_t k = 1; k < 4; k++) {
      c[k] = static_cast<int32_t>(code_.raw(static_cast<uint64_t>(static_cast<int64_t>(c[k]) + m), w)) - m;
      if (c[k] > m) bad_ = true;
    }
  }

  void number_values(const Group &g) {
    unsigned most = g.most;
    unsigned n = Direction::writes ? magnitude(g, x_) : 0;
    n = static_cast<unsigned>(code_.raw(n, static_cast<unsigned>(bit_length(most))));
    if (n > most) {
      bad_ = true;
      return;
    }
    for (size_t k = 0; k < g.count; k++) {
      int64_t v = Direction::writes ? number_of(g, k, x_.c[g.first + k]) : 0;
      int64_t m = static_cast<int64_t>(code_.raw(static_cast<uint64_t>(absolute(v)), n));
      if (g.has_signs && m > 0 && decide0(v < 0, 32768)) m = -m;
      x_.c[g.first + k] = g.fit(m, k);
      if (number_of(g, k, x_.c[g.first + k]) != m) bad_ = true;
    }
  }

  // length codes the length of a byte string, and sets it.
  size_t length(const Group &g, size_t n) {
    const FieldInfo &f = *g.field;
    if (f.min_length < f.max_length) {
      unsigned w = static_cast<unsigned>(bit_length(f.max_length - f.min_length));
      n = f.min_length + static_cast<size_t>(code_.raw(n - f.min_length, w));
      if (n > f.max_length) {
        bad_ = true;
        n = f.min_length;
      }
    } else {
      n = f.min_length;
    }
    x_.lengths[f.string] = static_cast<uint16_t>(n);
    return n;
  }

  // Groups with a reference.

  template <Family family> void numbers(const Group &g, const Reference &r, const Distance &at) {
    unsigned last = 0;
    bool some = false;
    trace_.previous = 0;
    for (size_t k = 0; k < g.count; k++) {
      size_t c = g.first + k;
      const ComponentState &state = s_.components[g.state + k];
      if (g.count > 1 && (some || k + 1 < g.count)) {
        bool changed =
            decide1(x_.c[c] != r.b.c[c], chance(state.flag_bias, state.flag_w, r.changes[c] | last));
        last = changed ? Inputs::after : 0;
        if (!changed) {
          x_.c[c] = r.b.c[c];
          continue;
        }
      }
      if (family == Family::plain && state.asks && frequent(state, x_.c[c], r.b.c[c])) {
        some = true;
        continue;
      }
      Features f{};
      number_features<family>(m_, g, k, r, x_.c, experts(state, at), f);
      Prediction p = predict<family>(state, at, f, trace_);
      int64_t forecast = g.fit(add(r.b.c[c], p.offset), k);
      int w = g.width(k);
      int64_t v = residual(Direction::writes ? wrap(x_.c[c] - forecast, w) : 0, p.magnitude, p.shape);
      if constexpr (!Direction::writes) {
        x_.c[c] = g.fit(add(forecast, v), k);
        if (wrap(x_.c[c] - forecast, w) != v) bad_ = true;
      }
      if (x_.c[c] != r.b.c[c]) some = true;
    }
  }

  // frequent codes whether c is one of the component's frequent values, and if so its rank.
  bool frequent(const ComponentState &s, int32_t &c, int32_t base) {
    int place = -1;
    for (int i = 0; Direction::writes && c != base && i < s.n; i++) {
      if (s.value[i] == c) {
        place = i;
        break;
      }
    }
    if (!decide1(place >= 0, s.any)) return false;
    int end = s.n - 1;
    if (end >= 0 && s.value[end] == base) end--;
    for (int i = 0; i < end; i++) {
      if (s.value[i] != base && decide1(place == i, s.rank[i])) {
        c = s.value[i];
        return true;
      }
    }
    c = s.value[end < 0 ? 0 : end];
    return true;
  }

  int64_t residual(int64_t r, int32_t magnitude, unsigned shape) {
    Row row(magnitude);
    uint64_t v = static_cast<uint64_t>(absolute(r));
    bool negative = r < 0;
    unsigned shift = static_cast<unsigned>(row.shift);
    unsigned s = code_.symbol(prior_.cumulative[shape][row.row], symbol_of(shift >= 64 ? 0 : v >> shift));
    unsigned n = extra_of(s) + shift;
    if (s == 0) {
      v = code_.raw(v, n);
      negative = v > 0 && code_.raw(negative, 1) != 0;
    } else {
      uint64_t u = code_.raw(v << 1 | (negative ? 1 : 0), n + 1);
      if constexpr (!Direction::writes) {
        v = (shift >= 64 ? 0 : low_of(s) << shift) | u >> 1;
        negative = (u & 1) != 0;
      }
    }
    trace_.observe(static_cast<int32_t>(size_table[s]) + (row.shift << 10), magnitude);
    return negated_if(negative, static_cast<int64_t>(v));
  }

  void quat(const Group &g, const Reference &r, const Distance &at) {
    unsigned wanted = 0;
    for (size_t k = 0; k < 3; k++) wanted |= experts(s_.components[g.state + k], at);
    Turns turns(g, r, x_.c, wanted);
    int32_t *c = x_.c + g.first;
    c[0] = index(turns, s_.quats[g.quat].index[turns.ambiguity], c[0]);
    int32_t base[3];
    Features f[3];
    turns.chart(g, c[0], wanted, base, f);
    trace_.previous = 0;
    for (size_t k = 0; k < 3; k++) {
      const ComponentState &state = s_.components[g.state + k];
      Prediction p = g.family == Family::turned ? predict<Family::turned>(state, at, f[k], trace_)
                                                : predict<Family::extrapolated>(state, at, f[k], trace_);
      int64_t forecast = clamp(add(base[k], p.offset), g.lo, g.hi);
      int64_t v = residual(Direction::writes ? c[1 + k] - forecast : 0, p.magnitude, p.shape);
      if constexpr (!Direction::writes) {
        int64_t sum = add(forecast, v);
        if (sum < g.lo || sum > g.hi) bad_ = true;
        c[1 + k] = static_cast<int32_t>(clamp(sum, g.lo, g.hi));
      }
    }
  }

  int32_t index(const Turns &t, uint32_t p, int32_t index) {
    if (!decide0(index != t.likely, p)) return t.likely;
    int32_t others[3];
    int n = 0;
    for (int32_t i = 0; i < 4; i++) {
      if (i == t.likely) continue;
      int place = n++;
      for (; place > 0 && absolute(t.t0.e[others[place - 1]]) < absolute(t.t0.e[i]); place--)
        others[place] = others[place - 1];
      others[place] = i;
    }
    if (!decide0(index != others[0], 59536)) return others[0];
    return decide0(index != others[1], 49536) ? others[2] : others[1];
  }

  void bits(const Group &g, const Reference &r) {
    size_t state = g.state;
    for (size_t k = 0; k < g.count; k++) {
      uint32_t now = static_cast<uint32_t>(x_.c[g.first + k]), b = static_cast<uint32_t>(r.b.c[g.first + k]);
      uint32_t h1 = b ^ static_cast<uint32_t>(r.h1.c[g.first + k]), out = 0;
      for (int j = 0; j < g.width(k); j++) {
        uint32_t v = b >> j & 1, h = h1 >> j & 1;
        bool flip = decide0((now >> j & 1) != v, s_.flags[state++].bit[v + 2 * h]);
        out |= (v ^ (flip ? 1u : 0u)) << j;
      }
      x_.c[g.first + k] = static_cast<int32_t>(out);
    }
  }

  void string(const Group &g, const Reference &r) {
    ByteString x = string_of(m_, g, x_), b = string_of(m_, g, r.b), p = string_of(m_, g, r.p);
    const StringState &s = s_.strings[g.state];
    size_t n = b.size;
    if (g.field->min_length < g.field->max_length && decide0(x.size != b.size, 57000))
      n = length(g, x.size);
    else
      x_.lengths[g.field->string] = static_cast<uint16_t>(n);
    unsigned before = 0;
    for (size_t i = 0; i < n; i++) {
      if (i >= b.size) {
        x.data[i] = static_cast<uint8_t>(code_.raw(x.data[i], 8));
        continue;
      }
      unsigned old = i >= p.size || p.data[i] != b.data[i] ? 2 : 0;
      unsigned flips = x.data[i] ^ b.data[i];
      before = decide0(flips != 0, s.same[before + old]) ? 1 : 0;
      unsigned out = 0, high = 0;
      for (unsigned j = 8; before != 0 && j > 0;) {
        j--;
        if (decide0((flips >> j & 1) != 0, s.same_bit[2 * j + high])) {
          high = 1;
          out |= 1u << j;
        }
      }
      x.data[i] = static_cast<uint8_t>(b.data[i] ^ out);
    }
  }
};

// code_frames codes the frames of a payload, after their number. It reports false if they are
// malformed.
template <typename Direction> bool code_frames(const PayloadPart &p, Direction direction) {
  Known known = p.known;
  uint64_t first = p.newest + 1 - p.count;
  for (size_t i = 0; i < p.count; i++) {
    FrameCoder<Direction> coder(p, p.frames[i], direction);
    if (i == 0 && p.distance == 0) {
      coder.alone();
    } else {
      Reference r;
      r.find(known, first + i, i == 0 ? p.newest - p.distance : first + i - 1);
      r.compare(Direction::writes ? p.frames[i] : r.b, p.model->schema->component_count);
      coder.from(r);
    }
    if (coder.bad()) return false;
    uint64_t back = p.newest - (first + i);
    known.mask |= UINT64_C(1) << back;
  }
  return true;
}

} // namespace

size_t alone_bits(const Model &m, const FrameView &f, size_t enough) {
  size_t bits = 0;
  for (const Group &g : m.groups) {
    if (bits >= enough) break;
    const int32_t *c = f.c + g.first;
    switch (g.type) {
    case Group::Type::quat:
      bits += 2 + 3 * static_cast<size_t>(g.field->bits);
      break;
    case Group::Type::string:
      if (g.field->min_length < g.field->max_length)
        bits += static_cast<size_t>(bit_length(g.field->max_length - g.field->min_length));
      bits += 8 * static_cast<size_t>(f.lengths[g.field->string]);
      break;
    default:
      if (g.type == Group::Type::flags || g.field->kind == Kind::angle) {
        for (size_t k = 0; k < g.count; k++)
          bits += 1 + (c[k] != 0 && g.width(k) > 1 ? static_cast<size_t>(g.width(k)) : 0);
        break;
      }
      bits += static_cast<size_t>(bit_length(g.most)) + g.count * magnitude(g, f);
      for (size_t k = 0; g.has_signs && k < g.count; k++) bits += c[k] != 0;
    }
  }
  return bits;
}

void encode_part(const PayloadPart &p, RangeEncoder &out) {
  size_t limit = limit_of(p.distance);
  for (size_t i = 1; i < limit; i++) {
    bool more = p.count > i;
    out.decide(more, p.state->enough_of(static_cast<int>(i)));
    if (!more) break;
  }
  if (p.count > 1) out.decide(p.repeats, p.state->none[p.state->repeated]);
  code_frames(p, Writes{out});
}

void decode_count(PayloadPart &p, RangeDecoder &in) {
  size_t limit = limit_of(p.distance);
  p.count = 1;
  while (p.count < limit && in.decide(p.state->enough_of(static_cast<int>(p.count)))) p.count++;
  p.repeats = p.count > 1 && in.decide(p.state->none[p.state->repeated]);
}

bool decode_part(const PayloadPart &p, RangeDecoder &in) {
  return code_frames(p, Reads{in}) && in.finish();
}

} // namespace uplink::detail
