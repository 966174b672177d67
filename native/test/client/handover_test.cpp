// Tests of handovers between two servers: the server of the test world and a second one.
#include <algorithm>

#include "test/client/world.hpp"

using namespace uplink;
using namespace uplink_test;

namespace {

// taken returns the next message of a server's channel, or nothing.
Data taken(Channel &c) {
  Data m(c.next_size());
  if (!m.empty()) c.receive(m.data());
  return m;
}

int outcome(const World &w) {
  for (size_t i = w.events.size(); i > 0; i--)
    if (w.events[i - 1].type == EventType::handover) return w.events[i - 1].status;
  return -1;
}

} // namespace

TEST_CASE("a handover with data, and messages before and after the switch") {
  World w;
  Server other;
  other.id = 0x2233445566778899;
  w.other = &other;
  w.connect();
  w.run(100);
  const std::string data(3000, 'x');
  stream(w.server, data);
  REQUIRE(w.server.channel.send(bytes(notice(other, text_bytes(data.c_str())))));
  w.run(200);
  CHECK(outcome(w) == 0);
  REQUIRE(other.open);
  // The other server sends a message before the switch, and gets the data.
  const Data early = {0xc4, 'e'}, late = {0xc4, 'l'};
  REQUIRE(other.channel.send(bytes(early)));
  w.run(1000);
  CHECK(outcome(w) == 0);
  CHECK(taken(other.bulk).size() == 16);
  std::string got;
  for (Data m; !(m = taken(other.bulk)).empty() && m[0] == 8;) got.append(m.begin() + 1, m.end());
  CHECK(got == data);
  for (const Event &e : w.events) CHECK(e.type != EventType::message);
  // Messages of the program go to the first server until the switch.
  REQUIRE(w.client->send(text_bytes("before"), true, w.now) == Error::ok);
  const Data done = {40, 0};
  REQUIRE(other.bulk.send(bytes(done)));
  w.run(100);
  CHECK(outcome(w) == 1);
  REQUIRE(w.client->send(text_bytes("after"), true, w.now) == Error::ok);
  REQUIRE(w.server.channel.send(bytes(late)));
  w.run(100);
  CHECK(taken(w.server.channel).size() == 7);
  CHECK(taken(w.server.channel) == Data{0xc0});
  CHECK(taken(other.channel).size() == 6);
  CHECK(taken(other.channel).empty());
  CHECK(taken(w.server.bulk).empty());
  // The first server releases the client, which passes that on.
  Data release(33, 7);
  release[0] = 0xc0;
  REQUIRE(w.server.channel.send(bytes(release)));
  w.run(100);
  CHECK(taken(other.channel) == release);
  CHECK(taken(w.server.bulk) == done);
  int messages = 0;
  for (const Event &e : w.events) messages += e.type == EventType::message ? 1 : 0;
  CHECK(messages == 2);
  // The first server has nothing more to send: the session with it ends.
  CHECK(w.server.closes == 0);
  w.server.send(detail::client::data, {0xc5});
  w.run(50);
  CHECK(w.server.closes == 3);
  CHECK(w.client->connected());
  CHECK(!w.client->uses({}));
}

TEST_CASE("the client stays: other data, a malformed notice, a server that is not there") {
  for (int i = 0; i < 3; i++) {
    World w;
    Server other;
    other.id = 0x2233445566778899;
    w.other = &other;
    other.silent = i == 2;
    w.connect();
    w.run(100);
    stream(w.server, i == 0 ? "forged" : "data");
    Data m = notice(other, text_bytes("data"));
    if (i == 1) m[1] = 77;
    REQUIRE(w.server.channel.send(bytes(m)));
    w.run(6000);
    if (i == 1) {
      CHECK(w.last().type == EventType::disconnected);
      CHECK(w.last().reason == Reason::violation);
      continue;
    }
    CHECK(outcome(w) == 2);
    CHECK(w.last().reason == (i == 0 ? Reason::handover_data : Reason::timeout));
    CHECK(taken(w.server.bulk) == Data{40, 1});
    CHECK(w.client->connected());
    CHECK(w.client->uses({}));
  }
}

