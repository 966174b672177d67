// The sockets of the system.
#include <doctest/doctest.h>

#include "uplink/socket.hpp"

#include "src/client/socket_system.hpp"

#ifdef __linux__
#include <netinet/in.h>
#include <sys/socket.h>

using namespace uplink;

TEST_CASE("datagrams of both families are never fragmented, whatever ICMP reports") {
  for (const char *server : {"127.0.0.1:7", "[::1]:7"}) {
    Address a;
    intptr_t handle = -1;
    REQUIRE(parse_address(server, &a) == Error::ok);
    if (detail::client::open_socket(a, &handle) != Error::ok) {
      REQUIRE(a.family == 6); // the machine has no IPv6
      continue;
    }
    const bool six = a.family == 6;
    int value = -1;
    socklen_t size = sizeof(value);
    CHECK(getsockopt(static_cast<int>(handle), six ? IPPROTO_IPV6 : IPPROTO_IP,
                     six ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &value, &size) == 0);
    CHECK(value == (six ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE));
    detail::client::close_socket(handle);
  }
}
#endif
