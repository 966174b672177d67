// Moving objects: numbers and angles. docs/spec/snapshots.md, 9, 11 and 12.
#include <algorithm>

#include "src/downlink/part.hpp"
#include "src/downlink/tables.hpp"

namespace uplink::detail::downlink {
namespace {

Int minus_one_or_one(Int v) {
  return v > 0 ? -1 : 1;
}

// displacement returns the distance by which a corner moves along axis k between two rotations.
Int displacement(const Matrix &from, const Matrix &to, const Int (&corner)[3], size_t k) {
  Int sum = 0;
  for (size_t i = 0; i < 3; i++) sum += (to.m[k][i] - from.m[k][i]) * corner[i];
  return sum;
}

} // namespace

void ObjectCoder::motion(int32_t *row) {
  for (int k = 0; k < 3; k++) miss_[k] = 0;
  missed_ = turned_ = 0;
  find_neighbor();
  classify();
  load_orientations();
  Neighbor here;
  Int now[3];
  bool some = false;
  for (size_t i = 0; i < type_->order_n; i++) {
    const size_t at = type_->order[i];
    const RowField &f = type_->fields[at];
    bool differs = true;
    if (some || i + 1 < type_->order_n)
      differs = bit(same_[at] + (moved_ + (some ? 8U : 0U) + 16 * speed_context_));
    some = some || differs;
    if (!differs) continue;
    if (f.type == ObjectClass::quat)
      here.turn += decode_quat(f, row);
    else if (f.type == ObjectClass::number)
      decode_number(f, f.number == 0, row);
    else
      decode_angle(f, row);
  }
  position_of(base_, here.position);
  for (int k = 0; k < 3; k++) here.miss[k] = miss_[k];
  here.missed = missed_;
  nearby_[nearby_n_++ % 16] = here;
  position_of(row, now);
  grid_.add(now);
}

void ObjectCoder::find_neighbor() {
  near_ = nullptr;
  near_gap_ = 0;
  if (type_->position < 0) return;
  Int p[3], nearest = INT64_C(1) << 62;
  position_of(base_, p);
  for (size_t i = nearby_n_ - std::min<size_t>(nearby_n_, 16); i < nearby_n_; i++) {
    const Neighbor &n = nearby_[i % 16];
    Int d = 0;
    for (int k = 0; k < 3; k++) {
      const Int x = n.position[k] - p[k];
      d += x * x >> 2;
    }
    if (d >= nearest) continue;
    nearest = d;
    near_ = &n;
  }
  near_gap_ = log(nearest << 5) / 2;
}

ObjectCoder::Velocities ObjectCoder::velocities(size_t c) const {
  const Int b = base_[c], r0 = rows_[0][c], r1 = rows_[1][c], r2 = rows_[2][c], r3 = rows_[3][c];
  const auto over = [&](Int newer, Int older, Int lag) {
    return (newer - older) * (Int{16} * distance_ * part(lag)) >> 16;
  };
  // between computes the change between two references or, if they are the same, from the baseline.
  const auto between = [&](Int newer, Int older, size_t i) {
    return lag_[i] == lag_[i + 1] ? over(b, older, lag_[i + 1]) : over(newer, older, lag_[i + 1] - lag_[i]);
  };
  return {over(b, r0, lag_[0]), over(b, r1, lag_[1]), over(b, r2, lag_[2]), over(b, r3, lag_[3]),
          between(r0, r1, 0),   between(r1, r2, 1),   between(r2, r3, 2)};
}

void ObjectCoder::measure(const RowField &f) {
  Int speed = 0;
  jerk_ = jerk1_ = 0;
  for (size_t k = 0; k < f.n; k++) {
    const Velocities &v = velocity_[k] = velocities(f.first + k);
    jerk_ += absolute(v.v1 - v.v12 * 2 + v.v23) * 2;
    jerk1_ += absolute(v.v0 - v.v01 * 2 + v.v12);
    speed += absolute(v.v1);
  }
  jerk_ = jerk_ * part(distance_) >> 16;
  jerk1_ = jerk1_ * part(distance_) >> 16;
  log_jerk_ = log(jerk_);
  log_jerk1_ = log(jerk1_);
  log_speed_ = log(speed);
}

void ObjectCoder::classify() {
  class_ = moved_ == 0 ? 3 : 0;
  jerk_ = jerk1_ = 0;
  log_jerk_ = log_jerk1_ = log_speed_ = log(0);
  for (int k = 0; k < 3; k++) drift_[k] = change_[k] = 0;
  if (type_->position < 0) return;
  const RowField &f = type_->fields[type_->position];
  measure(f);
  for (size_t k = 0; k < f.n; k++) {
    drift_[k] = velocity_[k].v2;
    change_[k] = velocity_[k].v0 - velocity_[k].v2;
  }
  if (moved_ != 7) return;
  if (jerk1_ >= 320)
    class_ = 5;
  else if (jerk_ >= 320)
    class_ = 4;
  else
    class_ = jerk_ < 80 && jerk1_ <= 80 ? 1 : 2;
}

Int ObjectCoder::above(size_t k, const Matrix &m, Int at) const {
  return at - used_.floor[k] - (used_.half[k] * (m.extent(k) - 65536) >> 16);
}

void ObjectCoder::decode_number(const RowField &f, bool is_position, int32_t *row) {
  const size_t kind = is_position ? 0 : 1;
  uint16_t *contexts = of_field_[&f - type_->fields];
  const size_t c = class_.index();
  size_t gc = c;
  if (!is_position)
    measure(f);
  else if (ground_ >= 0)
    gc += classes;
  Int y[terms], unsteady = 0;
  for (size_t k = 0; k < f.n; k++) unsteady += absolute(velocity_[k].v1 - velocity_[k].v3);
  y[0] = log_jerk_;
  y[1] = log_jerk1_;
  y[2] = log(unsteady);
  y[3] = log_speed_;
  y[5] = log(turned_);
  y[15] = y[5] * y[5] >> 11;
  y[7] = bias;
  if (near_ != nullptr) {
    y[13] = log(near_->missed);
    y[10] = near_gap_;
  } else {
    y[9] = bias;
  }
  Int e[3], m = 0;
  for (size_t k = 0; k < f.n; k++) {
    const Int b = Int{base_[f.first + k]} * 16;
    const Velocities &v = velocity_[k];
    const Int g = v.v2;
    Int x[terms], out = 0;
    x[0] = g;
    x[1] = v.v0 - g;
    x[2] = v.v01 - g;
    x[3] = g - v.v23;
    x[4] = 160;
    if (near_ != nullptr) x[5] = near_->miss[k];
    const int32_t(*w)[terms] = &position_weights[model_][kind][k][c];
    if (is_position) w = &position_terms(k, b, x, &out);
    for (size_t i = 0; i < k; i++) x[7 + i] = e[i];
    const Int guess = clamp(b + predict(*w, x), Int{f.lo} * 16, Int{f.hi} * 16);
    y[4] = log(m);
    y[8] = c == 3 ? bias : Int{0};
    y[11] = log(g);
    y[12] = log(out);
    y[14] = greatest(y[5], y[12]);
    const Int s = predict(scale_weights[model_][kind][k][gc], y);
    Int sign = Int{static_cast<int64_t>(9 * k)} + sign3(x[1]) * 3 + sign3(g);
    if (is_position) {
      const Int h = guess - used_.floor[k];
      const Int r = Int{16} << static_cast<int>(clamp(s / 256 + 1, 0, 20).v);
      sign += h < r / 4 ? 54 : h < r ? 27 : 0;
    }
    const size_t number = (k >> 1) + (gc >= classes ? 2 : 0);
    e[k] = component(contexts + integer_size * number, level(s), sign, guess, f, row + f.first + k);
    m += absolute(e[k]);
  }
  if (!is_position) return;
  for (size_t k = 0; k < f.n; k++) miss_[k] = e[k];
  missed_ = m;
}

// position_terms sets x to the terms of the prediction of coordinate k, and returns their weights.
const int32_t (&ObjectCoder::position_terms(size_t k, Int b, Int (&x)[terms], Int *out))[terms] {
  const Int g = x[0];
  *out = has_pose_ ? greatest(0, -above(k, now_, b + g)) : greatest(0, used_.floor[k] - b - g);
  x[6] = *out;
  if (ground_ >= 0) return roll(k, b, x);
  const size_t c = *out > 0 && class_ != 3 ? 6 : class_.index();
  return position_weights[model_][0][k][c];
}

const int32_t (&ObjectCoder::roll(size_t k, Int b, Int (&x)[terms]))[terms] {
  constexpr size_t groups[classes] = {0, 1, 2, 0, 3, 4, 4};
  const size_t a = static_cast<size_t>(ground_), group = groups[class_.index()];
  const Int half = used_.half[a], back = lag_[2] > 0 ? distance_ / lag_[2] : Int{0};
  for (size_t i = 0; i < 3; i++) x[13 + i] = turn_[i] * half >> 16;
  if (k == a) {
    const Int extent = base_pose_.extent(k);
    x[10] = half * (now_.extent(k) - extent) >> 16;
    x[11] = (half * (extent - before_.extent(k)) >> 16) * back;
    x[12] = -above(k, base_pose_, b);
    return roll_weights[model_][0][0][group];
  }
  Int was[3], is[3];
  for (size_t i = 0; i < 3; i++) {
    was[i] = minus_one_or_one(base_pose_.m[a][i]);
    is[i] = minus_one_or_one(now_.m[a][i]);
  }
  x[10] = -half * displacement(base_pose_, now_, was, k) >> 16;
  x[11] = (-half * displacement(before_, base_pose_, was, k) >> 16) * back;
  x[12] = -half * displacement(base_pose_, now_, is, k) >> 16;
  return roll_weights[model_][0][1 + (k & 1)][group];
}

void ObjectCoder::decode_angle(const RowField &f, int32_t *row) {
  uint16_t *contexts = of_field_[&f - type_->fields];
  const Int turn = Int{f.hi} - f.lo + 1;
  for (size_t k = 0; k < f.n; k++) {
    const Int b = base_[f.first + k], r1 = rows_[1][f.first + k], r2 = rows_[2][f.first + k];
    const Int later = lag_[2] - lag_[1];
    const Int now = lag_[1] > 0 ? wrap(b - r1, turn) * distance_ / lag_[1] : Int{0};
    const Int before = later > 0 ? wrap(r1 - r2, turn) * distance_ / later : Int{0};
    Int guess = b, miss = absolute(now);
    if (absolute(now - before) < miss) {
      guess = b + now;
      miss = absolute(now - before);
    }
    const Int sign = Int{static_cast<int64_t>(9 * k)} + sign3(now) * 3 + sign3(before);
    const Int d = integer(contexts, level(log(miss * 16)), sign);
    if (d != wrap(d, turn)) bad_ = true;
    row[f.first + k] = static_cast<int32_t>((Int{f.lo} + modulo(guess + d - f.lo, turn)).v);
  }
}

} // namespace uplink::detail::downlink
