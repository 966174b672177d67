#include "src/downlink/state/plan.hpp"

namespace uplink::detail::state {

namespace {

constexpr int64_t max_factor = INT64_C(1) << 31;
constexpr int64_t max_quat_factor = (INT64_C(1) << 40) - 1;
constexpr int64_t max_change = INT64_C(1) << 48; // maximum change per tick, Q16 or Q30

template <typename T, size_t N> void fill(T (&to)[N], Chance c) {
  if constexpr (std::is_array_v<T>) {
    for (T &row : to) fill(row, c);
  } else {
    for (T &x : to) x = c;
  }
}

} // namespace

void StatePlan::begin(const TypeImpl &t) {
  n = t.fields_n;
  components = t.row;
  position = t.position;
  for (size_t i = 0; i < n; i++) {
    StateField &f = fields[i];
    f = StateField();
    static_cast<RowField &>(f) = t.fields[i];
    if (f.type == ObjectClass::quat) f.quantizer = {f.lo, f.hi};
  }
}

bool StatePlan::link(size_t field, size_t velocity, int64_t factor) {
  if (field >= n || velocity >= n || field == velocity) return false;
  StateField &f = fields[field], &v = fields[velocity];
  bool quat = f.type == ObjectClass::quat;
  if (f.velocity >= 0 || v.velocity >= 0 || f.is_velocity || v.is_velocity) return false;
  if (f.type == ObjectClass::integer || f.type == ObjectClass::bytes || v.type != ObjectClass::number)
    return false;
  int64_t limit = quat ? max_quat_factor : max_factor;
  if (v.n != (quat ? 3 : f.n) || factor == 0 || factor < -limit || factor > limit) return false;
  f.factor = quat ? (factor + 32) >> 6 : (factor + 4) >> 3;
  int64_t lo = absolute(v.lo), hi = absolute(v.hi), largest = lo > hi ? lo : hi;
  if (largest > 0 && absolute(f.factor) > max_change / largest) return false;
  f.velocity = static_cast<int>(velocity);
  v.is_velocity = true;
  return true;
}

void StatePlan::finish() {
  trends = order_n = 0;
  rest_fields = false;
  // Ranks: fields without a velocity, fields with one, quats.
  for (int rank = 0; rank < 3; rank++) {
    for (size_t i = 0; i < n; i++) {
      StateField &f = fields[i];
      bool quat = f.type == ObjectClass::quat;
      if (f.type == ObjectClass::integer || f.type == ObjectClass::bytes) continue;
      if ((quat ? 2 : f.velocity >= 0 ? 1 : 0) == rank) order[order_n++] = static_cast<uint8_t>(i);
    }
  }
  for (size_t i = 0; i < n; i++) {
    StateField &f = fields[i];
    f.weights = f.velocity >= 0 ? 0 : f.is_velocity ? 1 : 2;
    f.zero_at_rest =
        f.type == ObjectClass::number && static_cast<int>(i) != position && f.lo <= 0 && f.hi >= 0;
    rest_fields = rest_fields || f.zero_at_rest;
    f.trend = -1;
    if ((f.type == ObjectClass::number || f.type == ObjectClass::angle) && f.weights == 2) {
      f.trend = static_cast<int>(trends);
      trends += f.n;
    }
  }
  position_level = 0;
  if (position >= 0) {
    const StateField &f = fields[position];
    uint32_t span = static_cast<uint32_t>(int64_t{f.hi} - f.lo);
    position_level = static_cast<int>(clamp(3 * bit_length(span) - 16, 0, levels - 1));
  }
}

bool StatePlan::zero(const int32_t *row) const {
  for (size_t i = 0; i < n; i++) {
    if (!fields[i].zero_at_rest) continue;
    for (size_t k = 0; k < fields[i].n; k++) {
      if (row[fields[i].first + k] != 0) return false;
    }
  }
  return rest_fields;
}

bool StatePlan::rests(const int32_t *row) const {
  if (rest >= 0) return row[fields[rest].first] > fields[rest].lo;
  return zero(row);
}

size_t StatePlan::part_of(const FieldInfo &f) const {
  size_t i = 0;
  while (i < n && fields[i].first != f.first) i++;
  return i;
}

bool plan_of(const TypeImpl &t, const int64_t *factors, StatePlan *plan) {
  const SchemaImpl &s = detail::impl(*t.source);
  *plan = StatePlan();
  plan->begin(t);
  for (size_t i = 0; i < s.factors.size(); i++) {
    const FieldInfo &f = s.infos[s.factors[i]];
    const size_t velocity = plan->part_of(s.infos[static_cast<size_t>(f.velocity)]);
    if (!plan->link(plan->part_of(f), velocity, factors == nullptr ? f.factor : factors[i])) return false;
  }
  plan->finish();
  return true;
}

void reset(StateModels *m) {
  constexpr Chance even{32768, 0}, rarely{6000, 4}, often{60000, 4};
  fill(m->largest, even);
  fill(m->other, even);
  fill(m->same, even);
  fill(m->zero, even);
  m->near_viewer = even;
  fill(m->member, {16384, 2});
  fill(m->gone, {1000, 8});
  m->regenerated = {1000, 8};
  fill(m->held, often);
  fill(m->more, even);
  fill(m->viewer, often);
  fill(m->input, {50000, 2});
  fill(m->differs, {16384, 2});
  fill(m->flip, {20000, 2});
  fill(m->rare, rarely);
  m->view = 0;
  m->pace = 1;
}

void reset(FieldModels *m) {
  constexpr Chance even{32768, 0};
  for (int32_t &b : m->bias) b = 0;
  fill(m->kept, {6000, 4});
  fill(m->changed, {4000, 4});
  m->length = even;
  fill(m->differs, even);
  fill(m->flip, even);
}

} // namespace uplink::detail::state
