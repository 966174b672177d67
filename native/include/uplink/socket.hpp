// A UDP socket for a Client, and the loop between them, for programs that have no sockets of their
// own. A Socket is for one thread at a time.
#pragma once

#include "uplink/client.hpp"

namespace uplink {

// parse_address parses an IPv4 address with a port, such as 127.0.0.1:7777, or an IPv6 address in
// brackets with one. Names are not resolved. Error::invalid: it is none.
Error parse_address(const char *text, Address *a);

// now returns the time of a monotonic clock, in ns, and wall_now ms since 1970-01-01 00:00 UTC.
uint64_t now();
uint64_t wall_now();

// Socket is a UDP socket that is connected to a server, or closed.
class Socket {
public:
  Socket() = default;
  Socket(const Socket &) = delete;
  Socket &operator=(const Socket &) = delete;
  ~Socket() { close(); }

  // open closes the socket if it is open, and opens one on a free local port.
  Error open(const Address &server);
  void close();
  // send sends a datagram. Errors are ignored: the datagram is lost then.
  void send(Bytes datagram);
  // receive returns the size of the next datagram, or 0 if there is none. It does not wait.
  size_t receive(Buffer to);
  // wait waits until there is a datagram to receive, at most so many ns.
  void wait(uint64_t ns);

  // run receives and sends what there is for a client. It does not wait.
  void run(Client &c);

private:
  Address server_;
  intptr_t handle_ = -1;
};

} // namespace uplink
