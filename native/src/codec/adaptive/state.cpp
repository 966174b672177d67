#include "src/codec/adaptive/state.hpp"

#include <cstring>

#include "src/codec/adaptive/tables.hpp"

namespace uplink::detail {

bool State::create(const Allocator &a, const Model &m) {
  model = &m;
  return groups.create(a, m.groups.size()) && components.create(a, m.components) &&
         flags.create(a, m.flags) && strings.create(a, m.strings) && quats.create(a, m.quats);
}

namespace {

template <typename T> void copy_all(Array<T> &to, const Array<T> &from) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (from.size() > 0) std::memcpy(to.data(), from.data(), from.size() * sizeof(T));
}

// List reads initial values, each clamped to its bounds.
class List {
public:
  explicit List(const Parameters &p) : p_(p) {}

  int32_t next(int32_t lo, int32_t hi) {
    int32_t v = p_.values[at_++];
    return v < lo ? lo : v > hi ? hi : v;
  }
  int32_t next() { return p_.values[at_++]; }
  void read(int16_t &v, int32_t lo, int32_t hi) { v = static_cast<int16_t>(next(lo, hi)); }
  void chance(uint16_t &v) { v = static_cast<uint16_t>(next(31, 65500)); }

private:
  Parameters p_;
  size_t at_ = 0;
};

constexpr int32_t flag_bound = 20000;

void read_flag(GroupState &g, List &l) {
  for (int16_t &b : g.bias) l.read(b, -flag_bound, flag_bound);
  for (int16_t &w : g.w) l.read(w, -flag_bound, flag_bound);
}

void read_uses(const Group &g, GroupState &s, List &l) {
  s.uses = static_cast<uint16_t>(l.next(0, 17));
  s.steps = static_cast<uint16_t>(l.next(0, g.counter ? 4096 : 0));
}

void read_weights(Family f, ComponentState &c, List &l) {
  for (ClassState &s : c.of) {
    for (size_t i = 0; i < weight_counts[static_cast<size_t>(f)]; i++) l.read(s.weight[i], -32000, 32000);
    for (size_t i = 0; f == Family::angled && i < 4; i++) l.read(s.scalar_weight[i], -32000, 32000);
  }
}

int32_t size_of_log(int32_t x) {
  return static_cast<int32_t>((static_cast<int64_t>(1024 + (x & 1023)) << (x >> 10) >> 10) - 1);
}

void read_sizes(ComponentState &c, List &l) {
  for (ClassState &s : c.of) {
    s.fast = size_of_log(l.next(0, 30720));
    s.recent = s.slow = size_of_log(l.next(0, 30720));
  }
  for (int16_t &v : c.lean) l.read(v, -4096, 8192);
}

void read_costs(Family f, ComponentState &c, List &l) {
  for (ClassState &s : c.of) {
    for (size_t e = 0; e < expert_counts[static_cast<size_t>(f)]; e++) l.read(s.cost[e], 0, 31744);
    for (int16_t &v : s.shape_cost) l.read(v, 0, 31744);
  }
}

void read_component_flag(ComponentState &c, List &l) {
  l.read(c.flag_bias, -flag_bound, flag_bound);
  for (int16_t &w : c.flag_w) l.read(w, -flag_bound, flag_bound);
}

void read_frequent(ComponentState &c, List &l) {
  l.chance(c.any);
  for (uint16_t &r : c.rank) l.chance(r);
  l.read(c.gain, -16384, 16384);
}

void read_values(const Group &g, size_t k, ComponentState &c, List &l) {
  c.n = 0;
  for (size_t i = 0; i < max_frequent; i++) {
    int32_t v = l.next(), count = l.next();
    bool known = false;
    for (size_t j = 0; j < c.n; j++) known = known || c.value[j] == v;
    if (count <= 0 || known || g.fit(v, k) != v) continue;
    c.value[c.n] = v;
    c.count[c.n++] = static_cast<uint8_t>(count > 200 ? 200 : count);
  }
}

void read_index(QuatState &q, List &l) {
  for (uint16_t &v : q.index) l.chance(v);
}

void read_bit(BitState &b, List &l) {
  for (uint16_t &v : b.bit) l.chance(v);
}

void read_string(StringState &s, List &l) {
  for (uint16_t &v : s.same) l.chance(v);
  for (uint16_t &v : s.same_bit) l.chance(v);
}

// number of parameters of each kind
size_t weights_of(Family f) {
  return classes * (weight_counts[static_cast<size_t>(f)] + (f == Family::angled ? 4u : 0u));
}
size_t costs_of(Family f) {
  return classes * (expert_counts[static_cast<size_t>(f)] + symbol_sets);
}

constexpr size_t flag_size = 7, uses_size = 2, sizes_size = 9, component_flag_size = 5, frequent_size = 8,
                 values_size = 12, index_size = 10, bit_size = 4, string_size = 20;

// Starter sets the initial values of a group.
struct Starter {
  State &s;
  const PriorImpl &p;

