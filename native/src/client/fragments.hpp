// Messages of a replication stream that are larger than a datagram. streams.md, 3.
#pragma once

#include "src/base/memory.hpp"
#include "src/client/bytes.hpp"

namespace uplink::detail::client {

// Assembler reassembles messages. It stores up to 4 incomplete ones. Each has its own memory, which
// is reallocated for a larger message.
class Assembler {
public:
  static constexpr size_t part = 1168;

  void reset();
  // add adds a fragment, without its first byte. If *message is not empty, it is a complete
  // message, valid until the next call.
  Error add(const Allocator &a, Bytes fragment, Bytes *message);

private:
  static constexpr uint16_t window = 4;

  struct Message {
    bool used = false;
    uint16_t number = 0;
    size_t count = 0;
    size_t size = 0; // size of the message; 0 until the last fragment is received
    uint64_t received = 0;
    Array<uint8_t> bytes;
  };

  bool any_ = false;
  uint16_t newest_ = 0;
  Message messages_[window];
};

} // namespace uplink::detail::client
