// Common functions of the C interfaces of worlds.
#pragma once

#include "src/codec/c_api.hpp"
#include "uplink/interpolate.hpp"
#include "uplink/uplink_worlds.h"

namespace uplink::detail::c_api {

static_assert(sizeof(uplink_object) == sizeof(Object) && sizeof(uplink_objects) == sizeof(Objects) &&
                  sizeof(uplink_pose) == sizeof(Pose) &&
                  sizeof(uplink_interpolator_stats) == sizeof(InterpolatorStats),
              "structures are the same in both interfaces");

inline uplink_objects of(const Objects &o) {
  return {o.n, o.components, as<const uplink_object>(o.objects), o.rows, o.ages};
}

inline uplink_sample of(const Sample &s) {
  return {s.time, s.starved ? 1 : 0, 0, of(s.objects), as<const uplink_pose>(s.poses)};
}

inline uplink_interpolator_stats of(const InterpolatorStats &s) {
  return {s.added, s.late, s.duplicate, s.restarts, s.hitches, s.starved, s.delay};
}

// config_of reports whether the numbers are in range.
bool config_of(const uplink_interpolator_config &c, InterpolatorConfig *to);

} // namespace uplink::detail::c_api
