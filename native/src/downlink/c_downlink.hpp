// Common functions of the C interfaces of worlds.
#pragma once

#include "src/base/c_api.hpp"
#include "uplink/interpolate.hpp"
#include "uplink/uplink_worlds.h"

namespace uplink::detail::c_api {

static_assert(sizeof(uplink_object) == sizeof(Object) && sizeof(uplink_pose) == sizeof(Pose),
              "structures are the same in both interfaces");

inline uplink_objects of(const Objects &o) {
  return {sizeof(uplink_objects), o.n, o.components, as<const uplink_object>(o.objects), o.rows, o.ages};
}

inline uplink_sample of(const Sample &s) {
  return {0, s.starved ? 1 : 0, s.time, of(s.objects), as<const uplink_pose>(s.poses)};
}

inline uplink_interpolator_stats of(const InterpolatorStats &s) {
  return {0, s.added, s.late, s.duplicate, s.restarts, s.hitches, s.starved, s.delay};
}

// config_of reports whether the numbers are in range.
bool config_of(const uplink_interpolator_config *from, InterpolatorConfig *to);

} // namespace uplink::detail::c_api
