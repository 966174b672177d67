// The common part of the socket drivers of all systems.
#include "uplink/socket.hpp"

#include <chrono>
#include <cstring>

#include "src/socket/socket_system.hpp"

namespace uplink {

using namespace detail::socket;

uint64_t now() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(t).count());
}

uint64_t wall_now() {
  const auto t = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(t).count());
}

Error Socket::open(const Address &server) {
  close();
  server_ = server;
  ends_[0].server = {};
  return open(&ends_[0]);
}

Error Socket::open(End *e) {
  return open_socket(e->server.family == 0 ? server_ : e->server, &e->handle);
}

void Socket::close() {
  for (End &e : ends_) {
    if (e.handle != -1) close_socket(e.handle);
    e = {};
  }
}

void Socket::wait(uint64_t ns) {
  intptr_t handles[max_ends];
  size_t n = 0;
  for (const End &e : ends_)
    if (e.handle != -1) handles[n++] = e.handle;
  wait_sockets(handles, n, ns);
}

// end returns the socket to a server, and opens one if there is none. If opening fails, the socket
// is closed.
Socket::End *Socket::end(const Address &server) {
  End *free = nullptr;
  for (End &e : ends_) {
    const bool same = e.server.family == server.family && e.server.port == server.port &&
                      std::memcmp(e.server.ip, server.ip, sizeof(server.ip)) == 0;
    if (same && e.handle != -1) return &e;
    if (e.handle == -1) free = &e;
  }
  if (free == nullptr) return nullptr;
  free->server = server;
  (void)open(free);
  return free;
}

void Socket::run(Client &c) {
  uint8_t datagram[2048];
  for (End &e : ends_) {
    // Bounds the time that a flood of datagrams takes.
    for (int i = 0; i < 1024 && e.handle != -1; i++) {
      bool refused = false;
      const size_t n = receive_socket(e.handle, {datagram, sizeof(datagram)}, &refused);
      if (refused) c.unreachable(e.server, uplink::now());
      if (n == 0) break;
      c.receive({datagram, n}, uplink::now());
    }
  }
  Address server;
  while (const size_t n = c.next_datagram({datagram, sizeof(datagram)}, &server, uplink::now())) {
    const End *e = end(server);
    if (e != nullptr && e->handle != -1 && !send_socket(e->handle, {datagram, n}))
      c.unreachable(server, uplink::now());
  }
  for (End &e : ends_)
    if (e.handle != -1 && e.server.family != 0 && !c.uses(e.server)) {
      close_socket(e.handle);
      e = {};
    }
}

} // namespace uplink