// M-31: messages that the next server sends before the switch are delivered after it.
TEST_CASE("the next server hands over before the client has switched to it") {
  World w;
  Server other, third;
  other.id = 0x2233445566778899;
  third.id = 0x33445566778899aa;
  w.other = &other;
  w.third = &third;
  w.connect();
  w.run(100);
  const std::string data = "data", more = "more";
  stream(w.server, data);
  REQUIRE(w.server.channel.send(bytes(notice(other, text_bytes(data.c_str())))));
  w.run(2000);
  REQUIRE(other.open);
  const Data early = {0xc4, 'e'};
  REQUIRE(other.channel.send(bytes(early)));
  stream(other, more);
  REQUIRE(other.channel.send(bytes(notice(third, text_bytes(more.c_str()), 7779))));
  w.run(2000);
  CHECK(w.events.size() == 2); // connected, and the first handover begins
  CHECK(third.hellos == 0);
  const Data done = {40, 0};
  Data release(33, 7);
  release[0] = 0xc0;
  REQUIRE(other.bulk.send(bytes(done)));
  w.run(10);
  REQUIRE(w.server.channel.send(bytes(release)));
  w.run(2000);
  std::string got; // statuses of handovers, m for the message
  for (const Event &e : w.events) {
    if (e.type == EventType::handover)
      got += std::to_string(e.status);
    else if (e.type == EventType::message)
      got += 'm';
  }
  CHECK(got == "01m0");
  REQUIRE(third.open);
  REQUIRE(third.bulk.send(bytes(done)));
  w.run(2000);
  CHECK(outcome(w) == 1);
  REQUIRE(w.client->send(text_bytes("third"), true, w.now) == Error::ok);
  w.run(100);
  CHECK(taken(third.channel).size() == 6);
  CHECK(taken(other.channel) == release);
  CHECK(taken(other.channel) == Data{0xc0});
  CHECK(taken(other.channel).empty());
}

// Without its former server, the client is never released, so it cannot play at the other server.
TEST_CASE("the session ends before the release") {
  for (const bool switched : {true, false}) {
    World w;
    Server other;
    other.id = 0x2233445566778899;
    w.other = &other;
    other.silent = !switched;
    w.connect();
    w.run(100);
    stream(w.server, "");
    REQUIRE(w.server.channel.send(bytes(notice(other, {}))));
    w.run(100);
    CHECK(outcome(w) == (switched ? 1 : 0));
    w.server.send(detail::client::close, {1});
    w.run(100);
    CHECK(!w.client->connected());
    CHECK(outcome(w) == (switched ? 1 : 2));
    CHECK(w.last().type == EventType::reconnecting);
    CHECK(w.last().reason == (switched ? Reason::unreleased : Reason::shutdown));
    other.silent = false;
    w.run(6000);
    CHECK(!w.client->connected());
  }
}

TEST_CASE("the former server does not release the client, or without a switch") {
  Data release(33, 7);
  release[0] = 0xc0;
  for (const bool early : {true, false}) {
    World w;
    Server other;
    other.id = 0x2233445566778899;
    w.other = &other;
    w.connect();
    w.run(100);
    if (early) {
      REQUIRE(w.server.channel.send(bytes(release)));
      w.run(100);
      CHECK(w.last().type == EventType::disconnected);
      CHECK(w.last().reason == Reason::violation);
      continue;
    }
    stream(w.server, "");
    REQUIRE(w.server.channel.send(bytes(notice(other, {}))));
    w.run(4000);
    CHECK(w.client->connected());
    w.run(2000);
    CHECK(w.last().type == EventType::reconnecting);
    CHECK(w.last().reason == Reason::unreleased);
    CHECK(!w.client->connected());
  }
}

// A server may start 4 handovers per minute that fail. Each address that does not answer gets 3
// hellos.
TEST_CASE("handovers to a server that is not there") {
  World w;
  Server other;
  w.other = &other;
  other.refusal = 2;
  other.silent = true;
  w.connect();
  w.run(100);
  int datagrams = 0;
  for (int i = 0; i < 5; i++) {
    stream(w.server, "");
    REQUIRE(w.server.channel.send(bytes(notice(other, {}))));
    w.run(3000);
    datagrams += i < 4 ? 3 : 0;
    CHECK(outcome(w) == 2);
    CHECK(w.datagrams_to_other == datagrams);
    CHECK(w.client->connected() == (i < 4));
  }
  CHECK(w.last().reason == Reason::violation);
}

