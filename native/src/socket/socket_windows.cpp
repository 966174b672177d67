// The socket driver of Windows. The program links ws2_32 and has called WSAStartup. open calls it
// again, which only increments its counter.
#include "src/socket/socket_address.hpp"
#include "src/socket/socket_system.hpp"

#ifdef _WIN32

namespace uplink::detail::socket {

Error open_socket(const Address &server, intptr_t *handle) {
  *handle = -1;
  WSADATA data;
  if (WSAStartup(MAKEWORD(2, 2), &data) != 0) return Error::full;
  sockaddr_storage to = {};
  const int size = static_cast<int>(sockaddr_of(server, &to));
  const SOCKET s = size == 0 ? INVALID_SOCKET : ::socket(to.ss_family, SOCK_DGRAM, 0);
  u_long set = 1;
  if (s == INVALID_SOCKET || ioctlsocket(s, FIONBIO, &set) != 0 ||
      ::connect(s, reinterpret_cast<sockaddr *>(&to), size) != 0) {
    if (s != INVALID_SOCKET) closesocket(s);
    WSACleanup();
    return size == 0 ? Error::invalid : Error::full;
  }
  const DWORD fragment = 1;
  const bool six = server.family == 6;
  setsockopt(s, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_DONTFRAG : IP_DONTFRAGMENT,
             reinterpret_cast<const char *>(&fragment), sizeof(fragment));
  *handle = static_cast<intptr_t>(s);
  return Error::ok;
}

void close_socket(intptr_t handle) {
  closesocket(static_cast<SOCKET>(handle));
  WSACleanup();
}

bool send_socket(intptr_t handle, Bytes d) {
  ::send(static_cast<SOCKET>(handle), reinterpret_cast<const char *>(d.data), static_cast<int>(d.size), 0);
  return true; // receive_socket reports the error
}

size_t receive_socket(intptr_t handle, Buffer to, bool *refused) {
  const int n = ::recv(static_cast<SOCKET>(handle), reinterpret_cast<char *>(to.data),
                       static_cast<int>(to.capacity), 0);
  if (n < 0 && WSAGetLastError() == WSAECONNRESET) *refused = true;
  return n > 0 ? static_cast<size_t>(n) : 0;
}

void wait_sockets(const intptr_t *handles, size_t n, uint64_t ns) {
  WSAPOLLFD p[8] = {};
  for (size_t i = 0; i < n; i++) p[i] = {static_cast<SOCKET>(handles[i]), POLLRDNORM, 0};
  const uint64_t milliseconds = ns / 1000000;
  WSAPoll(p, static_cast<ULONG>(n),
          milliseconds > 1000 ? 1000 : static_cast<int>(milliseconds) + (ns % 1000000 > 0 ? 1 : 0));
}

namespace {

DWORD WINAPI thread_main(void *context) {
  run_thread(context);
  return 0;
}

} // namespace

bool start_thread(void *context, uintptr_t *thread) {
  HANDLE t = CreateThread(nullptr, 0, thread_main, context, 0, nullptr);
  *thread = reinterpret_cast<uintptr_t>(t);
  return t != nullptr;
}

void join_thread(uintptr_t thread) {
  HANDLE t = reinterpret_cast<HANDLE>(thread);
  WaitForSingleObject(t, INFINITE);
  CloseHandle(t);
}

} // namespace uplink::detail::socket

#endif
