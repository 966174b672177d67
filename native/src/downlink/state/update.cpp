// The update of an object. docs/spec/state.md, 10 to 12.
#include <cstring>

#include "src/downlink/state/receiver.hpp"

namespace uplink::detail::state {

namespace {

enum Weight { bias, elapsed_log, unsteady_log, speed_log, learned_log, velocity_log, other_one, missed_log };

constexpr int32_t weights[3][3][8] = {{{-35600, 55000, 44600, -9600, 3500, 9900, 10100, 2200},
                                       {-20900, 31300, 26300, -5600, 2600, 4500, 4700, 28900},
                                       {-11600, 18400, 16800, 700, -600, 9300, 3900, 26500}},
                                      {{-22000, 80900, 0, 14900, 20100, 0, 0, 1400},
                                       {-6300, 20900, 0, 3900, 4700, 0, 0, 50000},
                                       {5600, 13600, 0, 15400, -4200, 0, 0, 31700}},
                                      {{3000, 30900, 0, 0, 27700, 0, 5800, -200},
                                       {4900, 14000, 0, 0, 15900, 0, 700, 29100},
                                       {-14400, 11200, 0, 0, 18000, 0, 5100, 41800}}};

constexpr int64_t max_move = INT64_C(1) << 40;
constexpr int64_t max_turn = INT64_C(1) << 22;

int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

} // namespace

void StateImpl::whole(uint32_t to) {
  StateModels &m = models_[64];
  int32_t *c = row(to);
  bool none = plan_.rest_fields && coder_.bit(m.zero[2]);
  std::memset(c, 0, stride_ * sizeof *c);
  std::memset(misses(to), 0, plan_.n);
  for (size_t i = 0; i < plan_.n; i++) {
    const StateField &f = plan_.fields[i];
    int32_t *x = c + f.first;
    if (none && f.zero_at_rest) continue;
    if (f.type == ObjectClass::bytes) {
      x[0] = coder_.uniform(f.lo, f.hi);
      for (size_t k = 0; k < static_cast<size_t>(x[0]); k++)
        put_byte(x, k, static_cast<uint8_t>(coder_.raw(8)));
    } else if (static_cast<int>(i) == plan_.position && located_ && coder_.bit(m.near_viewer)) {
      for (size_t k = 0; k < f.n; k++)
        x[k] = coder_.bounded(place_[k] + coder_.rare(&m, rare_position, plan_.position_level), f.lo, f.hi);
    } else {
      for (size_t k = 0; k < f.n; k++) {
        int32_t lo, hi;
        f.bounds(k, &lo, &hi);
        x[k] = coder_.uniform(lo, hi);
      }
    }
  }
}

void StateImpl::delta(uint32_t to, uint32_t base) {
  StateModels &m = models_[64];
  FieldModels *models = fields_.data() + 64 * plan_.n;
  const Record &b = records_[base];
  size_t was = b.zero ? 1 : 0, context = 2 * was + (b.rests ? 1 : 0);
  int32_t *c = row(to);
  const int32_t *old = row(base);
  std::memcpy(c, old, plan_.components * sizeof *c);
  std::memcpy(misses(to), misses(base), plan_.n);
  std::memset(trends(to), 0, plan_.trends * sizeof *c);
  if (coder_.bit(m.same[context][age(base)])) return;
  for (size_t i = 0; i < plan_.n; i++) {
    const StateField &f = plan_.fields[i];
    if (f.type != ObjectClass::integer || !coder_.bit(models[i].changed[context])) continue;
    int64_t flipped = int64_t{f.lo} + f.hi - old[f.first];
    c[f.first] = int64_t{f.hi} - f.lo == 1 ? static_cast<int32_t>(flipped) : coder_.uniform(f.lo, f.hi);
  }
  for (size_t i = 0; i < plan_.n; i++) {
    const StateField &f = plan_.fields[i];
    if (f.type == ObjectClass::bytes && coder_.bit(models[i].changed[context]))
      text(f, &models[i], c + f.first, old + f.first);
  }
  bool none = b.zero;
  if (plan_.rest_fields) none = coder_.bit(m.zero[was]);
  int32_t difference =
      static_cast<int32_t>(static_cast<uint32_t>(work_.tick) - static_cast<uint32_t>(b.tick));
  int64_t elapsed = clamp(difference, 1, 120);
  for (int64_t &l : logs_) l = 0;
  for (size_t i = 0; i < plan_.order_n; i++) {
    size_t field = plan_.order[i];
    const StateField &f = plan_.fields[field];
    if (none && f.zero_at_rest) {
      std::memset(c + f.first, 0, f.n * sizeof *c);
    } else if (!coder_.bit(models[field].kept[was])) {
      if (f.type == ObjectClass::quat)
        orientation(field, to, base, elapsed);
      else
        motion(field, to, base, elapsed);
    }
  }
}

void StateImpl::text(const StateField &f, FieldModels *m, int32_t *to, const int32_t *base) {
  int32_t n = base[0];
  if (coder_.bit(m->length)) n = coder_.uniform(f.lo, f.hi);
  std::memset(to, 0, f.n * sizeof *to);
  to[0] = n;
  bool differed = false;
  for (size_t k = 0; k < static_cast<size_t>(n); k++)
    put_byte(to, k, coder_.changed_byte(m->differs, m->flip, &differed, byte_of(base, k)));
}

void StateImpl::start(Scales *s, size_t field, int64_t elapsed, int64_t unsteady, int64_t speed,
                      int64_t learned, int64_t velocity) {
  s->models = fields_.data() + 64 * plan_.n + field;
  s->weights = weights[plan_.fields[field].weights];
  for (size_t k = 0; k < 3; k++) {
    const int32_t *w = s->weights[k];
    s->common[k] = w[bias] * INT64_C(2048) + w[elapsed_log] * log(16 * elapsed) + w[unsteady_log] * unsteady +
                   w[speed_log] * speed + w[learned_log] * learned + w[velocity_log] * velocity;
  }
}

int64_t StateImpl::residual(Scales *s, size_t k) {
  s->scale = ((s->common[k] + s->weights[k][missed_log] * log(s->missed)) >> 16) + (s->models->bias[k] >> 4);
  return coder_.number(level(s->scale));
}

void StateImpl::learn(Scales *s, size_t k, int64_t missed) {
  int32_t &b = s->models->bias[k];
  b = static_cast<int32_t>(b + (clamp(log(missed) - s->scale, -2048, 2048) >> 2));
  s->missed += absolute(missed);
}

void StateImpl::end(const Scales &s, size_t field, uint32_t to) {
  logs_[field] = log(s.missed);
  misses(to)[field] = static_cast<uint8_t>(clamp(logs_[field] >> 5, 0, 255));
}

void StateImpl::motion(size_t field, uint32_t to, uint32_t base, int64_t elapsed) {
  const StateField &f = plan_.fields[field];
  int32_t *c = row(to) + f.first;
  const int32_t *a = row(base) + f.first;
  int64_t move[3] = {}, unsteady = 0, speed = 0, velocity = 0;
  if (f.velocity >= 0) {
    const StateField &v = plan_.fields[f.velocity];
    for (size_t k = 0; k < f.n; k++) {
      int64_t then = row(base)[v.first + k] * f.factor, is = row(to)[v.first + k] * f.factor;
      move[k] = clamp((((then + is) * elapsed >> 1) + is - then) >> 12, -max_move, max_move);
      speed += absolute(is) * elapsed >> 12;
      unsteady += absolute(is - then) * elapsed >> 12;
    }
    velocity = logs_[f.velocity];
  } else if (f.is_velocity) {
    for (size_t k = 0; k < f.n; k++) {
      move[k] = -int64_t{a[k]} * (smaller(elapsed, 60) * 39) >> 8;
      speed += absolute(a[k]) * 16;
    }
  } else {
    for (size_t k = 0; k < f.n; k++) {
      move[k] = clamp(trends(base)[static_cast<size_t>(f.trend) + k] * elapsed >> 5, -max_move, max_move);
      unsteady += absolute(move[k]);
    }
  }
  Scales s;
  start(&s, field, elapsed, log(unsteady), log(speed), misses(base)[field] << 5, velocity);
  int64_t lo = f.lo, turn = int64_t{f.hi} - f.lo + 1;
  for (size_t k = 0; k < f.n; k++) {
    int64_t guess = a[k] * INT64_C(16) + move[k];
    guess = f.type == ObjectClass::angle ? 16 * lo + mod(guess - 16 * lo, 16 * turn)
                                         : clamp(guess, 16 * lo, 16 * int64_t{f.hi});
    int64_t v = ((guess + 8) >> 4), d = residual(&s, k), change;
    v += d;
    if (f.type == ObjectClass::angle) {
      if (wrap(d, turn) != d) coder_.fail();
      c[k] = static_cast<int32_t>(lo + mod(v - lo, turn));
      change = wrap(int64_t{c[k]} - a[k], turn);
    } else {
      c[k] = coder_.bounded(v, f.lo, f.hi);
      change = int64_t{c[k]} - a[k];
    }
    learn(&s, k, 16 * v - guess);
    if (f.trend >= 0)
      trends(to)[static_cast<size_t>(f.trend) + k] =
          static_cast<int32_t>(clamp(change * 256 / elapsed, -(INT64_C(1) << 30), INT64_C(1) << 30));
  }
  end(s, field, to);
}

void StateImpl::orientation(size_t field, uint32_t to, uint32_t base, int64_t elapsed) {
  StateModels &m = models_[64];
  const StateField &f = plan_.fields[field];
  int32_t *c = row(to) + f.first;
  downlink::Rotation q = f.quantizer.unpack(row(base) + f.first);
  int64_t unsteady = 0, speed = 0, velocity = 0;
  if (f.velocity >= 0) {
    const StateField &v = plan_.fields[f.velocity];
    downlink::Int turn[3];
    for (size_t k = 0; k < 3; k++) {
      int64_t then = row(base)[v.first + k] * f.factor, is = row(to)[v.first + k] * f.factor;
      turn[k] = clamp((((then + is) * elapsed >> 1) + is - then) >> 14, -max_turn, max_turn);
      speed += smaller(absolute(is) * elapsed >> 14, max_turn);
      unsteady += smaller(absolute(is - then) * elapsed >> 14, max_turn);
    }
    q = downlink::multiply(downlink::turn(turn), q);
    velocity = logs_[f.velocity];
  }
  unsteady = f.quantizer.size(unsteady).v;
  speed = f.quantizer.size(speed).v;
  int64_t learned = misses(base)[field] << 5, doubt = clamp((unsteady + learned) >> 9, 0, 7);
  int order[4] = {0, 1, 2, 3}; // by descending magnitude
  for (int i = 1; i < 4; i++) {
    for (int k = i; k > 0 && absolute(q.e[order[k]]) > absolute(q.e[order[k - 1]]); k--) {
      int swap = order[k];
      order[k] = order[k - 1];
      order[k - 1] = swap;
    }
  }
  int64_t margin = f.quantizer.size(absolute(q.e[order[0]]) - absolute(q.e[order[1]])).v;
  bool other = coder_.bit(m.largest[clamp((margin + 256) * 2 >> 8, 0, levels - 1)][doubt]);
  int largest = order[0];
  if (other) {
    largest = order[1];
    if (coder_.bit(m.other[0])) {
      bool high = coder_.bit(m.other[1]);
      largest = high == (order[2] > order[3]) ? order[2] : order[3];
    }
  }
  c[0] = largest;
  if (q.e[largest] < 0) {
    for (downlink::Int &e : q.e) e = -e;
  }
  Scales s;
  start(&s, field, elapsed, unsteady, speed, learned, velocity);
  if (other) {
    for (size_t k = 0; k < 3; k++) s.common[k] += s.weights[k][other_one] * INT64_C(2048);
  }
  size_t k = 0;
  for (int i = 0; i < 4; i++) {
    if (i == largest) continue;
    int64_t guess = clamp(f.quantizer.pack(q.e[i]).v, 16 * int64_t{f.lo}, 16 * int64_t{f.hi});
    int64_t v = ((guess + 8) >> 4) + residual(&s, k);
    c[k + 1] = coder_.bounded(v, f.lo, f.hi);
    learn(&s, k, 16 * v - guess);
    k++;
  }
  end(s, field, to);
}

} // namespace uplink::detail::state
