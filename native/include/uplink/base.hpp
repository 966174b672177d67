// Common types of all parts of uplink: errors, memory, byte ranges. C++17, no exceptions, no RTTI.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uplink {

// Error is the result of a function that can fail. text describes it.
enum class Error : int32_t {
  ok = 0,
  no_memory = 1,       // the allocator returned null
  invalid = 2,         // an argument, a schema or a configuration is not valid
  too_small = 3,       // the caller's buffer is too small for the result
  malformed = 4,       // bytes from the peer that no correct implementation sends
  no_baseline = 5,     // the frame refers to a frame that this end does not have; later frames can be decoded
  duplicate = 6,       // the frame was decoded before, or is too old
  stale = 7,           // the message is older than one that was processed before
  full = 8,            // a limit is reached, which the function describes; try later
  closed = 9,          // the session has ended
  refused = 10,        // the peer refused; the event contains the reason
  authentication = 11, // a token, a key or an AEAD tag is wrong
  desync = 12,         // the peer's state differs from this one; the next ack requests a reset
  backlog = 13,        // too much reliable data waits for acknowledgments; see Client::reliable_room
  too_fast = 14,       // the client would send more in a second than the server accepts; try later
  unbound = 15         // the RPC is not bound in the session yet: wait for the event bound
};

// text returns a description of an error in English, without a final period. It is never null.
const char *text(Error e);

// Allocator provides the memory of an object. If allocate is null, malloc and free are used. Only
// functions named create allocate, unless the comment of a class states otherwise.
struct Allocator {
  void *context = nullptr;
  // allocate returns size bytes, aligned for any type, or null.
  void *(*allocate)(void *context, size_t size) = nullptr;
  void (*release)(void *context, void *memory) = nullptr;
};

// Bytes is a range of bytes. An argument of this type is read before the function returns.
struct Bytes {
  const uint8_t *data = nullptr;
  size_t size = 0;
};

// Buffer is memory of the caller to which a function writes at most capacity bytes.
struct Buffer {
  uint8_t *data = nullptr;
  size_t capacity = 0;
};

} // namespace uplink