  template <typename F> void kind(size_t k, size_t size, F read) const {
    if (p.kinds[k].size != size) return;
    List l(p.kinds[k]);
    read(l);
  }

  size_t bits(const Group &g) const { return static_cast<size_t>(g.field->values) * g.field->width; }

  void by_kind(const Group &g, GroupState &state) const {
    kind(g.flag_kind, flag_size, [&](List &l) { read_flag(state, l); });
    kind(13, uses_size, [&](List &l) { read_uses(g, state, l); });
    if (g.type == Group::Type::flags) {
      for (size_t i = 0; i < bits(g); i++)
        kind(11, bit_size, [&](List &l) { read_bit(s.flags[g.state + i], l); });
    }
    if (g.type == Group::Type::string)
      kind(12, string_size, [&](List &l) { read_string(s.strings[g.state], l); });
    if (g.type == Group::Type::quat) {
      kind(g.family == Family::turned ? 9 : 10, index_size, [&](List &l) { read_index(s.quats[g.quat], l); });
    }
    size_t f = static_cast<size_t>(g.family);
    for (size_t k = 0; k < g.predicted; k++) {
      ComponentState &c = s.components[g.state + k];
      kind(16 + f, weights_of(g.family), [&](List &l) { read_weights(g.family, c, l); });
      kind(15, sizes_size, [&](List &l) { read_sizes(c, l); });
      kind(21 + f, costs_of(g.family), [&](List &l) { read_costs(g.family, c, l); });
      kind(26 + f, component_flag_size, [&](List &l) { read_component_flag(c, l); });
      if (g.family != Family::plain) continue;
      kind(8, frequent_size, [&](List &l) { read_frequent(c, l); });
      kind(14, values_size, [&](List &l) { read_values(g, k, c, l); });
    }
  }

  size_t size(const Group &g) const {
    size_t n = flag_size + uses_size;
    if (g.type == Group::Type::flags) n += bits(g) * bit_size;
    if (g.type == Group::Type::string) n += string_size;
    if (g.type == Group::Type::quat) n += index_size;
    size_t each = weights_of(g.family) + sizes_size + costs_of(g.family) + component_flag_size +
                  (g.family == Family::plain ? frequent_size + values_size : 0);
    return n + g.predicted * each;
  }

  void by_field(const Group &g, GroupState &state, const FieldParameters &f) const {
    if (f.flag_kind != g.flag_kind || f.all.size != size(g)) return;
    List l(f.all);
    read_flag(state, l);
    read_uses(g, state, l);
    for (size_t i = 0; g.type == Group::Type::flags && i < bits(g); i++) read_bit(s.flags[g.state + i], l);
    if (g.type == Group::Type::string) read_string(s.strings[g.state], l);
    if (g.type == Group::Type::quat) read_index(s.quats[g.quat], l);
    for (size_t k = 0; k < g.predicted; k++) {
      ComponentState &c = s.components[g.state + k];
      read_weights(g.family, c, l);
      read_sizes(c, l);
      read_costs(g.family, c, l);
      read_component_flag(c, l);
      if (g.family != Family::plain) continue;
      read_frequent(c, l);
      read_values(g, k, c, l);
    }
  }
};

uint64_t key_of(const SchemaImpl &s, const FieldInfo &f) {
  Fnv h;
  h.put(s.rpc_name);
  h.put("\n");
  char b[1024];
  s.description(static_cast<size_t>(&f - s.infos.data()), b, sizeof b);
  h.put(b);
  return h.sum() == 0 ? 1 : h.sum();
}

void start_component(Family f, ComponentState &c) {
  c = ComponentState();
  c.flag_bias = component_flag_start[0];
  for (size_t i = 0; i < 4; i++) c.flag_w[i] = component_flag_start[1 + i];
  for (size_t d = 0; d < classes; d++) {
    ClassState &s = c.of[d];
    for (size_t i = 0; i < max_weights; i++) s.weight[i] = weight_start[static_cast<size_t>(f)][d][i];
    for (size_t e = 0; e < max_experts; e++)
      s.cost[e] = static_cast<int16_t>(e < expert_counts[static_cast<size_t>(f)] ? 4096 + 200 * e : 32767);
  }
}

} // namespace

