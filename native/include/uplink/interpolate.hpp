// Interpolation of the objects of a world: snapshots are buffered, and the world is shown with a
// delay, between two received snapshots. docs/interpolation.md explains it. Times are nanoseconds.
#pragma once

#include "uplink/objects.hpp"

namespace uplink {

enum class Interpolation : uint8_t {
  linear,  // positions on a straight line, orientations by slerp
  hermite, // positions on the cubic curve through both positions with both velocities
  nearest  // poses of the snapshot that is nearer in time
};

// latest_time is the maximum time in ns, about 73 years. Differences of smaller times cannot
// overflow.
constexpr uint64_t latest_time = uint64_t{1} << 61;

// Maximum numbers of angles and numbers in a Pose, and of fields in InterpolatorConfig::blended.
constexpr size_t max_pose_angles = 4, max_pose_numbers = 8, max_blended = 8;

struct InterpolatorConfig {
  uint64_t interval = 0; // time between two snapshots of the server, 1 ms to 10 s; a SnapshotWorld sets it
  Interpolation method = Interpolation::linear;
  // Names of fields of the schema; null if the objects have no such field. position and velocity
  // have 2 or 3 numbers, orientation is a quat or angles, and teleports is an unsigned integer or a
  // boolean that changes when an object jumps. blended lists further fields of numbers or angles to
  // interpolate. interpolation_problem describes invalid choices.
  const char *position = nullptr;
  const char *velocity = nullptr;
  const char *orientation = nullptr;
  const char *teleports = nullptr;
  const char *blended[max_blended] = {};
  // Interpolation delay; with adaptive, the initial one. 0 means jitter plus the duration of the
  // loss bursts that are likely with loss.
  uint64_t delay = 0;
  uint64_t jitter = 50000000; // delay of packets beyond that of the fastest one
  double loss = 0.05;         // share of packets that are lost, below 1
  bool adaptive = false;      // the delay follows the arrival of recent snapshots
  double late = 0.002;        // share of snapshots that may be late with adaptive, below 1
  uint64_t max_delay = 0;     // maximum delay with adaptive; 0: 500 ms or 6 intervals, whichever is longer
  uint64_t extrapolate = 0;   // time beyond the newest snapshot for which objects are extrapolated
  // Time between two snapshots from which on they are not interpolated; 0: 1 s or 10 intervals,
  // whichever is longer.
  uint64_t gap = 0;
};

// Pose is the part of an object that is interpolated, in the units of the schema.
struct Pose {
  double position[3] = {};
  double velocity[3] = {};
  double orientation[4] = {};
  uint32_t teleports = 0;
  uint32_t reserved = 0; // 184 bytes for every compiler
  // angles contains the angles of the orientation and then those of the blended fields, in order,
  // in degrees from -180 to below 180. Angles are interpolated along the shorter arc. numbers
  // contains the numbers of the blended fields, in order.
  double angles[max_pose_angles] = {};
  double numbers[max_pose_numbers] = {};
};

// Sample is the world at one time. Its memory is valid until the next call of a function of its owner.
struct Sample {
  uint64_t time = 0;    // server time
  bool starved = false; // time is later than the newest snapshot
  // Objects of the newest snapshot that is not after time, for fields that are not interpolated.
  Objects objects;
  const Pose *poses = nullptr; // pose of each object at time
};

struct InterpolatorStats {
  uint64_t added = 0, late = 0, duplicate = 0; // snapshots
  uint64_t restarts = 0; // restarts of the playback clock: at the first snapshot, and after pauses and jumps
  uint64_t hitches = 0;  // number of times that the playback reached the newest snapshot
  uint64_t starved = 0;  // ns of playback after the newest snapshot
  uint64_t delay = 0;    // the current interpolation delay
};

// interpolation_problem checks the fields that a configuration names. If one does not exist or has
// the wrong kind, it returns true and writes a text that names this field and the possible ones, of
// at most capacity bytes with its final zero.
bool interpolation_problem(const Schema &s, const InterpolatorConfig &c, char *to, size_t capacity);

// Interpolator buffers snapshots of objects of one type. It allocates memory whenever a snapshot is
// larger than all before.
class Interpolator {
public:
  // create returns an empty interpolator. The type must have a schema and outlive the interpolator.
  // Error::invalid: a value of the configuration is out of range, or a field does not exist or has
  // the wrong kind.
  static Error create(const Allocator &a, const ObjectType &t, const InterpolatorConfig &c,
                      Interpolator **out);
  static void destroy(Interpolator *i);

  // add adds a snapshot with the server time time that was received at now. Error::duplicate and
  // Error::stale: it was added before, or is too old; this is normal on a lossy network.
  // Error::invalid: a time is after latest_time. Error::no_memory: the snapshot was not added.
  Error add(uint64_t now, uint64_t time, const Objects &o);
  // play sets *time to the server time to show at now. It reports false before the first snapshot
  // and after latest_time. *time decreases only after a pause of the server or a reset.
  bool play(uint64_t now, uint64_t *time);
  // at sets *s to the world at a server time. It reports false before the first snapshot, after
  // latest_time, and if there is no memory.
  bool at(uint64_t time, Sample *s);
  // sample calls play and then at.
  bool sample(uint64_t now, Sample *s);
  // reset removes all snapshots and stops the playback clock.
  void reset();
  InterpolatorStats stats() const;

protected:
  Interpolator() = default;
  ~Interpolator() = default;
};

} // namespace uplink
