// Checks of the handles and structures that a program passes to the C interface: a handle has the
// right type, was not destroyed and is not used by two threads at the same time, and a structure
// has a valid size. A mistake ends the program with a message. The checks are enabled if
// UPLINK_CHECKS is 1, which is the default without NDEBUG.
#pragma once

#include <cstddef>

#ifndef UPLINK_CHECKS
#ifdef NDEBUG
#define UPLINK_CHECKS 0
#else
#define UPLINK_CHECKS 1
#endif
#endif

namespace uplink::detail {

// HandleType is a type of handles.
struct HandleType {
  const char *name;
  bool shared; // any number of threads may use one at the same time
  bool lent;   // functions also return handles that another handle owns
};

#if UPLINK_CHECKS
// handle_made registers a handle, unless it is null; handle_gone removes it. handle_enter checks a
// handle at the start of its use by a function, and handle_leave ends the use.
void handle_made(const void *handle, const HandleType &type);
void handle_gone(const void *handle, const HandleType &type);
void handle_enter(const void *handle, const HandleType &type);
void handle_leave(const void *handle);
// has_size reports whether a structure has at least the size of the first version of the header.
bool has_size(size_t size, size_t first);
#else
inline void handle_made(const void *, const HandleType &) {}
inline void handle_gone(const void *, const HandleType &) {}
inline void handle_enter(const void *, const HandleType &) {}
inline void handle_leave(const void *) {}
inline bool has_size(size_t size, size_t first) {
  return size >= first;
}
#endif

} // namespace uplink::detail
