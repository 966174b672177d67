// Bodies that arrive in parts. datagrams.md, 8.2.
#pragma once

#include "src/base/memory.hpp"
#include "src/client/datagram.hpp"

namespace uplink::detail::client {

// Assembly reassembles bodies that arrive in parts. It allocates memory when the first part
// arrives.
class Assembly {
public:
  struct Body {
    uint64_t first = 0; // packet number of the first part
    uint16_t size = 0, bytes = 0;
    bool reliable = false;
    uint8_t count = 0, arrived = 0; // count of 0: the entry is free
    uint8_t data[max_datagram] = {};
  };
  // configure sets the allocator.
  void configure(const Allocator &a) { allocator_ = a; }
  // clear discards all parts and releases the memory.
  void clear() { bodies_.clear(); }
  // add adds a part: the body of the datagram with packet number number. If the part completes a
  // body, it returns the body, valid until the next call, otherwise nullptr. If there is no memory,
  // the part is lost.
  const Body *add(uint64_t number, Bytes part);

private:
  static constexpr size_t max_bodies = 8; // maximum number of incomplete bodies

  Body *find(uint64_t first, const DatagramPart &p);
  Allocator allocator_;
  Array<Body> bodies_;
};

// Splitter cuts a body into parts of about the same size.
class Splitter {
public:
  bool empty() const { return index_ == count_; }
  void clear() { count_ = index_ = 0; }
  // start begins a body of kind data or reliable. Each part has room for the given number of bytes.
  void start(uint8_t kind, Bytes body, size_t room);
  // next writes the body of the next datagram, at most max_datagram bytes, and returns its size.
  size_t next(uint8_t *to);

private:
  uint16_t size_ = 0, at_ = 0;
  bool reliable_ = false;
  uint8_t count_ = 0, index_ = 0;
  uint8_t data_[max_datagram] = {};
};

} // namespace uplink::detail::client
