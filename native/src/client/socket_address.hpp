// Socket addresses of the system. Include the system's headers before this file.
#pragma once

#include <cstdlib>
#include <cstring>

#include "uplink/socket.hpp"

namespace uplink::detail::client {

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

inline Error parse(const char *text, Address *a) {
  char host[64] = {};
  *a = {};
  const char *colon = std::strrchr(text, ':');
  if (colon == nullptr) return Error::invalid;
  const char *from = text;
  size_t n = static_cast<size_t>(colon - text);
  a->family = 4;
  if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
    a->family = 6;
    from++;
    n -= 2;
  }
  if (n >= sizeof(host)) return Error::invalid;
  std::memcpy(host, from, n);
  char *end = nullptr;
  const unsigned long port = std::strtoul(colon + 1, &end, 10);
  if (*end != 0 || port == 0 || port > 65535 || colon[1] < '0' || colon[1] > '9') return Error::invalid;
  a->port = static_cast<uint16_t>(port);
  return inet_pton(a->family == 4 ? AF_INET : AF_INET6, host, a->ip) == 1 ? Error::ok : Error::invalid;
}

} // namespace uplink::detail::client