TEST_CASE("addresses that a client does not follow") {
  struct Case {
    Address own, to;
    bool local, follows;
  };
  const Address open = {4, {203, 0, 113, 9}, 7777}, loopback = {4, {127, 0, 0, 1}, 7777},
                home = {4, {192, 168, 1, 2}, 7777}, link = {4, {169, 254, 7, 7}, 7777};
  const Address provider = {4, {100, 64, 0, 1}, 1}, shared = {4, {100, 63, 255, 255}, 1},
                many = {4, {224, 0, 0, 251}, 5353}, zero = {4, {0, 1, 2, 3}, 1};
  Address unique = {6, {0xfd}, 1}, local6 = {6, {0xfe, 0x80}, 1}, self6 = {6, {}, 1},
          many6 = {6, {0xff, 2}, 1};
  unique.ip[15] = local6.ip[15] = self6.ip[15] = many6.ip[15] = 1;
  const Address open6 = {6, {0x20, 0x01, 0x0d, 0xb8}, 1};
  for (const Case &c : {Case{open, loopback, false, false},    Case{open, loopback, true, true},
                        Case{loopback, loopback, false, true}, Case{loopback, home, false, false},
                        Case{open, home, false, false},        Case{home, home, false, true},
                        Case{home, provider, false, true},     Case{home, unique, false, true},
                        Case{open, provider, false, false},    Case{open, shared, false, true},
                        Case{open, unique, false, false},      Case{open, open6, false, true},
                        Case{home, open, false, true},         Case{open, link, false, false},
                        Case{link, link, false, true},         Case{link, local6, false, true},
                        Case{open, local6, false, false},      Case{open, self6, false, false},
                        Case{loopback, self6, false, true},    Case{open, many, true, false},
                        Case{open, many6, true, false},        Case{open, zero, true, false}}) {
    ClientConfig config;
    config.server = c.own;
    config.local_handovers = c.local;
    World w(0, config);
    Server other;
    other.silent = true;
    w.other = &other;
    w.connect();
    w.run(100);
    stream(w.server, "");
    REQUIRE(w.server.channel.send(bytes(notice(other, {}, c.to))));
    w.run(100);
    CHECK(w.datagrams_to_other == (c.follows ? 1 : 0));
    CHECK(outcome(w) == (c.follows ? 0 : 2));
    if (!c.follows) CHECK(w.last().reason == Reason::address);
  }
}

// The server falls silent. Servers at the ports 7780 and following ones are assigned at intervals of 100 ms.
TEST_CASE("a search tries the servers that were assigned last, until one answers") {
  enum class End { later, earlier, current, none };
  for (const End end : {End::later, End::earlier, End::current, End::none}) {
    World w;
    Server dead, other;
    dead.silent = true;
    other.id = 0x2233445566778899;
    w.other = &dead;
    w.third = &other;
    w.connect();
    w.run(100);
    w.server.silent = true;
    w.run(1600);
    Address to = {4, {127, 0, 0, 1}, 7779};
    const auto assign = [&](uint16_t port) {
      to.port = port;
      const std::string t = dead.token();
      REQUIRE(w.client->assign(to, t.data(), t.size(), w.now) == Error::ok);
      w.run(100);
    };
    for (uint16_t port = 7780; port < 7786; port++) assign(port);
    assign(7784); // again
    const auto tried = [&] {
      std::string ports;
      for (to.port = 7779; to.port < 7786; to.port++)
        if (w.client->uses(to)) ports += std::to_string(to.port % 10);
      return ports;
    };
    CHECK(tried() == "345");
    if (end == End::later) assign(7779);
    dead.silent = end != End::earlier;
    w.server.silent = end != End::current;
    w.run(6000);
    const bool switched = end == End::later || end == End::earlier;
    CHECK(outcome(w) == (switched ? 1 : 2));
    CHECK(tried().size() == (switched ? 1 : 0));
    CHECK(other.open == (end == End::later));
    CHECK(dead.open == (end == End::earlier));
    const auto over = std::find_if(w.events.rbegin(), w.events.rend(),
                                   [](const Event &e) { return e.type == EventType::handover; });
    REQUIRE(over != w.events.rend());
    if (!switched) CHECK(over->reason == (end == End::current ? Reason::answers : Reason::timeout));
  }
}
