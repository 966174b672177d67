// Interpolation of the objects of a world: snapshots are buffered, and the world is shown a little in the
// past, between two that arrived. docs/interpolation.md explains it. Times are nanoseconds.
#pragma once

#include "uplink/objects.hpp"

namespace uplink {

enum class Interpolation : uint8_t {
  linear,  // positions on a straight line, orientations by slerp
  hermite, // positions on the cubic through both positions with both velocities
  nearest  // the snapshot that is nearer in time
};

// latest_time is the last time in ns, about 73 years: no difference overflows below it.
constexpr uint64_t latest_time = uint64_t{1} << 61;

// Limits of a pose.
constexpr size_t max_pose_angles = 4, max_pose_numbers = 8, max_blended = 8;

struct InterpolatorConfig {
  uint64_t interval = 0; // between two snapshots of the server, 1 ms to 10 s; a SnapshotWorld sets it
  Interpolation method = Interpolation::linear;
  // Fields of the schema; null: objects have none. position and velocity have 2 or 3 numbers, orientation is
  // a quat or angles, teleports an unsigned integer or a boolean that changes when an object jumps. blended
  // are further fields of numbers or angles. interpolation_problem tells what is possible.
  const char *position = nullptr;
  const char *velocity = nullptr;
  const char *orientation = nullptr;
  const char *teleports = nullptr;
  const char *blended[max_blended] = {};
  // The interpolation delay. 0: jitter, and as many intervals as loss makes likely to be lost in a row.
  // With adaptive it is the initial one.
  uint64_t delay = 0;
  uint64_t jitter = 50000000; // by which packets take longer than the fastest one
  double loss = 0.05;         // share of packets that are lost, below 1
  bool adaptive = false;      // the delay follows what recent snapshots would have needed
  double late = 0.002;        // share of snapshots that may be late with adaptive, below 1
  uint64_t max_delay = 0;     // with adaptive; 0: 500 ms or 6 intervals, whichever is more
  uint64_t extrapolate = 0;   // time beyond the newest snapshot for which objects continue
  uint64_t gap = 0;           // a pause across which nothing is interpolated; 0: 1 s or 10 intervals
};

// Pose is the part of an object that is interpolated, in the units of the schema.
struct Pose {
  double position[3] = {};
  double velocity[3] = {};
  double orientation[4] = {};
  uint32_t teleports = 0;
  uint32_t reserved = 0; // 184 bytes for every compiler
  // Angles in degrees, from -180 to below 180, which turn the short way round: those of the orientation, then
  // those of the blended fields, in order. The numbers are those of the blended fields.
  double angles[max_pose_angles] = {};
  double numbers[max_pose_numbers] = {};
};

// Sample is the world at one time. Its memory is valid until the next call of a function of its owner.
struct Sample {
  uint64_t time = 0;           // of the server
  bool starved = false;        // time is after the newest snapshot
  Objects objects;             // of the snapshot up to time: for fields that are not interpolated
  const Pose *poses = nullptr; // of each object, at time
};

struct InterpolatorStats {
  uint64_t added = 0, late = 0, duplicate = 0; // snapshots
  uint64_t restarts = 0; // of the playback clock: at the first snapshot, and after pauses and jumps
  uint64_t hitches = 0;  // the playback reached the newest snapshot
  uint64_t starved = 0;  // ns for which it was after that, in time of play
  uint64_t delay = 0;    // the current interpolation delay
};

// interpolation_problem writes which field of a configuration cannot be meant, and which are possible, as a
// text of at most capacity bytes with its final zero. It returns false if all can.
bool interpolation_problem(const Schema &s, const InterpolatorConfig &c, char *to, size_t capacity);

// Interpolator buffers snapshots of objects of one type. It allocates memory while it grows to the
// largest snapshots.
class Interpolator {
public:
  // create returns an empty interpolator. The type must outlive it, and have a schema. Error::invalid: the
  // configuration is out of range, or a field is none of the schema or of another kind.
  static Error create(const Allocator &a, const ObjectType &t, const InterpolatorConfig &c,
                      Interpolator **out);
  static void destroy(Interpolator *i);

  // add adds a snapshot of a server's time, which arrived at now. Error::duplicate, Error::stale: it is
  // not needed. Error::invalid: a time is after latest_time. Error::no_memory.
  Error add(uint64_t now, uint64_t time, const Objects &o);
  // play returns the server's time to show at now. It reports false before the first snapshot, and after
  // latest_time. It never
  // decreases but after a pause of the server and a reset.
  bool play(uint64_t now, uint64_t *time);
  // at sets the world at a time of the server. It reports false before the first snapshot, after latest_time,
  // and without memory.
  bool at(uint64_t time, Sample *s);
  // sample is play and then at.
  bool sample(uint64_t now, Sample *s);
  // reset removes all snapshots, and stops the playback clock.
  void reset();
  InterpolatorStats stats() const;

protected:
  Interpolator() = default;
  ~Interpolator() = default;
};

} // namespace uplink
