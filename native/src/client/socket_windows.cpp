// The socket driver of Windows. The program links ws2_32 and has called WSAStartup; open calls it
// again, which only counts.
#include <winsock2.h>
#include <ws2tcpip.h>

#include "src/client/socket_address.hpp"

namespace uplink {

Error parse_address(const char *text, Address *a) {
  return detail::client::parse(text, a);
}

Error Socket::open(const Address &server) {
  close();
  WSADATA data;
  if (WSAStartup(MAKEWORD(2, 2), &data) != 0) return Error::full;
  sockaddr_storage to = {};
  const int size = static_cast<int>(detail::client::sockaddr_of(server, &to));
  const SOCKET s = size == 0 ? INVALID_SOCKET : ::socket(to.ss_family, SOCK_DGRAM, 0);
  u_long set = 1;
  if (s == INVALID_SOCKET || ioctlsocket(s, FIONBIO, &set) != 0 ||
      ::connect(s, reinterpret_cast<sockaddr *>(&to), size) != 0) {
    if (s != INVALID_SOCKET) closesocket(s);
    WSACleanup();
    return size == 0 ? Error::invalid : Error::full;
  }
  const DWORD fragment = 1;
  if (server.family == 4)
    setsockopt(s, IPPROTO_IP, IP_DONTFRAGMENT, reinterpret_cast<const char *>(&fragment), sizeof(fragment));
  server_ = server;
  handle_ = static_cast<intptr_t>(s);
  return Error::ok;
}

void Socket::close() {
  if (handle_ == -1) return;
  closesocket(static_cast<SOCKET>(handle_));
  WSACleanup();
  handle_ = -1;
}

void Socket::send(Bytes d) {
  if (handle_ == -1) return;
  ::send(static_cast<SOCKET>(handle_), reinterpret_cast<const char *>(d.data), static_cast<int>(d.size), 0);
}

size_t Socket::receive(Buffer to) {
  if (handle_ == -1) return 0;
  const int n = ::recv(static_cast<SOCKET>(handle_), reinterpret_cast<char *>(to.data),
                       static_cast<int>(to.capacity), 0);
  return n > 0 ? static_cast<size_t>(n) : 0;
}

void Socket::wait(uint64_t ns) {
  WSAPOLLFD p = {static_cast<SOCKET>(handle_), POLLRDNORM, 0};
  const uint64_t ms = ns / 1000000;
  WSAPoll(&p, 1, ms > 1000 ? 1000 : static_cast<int>(ms) + (ns % 1000000 > 0 ? 1 : 0));
}

} // namespace uplink
