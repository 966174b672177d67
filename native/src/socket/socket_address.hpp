// The headers of the system's sockets, and its socket addresses.
#pragma once

#ifdef _WIN32
#ifndef NOMINMAX
#define NOMINMAX
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <winsock2.h>
#include <ws2tcpip.h>
#else
#include <arpa/inet.h>
#include <cerrno>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#endif

#include <cstring>

#include "uplink/socket.hpp"

namespace uplink::detail::socket {

// sockaddr_of returns the size of the address, or 0.
inline size_t sockaddr_of(const Address &a, sockaddr_storage *to) {
  if (a.family == 4) {
    sockaddr_in v = {};
    v.sin_family = AF_INET;
    v.sin_port = htons(a.port);
    std::memcpy(&v.sin_addr, a.ip, 4);
    std::memcpy(to, &v, sizeof(v));
    return sizeof(v);
  }
  if (a.family != 6) return 0;
  sockaddr_in6 v = {};
  v.sin6_family = AF_INET6;
  v.sin6_port = htons(a.port);
  std::memcpy(&v.sin6_addr, a.ip, 16);
  std::memcpy(to, &v, sizeof(v));
  return sizeof(v);
}

} // namespace uplink::detail::socket
