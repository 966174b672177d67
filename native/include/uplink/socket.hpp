// UDP sockets for a Client, for programs that have no sockets of their own.
#pragma once

#include "uplink/client.hpp"
#include "uplink/link_simulator.hpp"

namespace uplink {

// now returns the time of a monotonic clock in ns. wall_now returns the time since 1970-01-01 00:00
// UTC in ms.
uint64_t now();
uint64_t wall_now();

// Socket is a UDP socket that is connected to a server, or closed. During a handover it contains a
// socket for each server. A Socket is for one thread at a time.
//
// With start, a thread receives. It notes the time at which each datagram arrives, so that the round-trip
// time does not contain the time until the program calls run, once per frame. Between release and the next
// run it also does what run does, for a program that loads a level or draws: acks, heartbeats and
// retransmissions go on. In that time the program uses neither the client nor its worlds, nor what they have
// returned; functions of StateWorldConfig::updated are called in the thread.
class Socket {
public:
  Socket() = default;
  Socket(const Socket &) = delete;
  Socket &operator=(const Socket &) = delete;
  ~Socket();

  // open closes all open sockets, and opens a socket on a free local port. server is the server for
  // which the program calls Client::connect.
  Error open(const Address &server);
  void close();
  // wait waits up to ns nanoseconds for a datagram to receive. With a thread it calls release.
  void wait(uint64_t ns);

  // run passes all received datagrams to a client, and sends its datagrams. It does not wait, but with a
  // thread until that has done the same.
  void run(Client &c);

  // start starts the thread for the client that run gets from now on, which must outlive it; stop ends it.
  // The thread takes 400 KiB. Error::full: the system has no thread.
  Error start(const Allocator &a, Client &c);
  void stop();
  // release sends what the program has called since run, and leaves the client to the thread until the next
  // run. Without a thread it does nothing.
  void release();

  // simulate lets datagrams pass links with these conditions, to the server and from it, from now on. Call it
  // before start.
  Error simulate(const Allocator &a, const LinkConditions &to_server, const LinkConditions &from_server);

private:
  friend class SocketThread;
  static constexpr size_t max_ends = 5; // sessions of a client, and one unused socket

  // End is a socket that is connected to a server, as Client::next_datagram names it.
  struct End {
    Address server;
    intptr_t handle = -1;
  };

  Error open(End *e);
  End *end(const Address &server);
  size_t handles(intptr_t (&out)[max_ends]) const;
  uint64_t due(const Client &c) const;
  void step(Client &c);
  void receive(Client &c);
  void pass(Client &c, Bytes datagram, const Address &from, uint64_t arrived);
  void send(Client &c, Bytes datagram, const Address &server);

  Address server_; // server of connect
  End ends_[max_ends];
  LinkSimulator *out_ = nullptr, *in_ = nullptr;
  class SocketThread *thread_ = nullptr;
};

} // namespace uplink
