#include "src/codec/adaptive/learn.hpp"

namespace uplink::detail {

namespace {

constexpr int8_t skip = -1;
constexpr int8_t single[21] = {2,    skip, skip, 1,    skip, skip, 2,    skip, skip, 1,   skip,
                               skip, 0,    skip, skip, 2,    skip, skip, 1,    skip, skip};
constexpr int8_t several[14] = {2, skip, 1, skip, 0, skip, 1, skip, 0, skip, 2, skip, 0, skip};

// step_toward moves v by a step of at most 1024. The compiler can vectorize it for 16-bit numbers.
void step_toward(int16_t &v, int16_t step) {
  constexpr int16_t most = 20000;
  int16_t x = static_cast<int16_t>(v + step);
  x = x < -most ? static_cast<int16_t>(-most) : x;
  v = x > most ? most : x;
}

// flag_step moves the probability of a flag towards its value.
void flag_step(int16_t &bias, int16_t w[4], unsigned inputs, bool outcome, bool fast) {
  int e = (outcome ? 65536 : 0) - static_cast<int>(chance(bias, w, inputs));
  int s = fast ? 6 : 7;
  int16_t step = static_cast<int16_t>((e + (1 << (s - 1))) >> s);
  step_toward(bias, step);
  const int16_t *mask = input_masks.of[inputs & 15];
  for (int i = 0; i < 4; i++) step_toward(w[i], static_cast<int16_t>(step & mask[i]));
}

constexpr int rates[families][max_weights] = {
    {26, 26, 26, 26, 26, 26}, {26, 26, 26, 26, 26, 26}, {3, 3, 11, 11}, {3}, {16, 16}};
constexpr int scalar_rate = 110;

// move_weight moves a weight by rate, in the direction that reduces the error.
void move_weight(int16_t &w, int64_t feature, int64_t error, int rate) {
  int away = static_cast<int>((feature ^ error) >> 63);
  int moves = static_cast<int>(((feature | sub(0, feature)) & (error | sub(0, error))) >> 63);
  int x = w + (((rate ^ away) - away) & moves);
  w = static_cast<int16_t>(x < -32000 ? -32000 : x > 32000 ? 32000 : x);
}

// feature_of returns the index of the feature of weight i.
constexpr size_t feature_of(Family f, size_t i) {
  return i == 0 || f == Family::turned || f == Family::extrapolated ? i : i - 1;
}

// expert_of returns the index of the expert of weight i.
constexpr size_t expert_of(Family f, size_t i) {
  if (f == Family::plain || f == Family::angled) return i == 0 ? 1 : 2;
  if (f == Family::derived) return i == 0 ? 0 : 1;
  return f == Family::turned ? 0 : i + 1;
}

class Learner {
public:
  Learner(State &s, const PriorImpl &p, size_t c) : s_(s), m_(*s.model), p_(p), class_(c) {}

  void study(const Reference &r, const FrameView &x) {
    unsigned last = 0, buttons = 0;
    for (size_t i = 0; i < m_.groups.size(); i++) {
      const Group &g = m_.groups[i];
      bool changed = group(g, s_.groups[i], group_inputs(m_, g, r, x) | last | buttons, r, x);
      last = changed ? Inputs::after : 0;
      if (changed && g.type == Group::Type::flags) buttons = Inputs::buttons;
    }
  }

private:
  State &s_;
  const Model &m_;
  const PriorImpl &p_;
  size_t class_;
  Trace trace_;

  // group learns a group, and returns its flag.
  bool group(const Group &g, GroupState &state, unsigned inputs, const Reference &r, const FrameView &x) {
    bool moved = (inputs & Inputs::differs) != 0, changed = moved;
    if (g.counter) {
      bool on = counts_on(g, x.c, r);
      if (state.steps > 2048) changed = !on;
      int target = on && moved ? 4096 : 0;
      state.steps = static_cast<uint16_t>(state.steps + (target - state.steps) / 16);
    }
    bool fast = state.uses <= 16;
    if (fast) state.uses++;
    flag_step(state.bias[class_], state.w, inputs, changed, fast);
    switch (g.type) {
    case Group::Type::flags:
      if (changed) bits(g, r, x);
      break;
    case Group::Type::string:
      if (changed) string(g, r, x);
      break;
    case Group::Type::quat:
      quat(g, r, x, changed);
      break;
    case Group::Type::numbers:
      if (g.family == Family::derived)
        numbers<Family::derived>(g, r, x, changed, fast);
      else if (g.family == Family::angled)
        numbers<Family::angled>(g, r, x, changed, fast);
      else
        numbers<Family::plain>(g, r, x, changed, fast);
    }
    return changed;
  }

  void bits(const Group &g, const Reference &r, const FrameView &x) {
    size_t state = g.state;
    for (size_t k = 0; k < g.count; k++) {
      uint32_t now = static_cast<uint32_t>(x.c[g.first + k]), b = static_cast<uint32_t>(r.b.c[g.first + k]);
      uint32_t h1 = b ^ static_cast<uint32_t>(r.h1.c[g.first + k]);
      for (int j = 0; j < g.width(k); j++) {
        uint32_t v = b >> j & 1, h = h1 >> j & 1;
        uint16_t &p = s_.flags[state++].bit[v + 2 * h];
        p = toward(p, (now >> j & 1) == v);
      }
    }
  }

