// The thread of a Socket.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "src/base/memory.hpp"
#include "src/socket/socket_system.hpp"
#include "uplink/socket.hpp"

namespace uplink {

// SocketThread receives datagrams and keeps them with the time of their arrival until the client takes them:
// in run of the program, or in the thread while the program has released the client.
class SocketThread {
public:
  SocketThread(const Allocator &a, Socket &s, Client &c) : allocator_(a), socket_(s), client_(c) {}
  SocketThread(const SocketThread &) = delete;
  SocketThread &operator=(const SocketThread &) = delete;

  Error start();
  void stop();
  // take lets the program use the client, give the thread. release is give after sending what the program
  // has called.
  void take();
  void give();
  void release();
  void deliver(Client &c);
  void wait(uint64_t ns);
  void main();

  // The sockets are used by who has locked this.
  std::mutex sockets;
  const Allocator &allocator() const { return allocator_; }

private:
  static constexpr size_t room = 256, max_size = 1472;

  // Arrived is a datagram, or the report that no program receives at the address, of size 0.
  struct Arrived {
    uint64_t at = 0;
    Address from;
    size_t size = 0;
    uint8_t data[max_size];
  };

  bool collect();
  bool next(Arrived *to);

  Allocator allocator_;
  Socket &socket_;
  Client &client_;
  std::mutex use_;    // of the client, its worlds and the simulated links
  bool held_ = false; // by the program
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> due_{0};
  detail::Array<Arrived> queue_;     // guarded by sockets, as all below
  size_t first_ = 0, queued_ = 0;    // of queue_
  uint64_t arrivals_ = 0, seen_ = 0; // datagrams so far, and until the last take
  std::condition_variable arrived_;
  uintptr_t thread_ = 0;
};

} // namespace uplink
