// Smoothing of corrections: the drawn pose of an object continues from where it was, and approaches the
// simulated one. docs/state-sync.md, "Error smoothing", explains it.
#pragma once

#include "uplink/interpolate.hpp"

namespace uplink {

// Smoothing configures a Smoother.
struct Smoothing {
  // The share of a small error that remains after 1/60 s, and that of a large one: above 0 and below 1, and
  // fast is at most slow.
  double slow = 0.95, fast = 0.85;
  // slow applies to errors up to the distance small_error, fast to errors from large_error on, in the unit of
  // positions; between them the share is interpolated. They apply to each of Pose::numbers too.
  double small_error = 0.25, large_error = 1;
  // The same for orientations and angles, below 1. The measure of a rotation by the angle a is 1 - cos(a/2):
  // these are 52 and 120 degrees.
  double small_turn = 0.1, large_turn = 0.5;
  // The distance from which on an error is not smoothed; infinity means never. A number whose own error is
  // that large jumps alone.
  double snap = 5;
};

// Smoother smooths the corrections of one object. Its error is the difference of the drawn pose from the
// simulated one. It takes no memory.
class Smoother {
public:
  Smoother() = default;
  // configure sets the configuration, and returns null; or the name of a member that is out of range, and
  // changes nothing.
  const char *configure(const Smoothing &s);
  // correct records that a correction changed the simulated pose. The drawn pose does not change, unless it
  // is Smoothing::snap or more away from the new one, or is not a number: then it jumps there. An
  // orientation has length 1, or is zero in all poses of an object.
  void correct(const Pose &from, const Pose &to);
  // reset sets the error to zero.
  void reset();
  // step advances time by seconds, at any frame rate. It does nothing if they are not above 0.
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
