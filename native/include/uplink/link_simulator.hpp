// A link that loses, delays, reorders and repeats datagrams, for tests of a game.
#pragma once

#include "uplink/client.hpp"

namespace uplink {

// LinkConditions are those of one direction. Shares are from 0 to 1, times in ns.
struct LinkConditions {
  uint64_t delay = 0;   // of each datagram
  uint64_t jitter = 0;  // each datagram takes up to so much longer, and so can overtake others
  double loss = 0;      // share that is lost
  double duplicate = 0; // share that arrives twice
  uint64_t seed = 1;    // of the random numbers
};

// LinkSimulator is one direction of a link. It holds up to 256 datagrams; further ones are lost.
class LinkSimulator {
public:
  static Error create(const Allocator &a, const LinkConditions &c, LinkSimulator **out);
  static void destroy(LinkSimulator *s);

  // put sends a datagram of up to 1,472 bytes to an address at a time in ns.
  virtual void put(Bytes datagram, const Address &to, uint64_t now) = 0;
  // take copies the next datagram that has arrived at now, and returns its size; 0: none. buffer has room for
  // 1,472 bytes. *arrived is the time of its arrival.
  virtual size_t take(Buffer buffer, Address *to, uint64_t *arrived, uint64_t now) = 0;
  // next returns when the next datagram arrives; the maximum of the type: none is on its way.
  virtual uint64_t next() const = 0;

protected:
  LinkSimulator() = default;
  ~LinkSimulator() = default;
};

} // namespace uplink
