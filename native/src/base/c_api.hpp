// Common functions of the parts of the C interface: structures with a size, and checks of handles.
#pragma once

#include <cstring>
#include <type_traits>

#include "src/base/handles.hpp"
#include "uplink/base.hpp"
#include "uplink/uplink.h"

struct uplink_socket;
struct uplink_server_clock;
struct uplink_object_type;
struct uplink_snapshot_decoder;
struct uplink_area_decoder;
struct uplink_interpolator;
struct uplink_smoother;
struct uplink_snapshot_world;
struct uplink_state_receiver;
struct uplink_state_world;
struct uplink_input_history;
struct uplink_world;

namespace uplink {

class Schema;
class Frame;
class Prior;
class Encoder;
class Decoder;
class Client;
class ObjectType;
class SnapshotDecoder;
class AreaDecoder;
class Interpolator;
class SnapshotWorld;
class StateReceiver;
class ClientWorld;

} // namespace uplink

namespace uplink::detail::c_api {

struct HeldSocket;
struct HeldClock;
struct HeldSmoother;
struct HeldStateWorld;
struct HeldHistory;

// Class maps a handle to its class in the C++ interface, and to the type by which it is checked.
template <typename Handle> struct Class;
#define UPLINK_HANDLE(handle, name, shared, lent)                                                            \
  template <> struct Class<handle> {                                                                         \
    using type = name;                                                                                       \
    static constexpr HandleType check{#handle, shared, lent};                                                \
  };
UPLINK_HANDLE(uplink_schema, Schema, true, false)
UPLINK_HANDLE(uplink_frame, Frame, false, true)
UPLINK_HANDLE(uplink_prior, Prior, true, false)
UPLINK_HANDLE(uplink_encoder, Encoder, false, false)
UPLINK_HANDLE(uplink_decoder, Decoder, false, false)
UPLINK_HANDLE(uplink_client, Client, false, false)
UPLINK_HANDLE(uplink_socket, HeldSocket, false, false)
UPLINK_HANDLE(uplink_server_clock, HeldClock, false, false)
UPLINK_HANDLE(uplink_object_type, ObjectType, true, false)
UPLINK_HANDLE(uplink_snapshot_decoder, SnapshotDecoder, false, false)
UPLINK_HANDLE(uplink_area_decoder, AreaDecoder, false, false)
UPLINK_HANDLE(uplink_interpolator, Interpolator, false, false)
UPLINK_HANDLE(uplink_smoother, HeldSmoother, false, false)
UPLINK_HANDLE(uplink_snapshot_world, SnapshotWorld, false, false)
UPLINK_HANDLE(uplink_state_receiver, StateReceiver, false, true)
UPLINK_HANDLE(uplink_state_world, HeldStateWorld, false, false)
UPLINK_HANDLE(uplink_input_history, HeldHistory, false, false)
UPLINK_HANDLE(uplink_world, ClientWorld, false, true)
#undef UPLINK_HANDLE

static_assert(sizeof(uplink_bytes) == sizeof(Bytes), "bytes are those of base.hpp");

inline uplink_error code(Error e) {
  return static_cast<uplink_error>(e);
}

inline Allocator of(const uplink_allocator *a) {
  return a == nullptr ? Allocator() : Allocator{a->context, a->allocate, a->release};
}

// as converts between a handle, or a structure with the same layout, and the type of the C++ interface.
template <typename To, typename From> To *as(From *p) {
  return reinterpret_cast<To *>(p);
}

// made is like as, and registers a new handle. gone is like as, and unregisters a handle that is
// destroyed and may be null.
template <typename Handle, typename From> Handle *made(From *p) {
  handle_made(p, Class<Handle>::check);
  return reinterpret_cast<Handle *>(p);
}
template <typename To, typename Handle> To *gone(Handle *h) {
  handle_gone(h, Class<Handle>::check);
  return reinterpret_cast<To *>(h);
}

// Use provides the object of a handle during one call of a function, and marks the handle as in
// use.
template <typename To, typename Handle> class Use {
public:
  explicit Use(Handle *h) : handle_(h) { handle_enter(h, Class<std::remove_const_t<Handle>>::check); }
  Use(const Use &) = delete;
  Use &operator=(const Use &) = delete;
  ~Use() { handle_leave(handle_); }
  To *operator->() const { return reinterpret_cast<To *>(handle_); }
  To &operator*() const { return *reinterpret_cast<To *>(handle_); }

private:
  Handle *handle_;
};

// in returns the object of a handle for one call of a function.
template <typename Handle> auto in(Handle *h) {
  using T = typename Class<std::remove_const_t<Handle>>::type;
  return Use<std::conditional_t<std::is_const_v<Handle>, const T, T>, Handle>(h);
}

// element returns structure i of an array of the program. The size in the first structure applies
// to all.
template <typename T> T *element(T *array, size_t i) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return reinterpret_cast<T *>(reinterpret_cast<Byte *>(array) + i * array->struct_size);
}

// load copies structure i of an array of the program, which may be built with a newer header. It
// reports whether the size is valid and all members that this library does not know are 0.
template <typename T> bool load(const T *array, size_t i, T *to) {
  if (!has_size(array->struct_size, sizeof(T)))
    return false; // smaller than in the first version of the header
  const T *from = element(array, i);
  const auto *bytes = reinterpret_cast<const unsigned char *>(from);
  for (size_t at = sizeof(T); at < array->struct_size; at++)
    if (bytes[at] != 0) return false;
  std::memcpy(to, from, sizeof(T));
  return true;
}
template <typename T> bool load(const T *from, T *to) {
  return load(from, 0, to);
}

// store copies a structure, except its size, to a structure of the program.
template <typename T> void store(const T &from, T *to) {
  constexpr size_t first = sizeof(to->struct_size);
  if (!has_size(to->struct_size, sizeof(T))) return;
  std::memcpy(reinterpret_cast<char *>(to) + first, reinterpret_cast<const char *>(&from) + first,
              sizeof(T) - first);
}

// number stores v, or the default if v is 0. It reports whether v is in range.
template <typename T> bool number(int32_t v, int32_t otherwise, T *to) {
  if (v == 0) v = otherwise;
  *to = static_cast<T>(v);
  return v >= 0 && static_cast<int64_t>(*to) == v;
}

} // namespace uplink::detail::c_api
