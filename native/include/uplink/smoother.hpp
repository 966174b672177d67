// Smoothing of corrections: after a correction, the drawn pose of an object approaches the
// simulated pose gradually. docs/state-sync.md, "Error smoothing", explains it.
#pragma once

#include "uplink/interpolate.hpp"

namespace uplink {

// Smoothing configures a Smoother.
struct Smoothing {
  // Share of a small error that remains after 1/60 s, and share of a large error. Above 0 and below
  // 1; fast is at most slow.
  double slow = 0.95, fast = 0.85;
  // slow applies to errors up to the distance small_error, fast to errors from large_error on, in
  // the unit of positions. Between them the share is interpolated. The same limits apply to each
  // number of Pose::numbers.
  double small_error = 0.25, large_error = 1;
  // The same limits for orientations and angles, below 1. The measure of a rotation by the angle a
  // is 1 - cos(a/2), so the defaults correspond to 52 and 120 degrees.
  double small_turn = 0.1, large_turn = 0.5;
  // Distance from which on an error is not smoothed: the pose jumps. Infinity disables this. If the
  // error of one of Pose::numbers is that large, only this number jumps.
  double snap = 5;
};

// Smoother smooths the corrections of one object. Its error is the difference between the drawn
// pose and the simulated pose. It does not allocate.
class Smoother {
public:
  Smoother() = default;
  // configure sets the configuration and returns null. If a member is out of range, it returns the
  // member's name and changes nothing.
  const char *configure(const Smoothing &s);
  // correct records that a correction changed the simulated pose. The drawn pose stays where it is,
  // unless its distance from the new pose is Smoothing::snap or more, or is not a number: then it
  // jumps to the new pose. Orientations must have length 1, or be zero in all poses of an object.
  void correct(const Pose &from, const Pose &to);
  // reset sets the error to zero.
  void reset();
  // step advances the time by seconds. The result does not depend on the frame rate. step has no
  // effect if seconds is not above 0.
  void step(double seconds);
  // settled reports whether the error is zero.
  bool settled() const;
  // drawn returns the pose at which to draw an object that is simulated at p.
  Pose drawn(const Pose &p) const;

private:
  bool is_large() const;
  void fade(double frames);
  double share(double error, double small_one, double large_one) const;

  Smoothing config_;
  double offset_[3] = {};
  double turn_[3] = {}; // axis times angle in radians
  double angles_[max_pose_angles] = {};
  double numbers_[max_pose_numbers] = {};
};

} // namespace uplink
