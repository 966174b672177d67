// The receiver of Client::subscribe for worlds that the server offers as snapshots, with and
// without areas.
//
//   SnapshotWorld::create({}, config, &world);
//   client->subscribe("arena", *world, 0, &number);
//   world->sample(0, now(), &sample); // each frame: sample.objects, sample.poses
#pragma once

#include "uplink/interpolate.hpp"
#include "uplink/snapshot.hpp"
#include "uplink/world.hpp"

namespace uplink {

struct SnapshotWorldConfig {
  // The types of objects. The first is the type of the world, and its schema may have any name; the
  // others are identified by the name of their schema. The server must have all these types, with
  // the same fields. Objects of other types of the server are dropped; a mismatch event reports
  // this once. Schemas are copied.
  const Schema *types[max_world_types] = {};
  size_t n = 0;
  // Interpolation of each type; null disables it.
  const InterpolatorConfig *interpolation[max_world_types] = {};
  // Maximum number of objects of all types in a snapshot; larger snapshots are dropped.
  size_t max_objects = 16 * uplink::max_objects;
};

// Snapshot is the newest snapshot of a world.
struct Snapshot {
  uint64_t tick = 0;
  uint64_t received = 0; // ns
};

class SnapshotWorld : public ClientWorld {
public:
  static Error create(const Allocator &a, const SnapshotWorldConfig &c, SnapshotWorld **out);
  static void destroy(SnapshotWorld *w);

  // newest returns the newest snapshot, or null before the first one. After a reconnection or a
  // handover it returns the last snapshot of the former server until a snapshot of the new one
  // shows all objects of the view.
  virtual const Snapshot *newest() const = 0;
  // objects returns the objects of a type in the newest snapshot, valid until Client::receive.
  virtual Objects objects(size_t type) const = 0;
  virtual const ObjectType &type(size_t type) const = 0;
  // sample sets *s to the objects of a type to show at now. It reports false before the first
  // snapshot, and for a type without interpolation.
  virtual bool sample(size_t type, uint64_t now, Sample *s) = 0;
  virtual InterpolatorStats interpolation(size_t type) const = 0;

protected:
  SnapshotWorld() = default;
  ~SnapshotWorld() = default;
};

} // namespace uplink
