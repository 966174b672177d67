// Common functions of the parts of the C interface.
#pragma once

#include "uplink/base.hpp"
#include "uplink/uplink.h"

namespace uplink::detail::c_api {

inline uplink_error code(Error e) {
  return static_cast<uplink_error>(e);
}

inline Allocator of(const uplink_allocator *a) {
  return a == nullptr ? Allocator() : Allocator{a->context, a->allocate, a->release};
}

// The handles are classes of the C++ interface.
template <typename To, typename From> To *as(From *p) {
  return reinterpret_cast<To *>(p);
}

// number stores v, or the default if v is 0. It reports whether v is in range.
template <typename T> bool number(int32_t v, int32_t otherwise, T *to) {
  if (v == 0) v = otherwise;
  *to = static_cast<T>(v);
  return v >= 0 && static_cast<int64_t>(*to) == v;
}

} // namespace uplink::detail::c_api
