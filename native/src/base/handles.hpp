// Checks of the handles that a program passes to the C interface: that it created them by that type, has not
// destroyed them, and does not use one in two threads at once; and that its structures have their size. A
// mistake ends the program with a message.
// They are made if UPLINK_CHECKS is 1, which is the default without NDEBUG.
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
  bool lent;   // functions also return handles that they own
};

#if UPLINK_CHECKS
// handle_made registers a handle, unless it is null; handle_gone removes it. handle_enter checks one that a
// function uses, and handle_leave ends this use.
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
