// UDP sockets for a Client, and the loop between them, for programs that have no sockets of their own.
#pragma once

#include "uplink/client.hpp"

namespace uplink {

// parse_address parses an IPv4 address with a port, such as 127.0.0.1:7777, or an IPv6 address in
// brackets with one. Names are not resolved. Error::invalid: it is none.
Error parse_address(const char *text, Address *a);

// now returns the time of a monotonic clock, in ns, and wall_now ms since 1970-01-01 00:00 UTC.
uint64_t now();
uint64_t wall_now();

// Socket is a UDP socket that is connected to a server, or closed. During handovers it has one for each
// server. A Socket is for one thread at a time.
class Socket {
public:
  Socket() = default;
  Socket(const Socket &) = delete;
  Socket &operator=(const Socket &) = delete;
  ~Socket() { close(); }

  // open closes what is open, and opens a socket on a free local port, for the server for which the
  // program calls Client::connect.
  Error open(const Address &server);
  void close();
  // wait waits until there is a datagram to receive, at most so many ns.
  void wait(uint64_t ns);

  // run receives and sends what there is for a client. It does not wait.
  void run(Client &c);

private:
  static constexpr size_t max_ends = 5; // sessions of a client, and one that is not used

  // End is a socket that is connected to a server, as Client::next_datagram names it.
  struct End {
    Address server;
    intptr_t handle = -1;
  };

  Error open(End *e);
  End *end(const Address &server);

  Address server_; // of connect
  End ends_[max_ends];
};

} // namespace uplink