  void string(const Group &g, const Reference &r, const FrameView &f) {
    ByteString x = string_of(m_, g, f), b = string_of(m_, g, r.b), p = string_of(m_, g, r.p);
    StringState &s = s_.strings[g.state];
    unsigned before = 0;
    for (size_t i = 0; i < x.size && i < b.size; i++) {
      unsigned old = i >= p.size || p.data[i] != b.data[i] ? 2 : 0;
      unsigned flips = x.data[i] ^ b.data[i], high = 0;
      uint16_t &same = s.same[before + old];
      same = toward(same, flips == 0);
      before = flips != 0;
      for (unsigned j = 8; flips != 0 && j > 0;) {
        j--;
        uint16_t &bit = s.same_bit[2 * j + high];
        bool flip = (flips >> j & 1) != 0;
        bit = toward(bit, !flip);
        if (flip) high = 1;
      }
    }
  }

  void quat(const Group &g, const Reference &r, const FrameView &x, bool changed) {
    if (!changed) {
      for (size_t k = 0; k < 3; k++) fade(s_.components[g.state + k].of[class_]);
      return;
    }
    Turns turns(g, r, x.c, all_experts);
    const int32_t *c = x.c + g.first;
    uint16_t &index = s_.quats[g.quat].index[turns.ambiguity];
    index = toward(index, c[0] == turns.likely);
    int32_t base[3];
    Features f[3];
    turns.chart(g, c[0], all_experts, base, f);
    trace_.previous = 0;
    for (size_t k = 0; k < 3; k++) {
      ComponentState &state = s_.components[g.state + k];
      int64_t y = c[1 + k] - base[k];
      if (g.family == Family::turned)
        trial<Family::turned>(state, f[k], y, 0);
      else
        trial<Family::extrapolated>(state, f[k], y, 0);
    }
  }

  template <Family family>
  void numbers(const Group &g, const Reference &r, const FrameView &x, bool changed, bool fast) {
    unsigned last = 0;
    bool some = false;
    trace_.previous = 0;
    for (size_t k = 0; k < g.count; k++) {
      size_t c = g.first + k;
      ComponentState &state = s_.components[g.state + k];
      int w = g.width(k);
      int64_t y = wrap(static_cast<int64_t>(x.c[c]) - r.b.c[c], w);
      if (changed && g.count > 1 && (some || k + 1 < g.count))
        flag_step(state.flag_bias, state.flag_w, r.changes[c] | last, y != 0, fast);
      last = y != 0 ? Inputs::after : 0;
      if (y == 0) {
        fade(state.of[class_]);
        continue;
      }
      some = true;
      Features f{};
      number_features<family>(m_, g, k, r, x.c, all_experts, f);
      int64_t residual = trial<family>(state, f, y, w);
      if (family == Family::plain && class_ > 0) count(state, x.c[c], r.b.c[c], residual);
    }
  }

  static void fade(ClassState &s) {
    s.recent -= s.recent >> 3;
    s.expect();
  }

  // trial compares the experts with the actual change y, updates their weights, and returns the
  // residual.
  template <Family family> int64_t trial(ComponentState &c, const Features &x, int64_t y, int w) {
    constexpr size_t f = static_cast<size_t>(family);
    ClassState &s = c.of[class_];
    int64_t error[max_experts] = {};
    for (unsigned e = 0; e < expert_counts[f]; e++) {
      int64_t sum = add(expert_sum<family>(e, s, x), 2048) >> 12;
      error[e] = wrap(sub(shl(y, 4), sum), w == 0 ? 0 : w + 4);
    }
    for (size_t i = 0; i < weight_counts[f]; i++)
      move_weight(s.weight[i], x.f[feature_of(family, i)], error[expert_of(family, i)], rates[f][i]);
    for (size_t i = 0; family == Family::angled && i < 4; i++)
      move_weight(s.scalar_weight[i], x.f[5 + i], error[3], scalar_rate);
    for (size_t e = 0; e < expert_counts[f]; e++) {
      int32_t size = log(absolute(error[e]));
      s.cost[e] = static_cast<int16_t>(s.cost[e] + (((size < 31744 ? size : 31744) - s.cost[e]) >> 4));
    }
    int64_t v = error[s.expert], r = v >> 4;
    learn_residual(c, s, v, sub(y, r), r);
    return r;
  }

  // learn_residual learns the error v of the expert in use. r is its residual, offset its predicted
  // offset from the reference.
  void learn_residual(ComponentState &c, ClassState &s, int64_t v, int64_t offset, int64_t r) {
    shapes(c, s, offset, r);
    int64_t a = absolute(v);
    a = (a < 0 || a > 67108864 ? 67108864 : a) << 4;
    s.fast = moved(s.fast, a, 4);
    s.slow = moved(s.slow, a, 24);
    s.recent = static_cast<int32_t>(a);
    s.expect();
    s.choose();
  }

