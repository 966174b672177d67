#include "uplink/smoother.hpp"

#include <algorithm>
#include <cmath>

namespace uplink {
namespace {

// Smaller errors are set to zero. They are in the unit of positions, and in radians.
constexpr double least_offset = 1e-4, least_turn = 1e-4;
// Maximum number of steps in Smoother::step, needed because the remainder changes during it.
constexpr int most_pieces = 120;
constexpr double radian = 3.14159265358979323846 / 180; // radians per degree

double norm(const double (&v)[3]) {
  return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

// measure returns the size of a rotation by an angle in radians, as 1 - cos(angle / 2).
double measure(double angle) {
  return 1 - std::cos(angle / 2);
}

// shorter returns the turn from a to b in the shorter direction, in degrees.
double shorter(double a, double b) {
  const double d = std::remainder(b - a, 360);
  if (std::isnan(d)) return 0;
  return d >= 180 ? -180 : d;
}

// product sets out to the rotation by b followed by a.
void product(const double (&a)[4], const double (&b)[4], double (&out)[4]) {
  out[0] = a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1];
  out[1] = a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0];
  out[2] = a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3];
  out[3] = a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2];
}

// rotation sets v to the rotation from a to b.
void rotation(const double (&a)[4], const double (&b)[4], double (&v)[3]) {
  const double back[4] = {-a[0], -a[1], -a[2], a[3]};
  double r[4];
  product(b, back, r);
  const double sign = r[3] < 0 ? -1 : 1;
  const double s = std::sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
  const double k = s > 1e-9 ? 2 * std::atan2(s, sign * r[3]) / s : 2;
  for (int i = 0; i < 3; i++) v[i] = sign * r[i] * k;
}

bool none(const double (&q)[4]) {
  return q[0] == 0 && q[1] == 0 && q[2] == 0 && q[3] == 0;
}

// shrink multiplies v by k, and sets it to zero if the result is shorter than least.
void shrink(double (&v)[3], double k, double least) {
  for (double &x : v) x *= k;
  if (!(norm(v) >= least)) std::fill(v, v + 3, 0.0);
}

bool within(double v, double below) {
  return v > 0 && v < below;
}

} // namespace

const char *Smoother::configure(const Smoothing &s) {
  if (!within(s.slow, 1)) return "slow";
  if (!within(s.fast, 1) || s.fast > s.slow) return "fast";
  if (!within(s.large_error, HUGE_VAL)) return "large_error";
  if (!within(s.small_error, HUGE_VAL) || s.small_error > s.large_error) return "small_error";
  if (!within(s.large_turn, 1)) return "large_turn";
  if (!within(s.small_turn, 1) || s.small_turn > s.large_turn) return "small_turn";
  if (!(s.snap > 0)) return "snap";
  config_ = s;
  return nullptr;
}

void Smoother::correct(const Pose &from, const Pose &to) {
  const Pose shown = drawn(from);
  for (int i = 0; i < 3; i++) offset_[i] = shown.position[i] - to.position[i];
  std::fill(turn_, turn_ + 3, 0.0);
  const bool no_shown = none(shown.orientation), no_to = none(to.orientation);
  if (!no_shown || !no_to) rotation(to.orientation, shown.orientation, turn_);
  for (size_t i = 0; i < max_pose_angles; i++) angles_[i] = shorter(to.angles[i], shown.angles[i]);
  for (size_t i = 0; i < max_pose_numbers; i++) {
    numbers_[i] = shown.numbers[i] - to.numbers[i];
    if (!(std::abs(numbers_[i]) < config_.snap)) numbers_[i] = 0;
  }
  if (no_shown != no_to || std::isnan(norm(turn_)) || !(norm(offset_) < config_.snap)) reset();
}

void Smoother::reset() {
  const Smoothing s = config_;
  *this = Smoother();
  config_ = s;
}

void Smoother::step(double seconds) {
  for (int n = 0; seconds > 0 && !settled(); n++) {
    const double piece = n < most_pieces && is_large() ? std::min(seconds, 1.0 / 60) : seconds;
    fade(piece * 60);
    seconds -= piece;
  }
}

// is_large reports whether an error is large enough to fade faster.
bool Smoother::is_large() const {
  bool large = norm(offset_) > config_.small_error || measure(norm(turn_)) > config_.small_turn;
  for (const double a : angles_) large = large || measure(a * radian) > config_.small_turn;
  for (const double v : numbers_) large = large || std::abs(v) > config_.small_error;
  return large;
}

void Smoother::fade(double frames) {
  const auto left = [&](double error, double small_one, double large_one) {
    return std::pow(share(error, small_one, large_one), frames);
  };
  for (double &a : angles_) {
    a *= left(measure(a * radian), config_.small_turn, config_.large_turn);
    if (!(std::abs(a) * radian >= least_turn)) a = 0;
  }
  for (double &v : numbers_) {
    v *= left(std::abs(v), config_.small_error, config_.large_error);
    if (!(std::abs(v) >= least_offset)) v = 0;
  }
  shrink(offset_, left(norm(offset_), config_.small_error, config_.large_error), least_offset);
  shrink(turn_, left(measure(norm(turn_)), config_.small_turn, config_.large_turn), least_turn);
}

double Smoother::share(double error, double small_one, double large_one) const {
  if (error <= small_one) return config_.slow;
  if (error >= large_one) return config_.fast;
  const double f = (error - small_one) / (large_one - small_one);
  return config_.slow * (1 - f) + config_.fast * f;
}

bool Smoother::settled() const {
  const auto zero = [](double v) { return v == 0; };
  return std::all_of(offset_, offset_ + 3, zero) && std::all_of(turn_, turn_ + 3, zero) &&
         std::all_of(angles_, angles_ + max_pose_angles, zero) &&
         std::all_of(numbers_, numbers_ + max_pose_numbers, zero);
}

Pose Smoother::drawn(const Pose &p) const {
  Pose out = p;
  for (int i = 0; i < 3; i++) out.position[i] += offset_[i];
  for (size_t i = 0; i < max_pose_angles; i++)
    if (angles_[i] != 0) out.angles[i] = shorter(0, out.angles[i] + angles_[i]);
  for (size_t i = 0; i < max_pose_numbers; i++) out.numbers[i] += numbers_[i];
  const double angle = norm(turn_);
  if (angle != 0) {
    const double k = angle > 2e-9 ? std::sin(angle / 2) / angle : 0.5;
    const double q[4] = {turn_[0] * k, turn_[1] * k, turn_[2] * k, std::cos(angle / 2)};
    product(q, p.orientation, out.orientation);
  }
  return out;
}

} // namespace uplink
