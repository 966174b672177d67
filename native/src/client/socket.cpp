// What the socket drivers of all systems share.
#include "uplink/socket.hpp"

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace uplink {

uint64_t now() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(t).count());
}

uint64_t wall_now() {
  const auto t = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(t).count());
}

void Socket::run(Client &c) {
  uint8_t datagram[2048];
  // A flood of datagrams does not keep the program here.
  for (int i = 0; i < 1024; i++) {
    const size_t n = receive({datagram, sizeof(datagram)});
    if (n == 0) break;
    c.receive({datagram, n}, uplink::now());
  }
  while (const size_t n = c.next_datagram({datagram, sizeof(datagram)}, uplink::now())) send({datagram, n});
}

} // namespace uplink
