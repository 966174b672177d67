// The socket driver of Linux, macOS and other POSIX systems.
#include "src/socket/socket_address.hpp"
#include "src/socket/socket_system.hpp"

#ifndef _WIN32

namespace uplink::detail::socket {
namespace {

// dont_fragment forbids fragmentation of datagrams. On Linux it also makes the kernel ignore the
// path MTU that ICMP has reported, because the client probes the path itself.
void dont_fragment(int s, bool six) {
#if defined(IP_PMTUDISC_PROBE) && defined(IPV6_PMTUDISC_PROBE)
  const int probe4 = IP_PMTUDISC_PROBE, probe6 = IPV6_PMTUDISC_PROBE;
  if (six)
    ::setsockopt(s, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe6, sizeof(probe6));
  else
    ::setsockopt(s, IPPROTO_IP, IP_MTU_DISCOVER, &probe4, sizeof(probe4));
#else
  const int set = 1;
#ifdef IP_DONTFRAG
  if (!six) ::setsockopt(s, IPPROTO_IP, IP_DONTFRAG, &set, sizeof(set));
#endif
#ifdef IPV6_DONTFRAG
  if (six) ::setsockopt(s, IPPROTO_IPV6, IPV6_DONTFRAG, &set, sizeof(set));
#endif
  (void)set;
#endif
}

} // namespace

Error open_socket(const Address &server, intptr_t *handle) {
  sockaddr_storage to = {};
  const socklen_t size = static_cast<socklen_t>(sockaddr_of(server, &to));
  *handle = -1;
  if (size == 0) return Error::invalid;
  const int s = ::socket(to.ss_family, SOCK_DGRAM, 0);
  if (s < 0) return Error::full;
  dont_fragment(s, server.family == 6);
  if (::fcntl(s, F_SETFL, O_NONBLOCK) < 0 || ::connect(s, reinterpret_cast<sockaddr *>(&to), size) < 0) {
    ::close(s);
    return Error::full;
  }
  *handle = s;
  return Error::ok;
}

void close_socket(intptr_t handle) {
  ::close(static_cast<int>(handle));
}

bool send_socket(intptr_t handle, Bytes d) {
  return ::send(static_cast<int>(handle), d.data, d.size, 0) >= 0 || errno != ECONNREFUSED;
}

size_t receive_socket(intptr_t handle, Buffer to, bool *refused) {
  const ssize_t n = ::recv(static_cast<int>(handle), to.data, to.capacity, 0);
  if (n < 0 && errno == ECONNREFUSED) *refused = true;
  return n > 0 ? static_cast<size_t>(n) : 0;
}

void wait_sockets(const intptr_t *handles, size_t n, uint64_t ns) {
  pollfd p[8] = {};
  for (size_t i = 0; i < n; i++) p[i] = {static_cast<int>(handles[i]), POLLIN, 0};
  const uint64_t milliseconds = ns / 1000000;
  ::poll(p, static_cast<nfds_t>(n),
         milliseconds > 1000 ? 1000 : static_cast<int>(milliseconds) + (ns % 1000000 > 0 ? 1 : 0));
}

namespace {

void *thread_main(void *context) {
  run_thread(context);
  return nullptr;
}

} // namespace

bool start_thread(void *context, uintptr_t *thread) {
  static_assert(sizeof(pthread_t) <= sizeof(*thread), "a thread fits");
  pthread_t t;
  if (pthread_create(&t, nullptr, thread_main, context) != 0) return false;
  std::memcpy(thread, &t, sizeof(t));
  return true;
}

void join_thread(uintptr_t thread) {
  pthread_t t;
  std::memcpy(&t, &thread, sizeof(t));
  pthread_join(t, nullptr);
}

} // namespace uplink::detail::socket

#endif
