// The socket driver of Linux, macOS and other POSIX systems.
#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/client/socket_address.hpp"

namespace uplink {

Error parse_address(const char *text, Address *a) {
  return detail::client::parse(text, a);
}

Error Socket::open(const Address &server) {
  close();
  sockaddr_storage to = {};
  const socklen_t size = static_cast<socklen_t>(detail::client::sockaddr_of(server, &to));
  if (size == 0) return Error::invalid;
  const int s = ::socket(to.ss_family, SOCK_DGRAM, 0);
  if (s < 0) return Error::full;
#ifdef IP_MTU_DISCOVER
  const int discover = IP_PMTUDISC_DO;
  if (server.family == 4) ::setsockopt(s, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof(discover));
#elif defined(IP_DONTFRAG)
  const int set = 1;
  if (server.family == 4) ::setsockopt(s, IPPROTO_IP, IP_DONTFRAG, &set, sizeof(set));
#endif
  if (::fcntl(s, F_SETFL, O_NONBLOCK) < 0 || ::connect(s, reinterpret_cast<sockaddr *>(&to), size) < 0) {
    ::close(s);
    return Error::full;
  }
  server_ = server;
  handle_ = s;
  return Error::ok;
}

void Socket::close() {
  if (handle_ >= 0) ::close(static_cast<int>(handle_));
  handle_ = -1;
}

void Socket::send(Bytes d) {
  if (handle_ >= 0) (void)!::send(static_cast<int>(handle_), d.data, d.size, 0);
}

size_t Socket::receive(Buffer to) {
  if (handle_ < 0) return 0;
  const ssize_t n = ::recv(static_cast<int>(handle_), to.data, to.capacity, 0);
  return n > 0 ? static_cast<size_t>(n) : 0;
}

void Socket::wait(uint64_t ns) {
  pollfd p = {static_cast<int>(handle_), POLLIN, 0};
  const uint64_t ms = ns / 1000000;
  ::poll(&p, 1, ms > 1000 ? 1000 : static_cast<int>(ms) + (ns % 1000000 > 0 ? 1 : 0));
}

} // namespace uplink
