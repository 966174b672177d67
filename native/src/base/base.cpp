#include <cstdlib>

#include "src/base/memory.hpp"

namespace uplink {

const char *text(Error e) {
  switch (e) {
  case Error::ok:
    return "no error";
  case Error::no_memory:
    return "the allocator has no memory";
  case Error::invalid:
    return "an argument, a schema or a configuration is not valid";
  case Error::too_small:
    return "the buffer is too small for the result";
  case Error::malformed:
    return "the bytes are malformed";
  case Error::no_baseline:
    return "the frame refers to a frame that is not known here";
  case Error::duplicate:
    return "the frame was decoded before, or is too old";
  case Error::stale:
    return "the message is older than what is known";
  case Error::full:
    return "a fixed limit is reached";
  case Error::closed:
    return "the session has ended";
  case Error::refused:
    return "the peer refused";
  case Error::authentication:
    return "a token, a key or an authentication tag is wrong";
  case Error::desync:
    return "the frame was coded from another state";
  case Error::backlog:
    return "too much reliable data waits for acknowledgments (reliable_queue, or 256 messages before a "
           "call): "
           "wait for room, or raise the limit";
  case Error::too_fast:
    return "the limit of messages of the game is 64 KiB a second with bursts of 128 KiB, each with 64 bytes "
           "more: try again later";
  case Error::unbound:
    return "the RPC is not bound in the session yet: wait for the event bound";
  }
  return "unknown error";
}

namespace detail {

void *allocate(const Allocator &a, size_t size) {
  return a.allocate == nullptr ? std::malloc(size) : a.allocate(a.context, size);
}

void release(const Allocator &a, void *memory) {
  if (a.allocate == nullptr)
    std::free(memory);
  else if (memory != nullptr && a.release != nullptr)
    a.release(a.context, memory);
}

} // namespace detail
} // namespace uplink
