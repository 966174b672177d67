// The sockets of the system.
#include <doctest/doctest.h>

#include "uplink/socket.hpp"

#include "src/socket/socket_system.hpp"

#ifdef __linux__
#include <arpa/inet.h>
#include <cstring>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>

using namespace uplink;

TEST_CASE("datagrams of both families are never fragmented, whatever ICMP reports") {
  for (const char *server : {"127.0.0.1:7", "[::1]:7"}) {
    Address a;
    intptr_t handle = -1;
    REQUIRE(parse_address(server, &a) == Error::ok);
    if (detail::socket::open_socket(a, &handle) != Error::ok) {
      REQUIRE(a.family == 6); // the machine has no IPv6
      continue;
    }
    const bool six = a.family == 6;
    int value = -1;
    socklen_t size = sizeof(value);
    CHECK(getsockopt(static_cast<int>(handle), six ? IPPROTO_IPV6 : IPPROTO_IP,
                     six ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &value, &size) == 0);
    CHECK(value == (six ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE));
    detail::socket::close_socket(handle);
  }
}

TEST_CASE("addresses are those that the system reads") {
  for (const char *host : {"127.0.0.1",
                           "255.255.255.255",
                           "256.0.0.1",
                           "1.2.3",
                           "1.2.3.4.5",
                           "1..2.3",
                           "",
                           "a.b.c.d",
                           "0.0.0.0",
                           "1.2.3.4 ",
                           "::",
                           "::1",
                           "1::",
                           "fe80::1",
                           "1:2:3:4:5:6:7:8",
                           "1:2:3:4:5:6:7",
                           "1:2:3:4:5:6:7:8:9",
                           "1::2::3",
                           "12345::",
                           "g::",
                           ":1",
                           "1:",
                           "::ffff:1.2.3.4",
                           "1:2:3:4:5:6:1.2.3.4",
                           "1:2:3:4:5:6:7:1.2.3.4",
                           "::1.2.3",
                           "1:2:3:4:5:6:7::",
                           "::2:3:4:5:6:7:8",
                           "1:2:3:4::5:6:7:8",
                           "ABCD:ef01::",
                           "1:2.3.4.5",
                           ":::",
                           "1.2.3.4::"}) {
    CAPTURE(host);
    uint8_t want[16] = {};
    Address a;
    bool known = inet_pton(AF_INET, host, want) == 1;
    CHECK((parse_address((std::string(host) + ":7777").c_str(), &a) == Error::ok) == known);
    if (known) CHECK((a.family == 4 && a.port == 7777 && std::memcmp(a.ip, want, 4) == 0));
    known = inet_pton(AF_INET6, host, want) == 1;
    CHECK((parse_address(("[" + std::string(host) + "]:1").c_str(), &a) == Error::ok) == known);
    if (known) CHECK((a.family == 6 && a.port == 1 && std::memcmp(a.ip, want, 16) == 0));
  }
  for (const char *port : {"0", "65536", "99999", "-1", "+1", "1x", "", " 1", "000001"}) {
    Address a;
    CHECK(parse_address((std::string("127.0.0.1:") + port).c_str(), &a) == Error::invalid);
    CHECK(a.family == 0);
  }
}
#endif
