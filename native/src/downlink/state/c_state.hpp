// Common functions of the two parts of the C interface of state synchronization.
#pragma once

#include "src/base/c_api.hpp"
#include "uplink/state.hpp"
#include "uplink/uplink_state.h"

namespace uplink::detail::c_api {

// config_of reports whether the numbers fit. c may be null.
inline bool config_of(const uplink_state_config *from, StateConfig *to) {
  uplink_state_config c;
  if (from == nullptr) return true;
  if (!load(from, &c)) return false;
  to->rest = c.rest;
  return number(c.objects, static_cast<int32_t>(to->objects), &to->objects) &&
         number(c.updates, static_cast<int32_t>(to->updates), &to->updates) &&
         number(c.input_bytes, to->input_bytes, &to->input_bytes);
}

inline uplink_state_update of(const StateUpdate &u) {
  return {
      sizeof(uplink_state_update), u.number, u.tick, u.objects, u.inputs, u.late ? 1 : 0, u.first ? 1 : 0};
}

} // namespace uplink::detail::c_api
