// Orientations of snapshots. docs/spec/snapshots.md, 10.
#include "src/downlink/part.hpp"
#include "src/downlink/tables.hpp"

namespace uplink::detail::downlink {

namespace {

constexpr size_t integers_at = 322;

void between(const Rotation &a, const Rotation &b, Int (&v)[3]) {
  Rotation r = multiply(b, {{-a.e[0], -a.e[1], -a.e[2], a.e[3]}});
  Int s = 0;
  for (int i = 0; i < 3; i++) {
    if (r.e[3] < 0) r.e[i] = -r.e[i];
    s += r.e[i] * r.e[i];
  }
  s = s >> 16;
  const Int k = Int{131072} + (s * (Int{21845} + (s * (Int{9830} + (s * 5851 >> 16)) >> 16)) >> 16);
  for (int i = 0; i < 3; i++) v[i] = r.e[i] * k >> 16;
}

Matrix matrix(const Rotation &q) {
  const Int &x = q.e[0], &y = q.e[1], &z = q.e[2], &w = q.e[3];
  return {{{one - ((y * y + z * z) >> 15), (x * y - z * w) >> 15, (x * z + y * w) >> 15},
           {(x * y + z * w) >> 15, one - ((x * x + z * z) >> 15), (y * z - x * w) >> 15},
           {(x * z - y * w) >> 15, (y * z + x * w) >> 15, one - ((x * x + y * y) >> 15)}}};
}

// largest returns the indices of the two largest magnitudes. Of equal magnitudes, the lower index
// comes first.
void largest(const Rotation &q, int *first, int *second) {
  *first = 0;
  for (int i = 1; i < 4; i++)
    if (absolute(q.e[i]) > absolute(q.e[*first])) *first = i;
  *second = *first == 0 ? 1 : 0;
  for (int i = *second + 1; i < 4; i++)
    if (i != *first && absolute(q.e[i]) > absolute(q.e[*second])) *second = i;
}

} // namespace

void ObjectCoder::load_orientations() {
  has_pose_ = type_->orientation >= 0;
  ground_ = -1;
  for (Int &t : turn_) t = 0;
  if (!has_pose_) return;
  const RowField &f = type_->fields[type_->orientation];
  const Quantizer quantizer(f.lo, f.hi);
  base_pose_ = now_ = matrix(quantizer.unpack(base_ + f.first));
  if (type_->position < 0) return;
  const RowField &p = type_->fields[type_->position];
  Int nearest;
  for (size_t k = 0; k < p.n; k++) {
    const Int h = absolute(above(k, base_pose_, Int{base_[p.first + k]} * 16));
    if (h < Int{16} + (used_.half[k] >> 4) && (ground_ < 0 || h < nearest)) {
      ground_ = static_cast<int>(k);
      nearest = h;
    }
  }
  if (ground_ >= 0) before_ = matrix(quantizer.unpack(rows_[2] + f.first));
}

Int ObjectCoder::decode_quat(const RowField &f, int32_t *row) {
  const Quantizer quantizer(f.lo, f.hi);
  uint16_t *contexts = of_field_[&f - type_->fields];
  const bool is_orientation = type_->fields + type_->orientation == &f;
  const Rotation from = quantizer.unpack(base_ + f.first);
  Int v[reference_count][3];
  for (size_t i = 0; i < reference_count; i++) {
    if (lag_[i] == 0) continue;
    between(quantizer.unpack(rows_[i] + f.first), from, v[i]);
    for (Int &x : v[i]) x = x * (distance_ * part(lag_[i])) >> 16;
  }
  size_t c = class_.index();
  Int unit = 128;
  if (ground_ >= 0) {
    c += classes;
    unit = Int{1048576} / (used_.half[ground_] + 1);
  }
  Int guess[3], unsteady = 0, angular = 0, j = 0, j1 = 0;
  for (size_t k = 0; k < 3; k++) {
    const Int g = v[2][k];
    Int x[terms];
    x[0] = g;
    x[1] = v[0][k] - g;
    x[2] = v[1][k] - g;
    x[3] = g - v[3][k];
    for (size_t i = 0; i < 3; i++) {
      x[4 + i] = drift_[i] * unit >> 4;
      x[7 + i] = change_[i] * unit >> 4;
    }
    guess[k] = predict(turn_weights[model_][k][c], x);
    unsteady += absolute(v[1][k] - v[3][k]);
    angular += absolute(v[1][k]);
    j += absolute(x[3]);
    j1 += absolute(x[1]);
  }
  Rotation q = multiply(exp(guess), from);
  Int y[terms];
  y[0] = log_jerk_;
  y[1] = log_jerk1_;
  y[2] = quantizer.size(unsteady);
  y[3] = quantizer.size(angular);
  if (near_ != nullptr) y[5] = log(near_->turn);
  y[7] = bias;
  if (moved_ == 0) y[8] = bias;
  y[10] = log_speed_;
  y[11] = log(missed_);
  y[12] = quantizer.size(j);
  y[13] = quantizer.size(j1);

  int index = 0, second = 0;
  largest(q, &index, &second);
  const Int margin = quantizer.size(absolute(q.e[index]) - absolute(q.e[second]));
  const size_t doubt = clamp((y[2] + y[11]) >> 9, 0, 7).index();
  if (bit(contexts + 8 * clamp((margin + 256) * 2 >> 8, 0, 39).index() + doubt)) {
    y[9] = bias;
    if (!bit(contexts + 320)) {
      index = second;
    } else {
      int others[2] = {}, n = 0;
      for (int i = 0; i < 4; i++)
        if (i != index && i != second) others[n++] = i;
      index = bit(contexts + 321) ? others[1] : others[0];
    }
  }
  if (q.e[index] < 0)
    for (Int &e : q.e) e = -e;
  int32_t *to = row + f.first;
  to[0] = index;
  Int m = 0;
  for (size_t i = 0, k = 0; i < 4; i++) {
    if (static_cast<int>(i) == index) continue;
    const Int target = quantizer.pack(q.e[i]), distance = target - quantizer.pack(from.e[i]);
    y[4] = log(m);
    y[14] = log(distance);
    const Int scale = predict(turn_scale_weights[model_][k][c], y);
    const Int sign = Int{static_cast<int64_t>(9 * k)} + sign3(distance);
    uint16_t *number = contexts + integers_at + (c >= classes ? integer_size : 0);
    m += absolute(
        component(number, level(scale), sign, clamp(target, Int{f.lo} * 16, Int{f.hi} * 16), f, to + 1 + k));
    k++;
  }
  if (is_orientation) {
    const Rotation now = quantizer.unpack(to);
    now_ = matrix(now);
    between(from, now, turn_);
    turned_ = m;
  }
  return m;
}

} // namespace uplink::detail::downlink
