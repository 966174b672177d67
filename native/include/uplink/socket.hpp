// UDP sockets for a Client, for programs that have no sockets of their own.
#pragma once

#include "uplink/client.hpp"

namespace uplink {

// now returns the time of a monotonic clock in ns. wall_now returns the time since 1970-01-01 00:00
// UTC in ms.
uint64_t now();
uint64_t wall_now();

// Socket is a UDP socket that is connected to a server, or closed. During a handover it contains a
// socket for each server. A Socket is for one thread at a time.
class Socket {
public:
  Socket() = default;
  Socket(const Socket &) = delete;
  Socket &operator=(const Socket &) = delete;
  ~Socket() { close(); }

  // open closes all open sockets, and opens a socket on a free local port. server is the server for
  // which the program calls Client::connect.
  Error open(const Address &server);
  void close();
  // wait waits up to ns nanoseconds for a datagram to receive.
  void wait(uint64_t ns);

  // run passes all received datagrams to a client, and sends its datagrams. It does not wait.
  void run(Client &c);

private:
  static constexpr size_t max_ends = 5; // sessions of a client, and one unused socket

  // End is a socket that is connected to a server, as Client::next_datagram names it.
  struct End {
    Address server;
    intptr_t handle = -1;
  };

  Error open(End *e);
  End *end(const Address &server);

  Address server_; // server of connect
  End ends_[max_ends];
};

} // namespace uplink