  static int32_t moved(int32_t mean, int64_t a, int slowness) {
    int64_t most = 8 * static_cast<int64_t>(mean) + 2048;
    return static_cast<int32_t>(mean + ((a < most ? a : most) - mean) / slowness);
  }

  // shapes updates the costs of the sets of tables, and the weights of the contexts, for residual
  // r. offset is the predicted offset.
  void shapes(ComponentState &c, ClassState &s, int64_t offset, int64_t r) {
    int32_t m = s.expected;
    Trace::Terms t = trace_.terms(m, offset);
    int32_t at = Trace::lean(m, c.lean, t);
    Row row(at);
    uint64_t size = static_cast<uint64_t>(absolute(r));
    unsigned symbol = symbol_of(row.shift >= 64 ? 0 : size >> row.shift) & 63;
    const int16_t *costs = p_.costs[row.row][symbol];
    for (size_t i = 0; i < symbol_sets; i++) {
      int32_t cost = s.shape_cost[i];
      s.shape_cost[i] = static_cast<int16_t>(cost + ((costs[i] - cost) >> 5));
    }
    int below = row.row < 2 ? 0 : row.row - 2, above = row.row > 45 ? 47 : row.row + 2;
    int32_t gain = p_.costs[below][symbol][s.shape] - p_.costs[above][symbol][s.shape];
    const int32_t terms[3] = {t.n, t.r, t.o};
    for (size_t i = 0; i < 3; i++) {
      int32_t v = c.lean[i] + ((gain * terms[i] * 2 + 32768) >> 16);
      c.lean[i] = static_cast<int16_t>(v < -4096 ? -4096 : v > 8192 ? 8192 : v);
    }
    trace_.observe(static_cast<int32_t>(size_table[symbol]) + (row.shift << 10), at);
  }

  // count counts the value c of a component with residual r.
  static void count(ComponentState &s, int32_t c, int32_t base, int64_t r) {
    int i = 0;
    while (i < s.n && s.value[i] != c) i++;
    if (i == s.n) {
      s.gain = static_cast<int16_t>(s.gain + ((log(65535 - s.any) - 16384 - s.gain) >> 5));
      s.any = static_cast<uint16_t>(s.any - (s.any >> 5));
      if (s.n < static_cast<int>(max_frequent)) {
        s.value[s.n] = c;
        s.count[s.n++] = 1;
      } else if (s.count[5] > 1) {
        s.count[5]--;
      } else {
        s.value[5] = c;
        s.count[5] = 1;
      }
      s.asks = s.gain > 0;
      return;
    }
    s.gain =
        static_cast<int16_t>(s.gain + ((log(absolute(r)) + 1600 + log(s.any) - 16384 - 1100 - s.gain) >> 5));
    s.asks = s.gain > 0;
    s.any = static_cast<uint16_t>(s.any + ((65500 - s.any) >> 5));
    for (int j = 0; j < i; j++) {
      if (s.value[j] != base) s.rank[j] = static_cast<uint16_t>(s.rank[j] - (s.rank[j] >> 5));
    }
    s.rank[i] = static_cast<uint16_t>(s.rank[i] + ((65500 - s.rank[i]) >> 5));
    if (s.count[i] + 2 > 200) {
      for (size_t j = 0; j < max_frequent; j++) {
        int n = s.count[j] + (static_cast<int>(j) == i ? 2 : 0);
        s.count[j] = static_cast<uint8_t>((n + 1) / 2);
      }
    } else {
      s.count[i] = static_cast<uint8_t>(s.count[i] + 2);
    }
    if (i > 0 && s.count[i] > s.count[i - 1]) {
      std::swap(s.value[i], s.value[i - 1]);
      std::swap(s.count[i], s.count[i - 1]);
    }
  }
};

} // namespace

void learn(State &s, const PriorImpl &p, Known known, uint64_t n, int size, bool repeats) {
  if (size > 0) {
    for (int i = 1; i <= size && i <= 15; i++) {
      uint16_t &e = s.enough_of(i);
      e = toward(e, i == size);
    }
    s.last = static_cast<uint8_t>(size);
    if (size > 1) {
      s.none[s.repeated] = toward(s.none[s.repeated], !repeats);
      s.repeated = repeats;
    }
  }
  int8_t c = s.last > 1 ? several[s.accepted % 14] : single[s.accepted % 21];
  if (c != skip) {
    int64_t at = static_cast<int64_t>(n), d = INT64_C(1) << (c == 0 ? 0 : c + 1);
    known.baseline = known.gap_end = -1;
    if (c == 0 && s.last > 1 && s.accepted / 14 % (s.last - 1u) == 0) {
      known.baseline = at - 5;
      known.gap_end = at - 1;
    }
    for (int64_t b = at - d; b > at - 2 * d && b >= 0; b--) {
      if (!known.has(b)) continue;
      Reference r;
      r.find(known, n, static_cast<uint64_t>(b));
      r.compare(known.at(n), s.model->schema->component_count);
      Learner(s, p, static_cast<size_t>(c)).study(r, known.at(n));
      break;
    }
  }
  s.accepted++;
}

} // namespace uplink::detail
