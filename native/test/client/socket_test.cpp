// The sockets of the system.
#include <doctest/doctest.h>

#include "uplink/socket.hpp"

#include "src/socket/socket_system.hpp"
#include "test/client/world.hpp"

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

namespace {

// Peer is a server with a socket of the system on a loopback address.
struct Peer {
  uplink_test::Server server;
  int handle = ::socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in client = {};
  Address address;
  uint64_t asked = 0, answered = 0; // when a datagram arrived, and when the answers were sent

  Peer() {
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(own);
    REQUIRE(::bind(handle, reinterpret_cast<sockaddr *>(&own), size) == 0);
    REQUIRE(getsockname(handle, reinterpret_cast<sockaddr *>(&own), &size) == 0);
    const std::string text = "127.0.0.1:" + std::to_string(ntohs(own.sin_port));
    REQUIRE(parse_address(text.c_str(), &address) == Error::ok);
  }
  Peer(const Peer &) = delete;
  Peer &operator=(const Peer &) = delete;
  ~Peer() { ::close(handle); }

  // answer waits for a datagram of the client and answers it.
  void answer() {
    uplink_test::Data d(2048);
    socklen_t size = sizeof(client);
    const ssize_t n = ::recvfrom(handle, d.data(), d.size(), 0, reinterpret_cast<sockaddr *>(&client), &size);
    REQUIRE(n > 0);
    asked = uplink::now();
    d.resize(static_cast<size_t>(n));
    server.handle(d, asked);
    for (; !server.out.empty(); server.out.pop_front())
      ::sendto(handle, server.out.front().data(), server.out.front().size(), 0,
               reinterpret_cast<sockaddr *>(&client), size);
    answered = uplink::now();
  }
};

} // namespace

TEST_CASE("a thread receives while the program does not run, and notes when datagrams arrive") {
  Peer peer;
  Client *client = nullptr;
  Socket socket;
  ClientConfig c;
  c.crypto = peer.server.crypto;
  c.offered = 8;
  c.server = peer.address;
  REQUIRE(Client::create({}, c, &client) == Error::ok);
  REQUIRE(socket.open(peer.address) == Error::ok);
  REQUIRE(socket.start({}, *client) == Error::ok);
  CHECK(socket.start({}, *client) == Error::invalid);
  const std::string token = peer.server.token();
  socket.run(*client);
  REQUIRE(client->connect(token.data(), token.size(), uplink::now()) == Error::ok);
  socket.release();
  // The session opens, and heartbeats come and go, while the program does nothing.
  while (peer.server.heartbeats < 2) peer.answer();
  socket.run(*client);
  CHECK(client->connected());

  // The program holds the client from before an answer arrives until long after.
  uint64_t held = UINT64_MAX;
  for (int i = 0; i < 3; i++) {
    socket.release();
    const int before = peer.server.heartbeats;
    while (peer.server.heartbeats == before) peer.answer();
    const uint64_t sent = peer.asked;
    socket.wait(1000000000); // until the answer is there
    const uint64_t there = uplink::now();
    while (uplink::now() < there + 3 * (there - sent) + 20000000) {
    }
    held = std::min(held, uplink::now() - there);
    socket.run(*client);
  }
  CHECK(client->stats().rtt < held);
  socket.stop();
  socket.run(*client);
  CHECK(client->connected());
  Client::destroy(client);
}

TEST_CASE("a simulated link delays, loses, repeats and reorders, equally for a seed") {
  LinkConditions c;
  c.delay = 50000000;
  c.jitter = 20000000;
  c.loss = 0.2;
  c.duplicate = 0.1;
  c.seed = 7;
  std::vector<std::string> runs;
  for (int run = 0; run < 2; run++) {
    LinkSimulator *link = nullptr;
    REQUIRE(LinkSimulator::create({}, c, &link) == Error::ok);
    CHECK(link->next() == UINT64_MAX);
    std::string all;
    int arrived = 0, overtook = 0, last = -1;
    uint8_t to[1472];
    for (int i = 0; i < 2000; i++) {
      const uint64_t now = static_cast<uint64_t>(i) * 10000000;
      const uint8_t d[2] = {static_cast<uint8_t>(i), static_cast<uint8_t>(i >> 8)};
      link->put({d, 2}, {4, {127, 0, 0, 1}, 7777}, now);
      Address from;
      uint64_t at = 0;
      while (const size_t n = link->take({to, sizeof(to)}, &from, &at, now)) {
        REQUIRE((n == 2 && from.port == 7777 && at <= now));
        const int number = to[0] | to[1] << 8;
        const uint64_t delay = at - static_cast<uint64_t>(number) * 10000000;
        REQUIRE((delay >= c.delay && delay < c.delay + c.jitter));
        overtook += number < last ? 1 : 0;
        last = number;
        arrived++;
        all += std::to_string(number) + " ";
      }
    }
    CHECK((arrived > 1650 && arrived < 1870)); // 0.8 * 1.1 of 2,000
    CHECK(overtook > 100);
    runs.push_back(all);
    LinkSimulator::destroy(link);
  }
  CHECK(runs[0] == runs[1]);
  c.loss = 1.5;
  LinkSimulator *none = nullptr;
  CHECK(LinkSimulator::create({}, c, &none) == Error::invalid);
}

TEST_CASE("a socket over simulated links") {
  Peer peer;
  Client *client = nullptr;
  Socket socket;
  ClientConfig config;
  config.crypto = peer.server.crypto;
  config.offered = 8;
  config.server = peer.address;
  REQUIRE(Client::create({}, config, &client) == Error::ok);
  REQUIRE(socket.open(peer.address) == Error::ok);
  LinkConditions c;
  c.delay = 20000000;
  REQUIRE(socket.simulate({}, c, c) == Error::ok);
  REQUIRE(socket.start({}, *client) == Error::ok);
  const std::string token = peer.server.token();
  socket.run(*client);
  REQUIRE(client->connect(token.data(), token.size(), uplink::now()) == Error::ok);
  socket.release();
  while (peer.server.heartbeats < 2) peer.answer();
  socket.run(*client);
  CHECK(client->stats().min_rtt >= 40000000);
  socket.stop();
  Client::destroy(client);
}
#endif