void State::start(const PriorImpl &p) {
  accepted = 0;
  for (auto &context : enough) {
    for (uint16_t &v : context) v = 32768;
    context[0] = 60500;
  }
  none[0] = 60500;
  none[1] = 5000;
  last = 1;
  repeated = false;
  for (BitState &b : flags) b = BitState();
  for (StringState &s : strings) {
    s = StringState();
    for (uint16_t &v : s.same_bit) v = 36000;
  }
  for (QuatState &q : quats) std::memcpy(q.index, index_start, sizeof q.index);
  Starter starter{*this, p};
  for (size_t i = 0; i < groups.size(); i++) {
    const Group &g = model->groups[i];
    GroupState &s = groups[i];
    s = GroupState();
    for (size_t d = 0; d < classes; d++) s.bias[d] = flag_start[d];
    for (size_t k = 0; k < 4; k++) s.w[k] = flag_start[3 + k];
    for (size_t k = 0; k < g.predicted; k++) start_component(g.family, components[g.state + k]);
    starter.by_kind(g, s);
    const FieldParameters *f = p.field_count == 0 ? nullptr : p.find(key_of(*model->schema, *g.field));
    if (f != nullptr) starter.by_field(g, s, *f);
  }
  for (ComponentState &c : components) {
    for (ClassState &d : c.of) {
      d.expect();
      d.choose();
    }
    c.asks = c.n > 0 && c.gain > 0;
  }
}

void State::copy(const State &s) {
  accepted = s.accepted;
  std::memcpy(enough, s.enough, sizeof enough);
  std::memcpy(none, s.none, sizeof none);
  last = s.last;
  repeated = s.repeated;
  copy_all(groups, s.groups);
  copy_all(components, s.components);
  copy_all(flags, s.flags);
  copy_all(strings, s.strings);
  copy_all(quats, s.quats);
}

namespace {

uint64_t u16(int v) {
  return static_cast<uint16_t>(v);
}

// put16 hashes four numbers at a time.
template <typename T> void put16(Fnv &h, const T *v, size_t n) {
  size_t i = 0;
  for (; i + 4 <= n; i += 4)
    h.put(u16(v[i]) | u16(v[i + 1]) << 16 | u16(v[i + 2]) << 32 | u16(v[i + 3]) << 48);
  for (; i < n; i++) h.put(u16(v[i]));
}

uint64_t pair(int32_t high, uint32_t low) {
  return static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32 | low;
}

void put_component(Fnv &h, const ComponentState &c) {
  for (const ClassState &s : c.of) {
    h.put(pair(s.fast, static_cast<uint32_t>(s.slow)));
    h.put(pair(s.recent, static_cast<uint32_t>(u16(s.shape_cost[0]))));
    h.put(u16(s.shape_cost[1]) << 16 | u16(s.shape_cost[2]));
    put16(h, s.cost, max_experts);
    put16(h, s.weight, max_weights);
  }
  h.put(u16(c.lean[0]) << 32 | u16(c.lean[1]) << 16 | u16(c.lean[2]));
  h.put(u16(c.flag_bias) << 16 | u16(c.flag_w[0]));
  put16(h, c.flag_w + 1, 3);
}

} // namespace

uint16_t State::hash() const {
  Fnv h;
  h.put(accepted);
  for (const ComponentState &c : components) put_component(h, c);
  for (const Group &g : model->groups) {
    for (size_t k = 0; g.family == Family::angled && k < g.predicted; k++) {
      for (const ClassState &s : components[g.state + k].of) put16(h, s.scalar_weight, 4);
    }
  }
  for (const Group &g : model->groups) {
    for (size_t k = 0; g.family == Family::plain && k < g.predicted; k++) {
      const ComponentState &c = components[g.state + k];
      for (size_t i = 0; i < max_frequent; i++)
        h.put(pair(c.value[i], static_cast<uint32_t>(u16(c.rank[i]) << 16 | c.count[i])));
      h.put(u16(c.any) << 32 | u16(c.gain) << 16 | c.n);
    }
  }
  for (const GroupState &g : groups) {
    put16(h, g.bias, classes);
    put16(h, g.w, 4);
    h.put(static_cast<uint64_t>(g.uses) << 16 | g.steps);
  }
  for (const QuatState &q : quats) put16(h, q.index, 10);
  for (const BitState &b : flags) put16(h, b.bit, 4);
  for (const StringState &s : strings) {
    put16(h, s.same, 4);
    put16(h, s.same_bit, 16);
  }
  for (const auto &context : enough) put16(h, context, 15);
  put16(h, none, 2);
  h.put(last | (repeated ? 256u : 0u));
  return fold(h.sum());
}

} // namespace uplink::detail
