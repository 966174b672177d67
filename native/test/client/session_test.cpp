// The client against a small server in virtual time.
#include <algorithm>

#include "test/client/world.hpp"

using namespace uplink;
using namespace uplink::detail::client;
using namespace uplink_test;

TEST_CASE("a session opens, stays open, answers challenges and closes") {
  World w;
  w.connect();
  w.run(100);
  REQUIRE(w.events.size() == 1);
  CHECK(w.last().type == EventType::connected);
  CHECK(w.server.hellos == 2);
  CHECK(w.server.long_headers == 1);
  w.run(60000);
  CHECK(w.client->connected());
  CHECK(w.server.heartbeats >= 8);
  CHECK(w.server.heartbeats <= 20);
  w.server.send(challenge, {1, 2, 3, 4, 5, 6, 7, 8});
  w.run(10);
  REQUIRE(w.server.bodies[response].size() == 1);
  CHECK(w.server.bodies[response][0] == Data{1, 2, 3, 4, 5, 6, 7, 8, 0});
  w.client->rebind(w.now);
  w.server.send(challenge, {1, 2, 3, 4, 5, 6, 7, 9});
  w.run(10);
  CHECK(w.server.bodies[response].back()[8] == 1);
  w.client->close(0, w.now);
  w.run(10);
  CHECK(w.server.closes == 3);
  CHECK(w.last().type == EventType::disconnected);
  CHECK(w.last().reason == Reason::quit);
}

TEST_CASE("messages and requests") {
  World w;
  w.connect();
  w.run(10);
  const std::string m = "hello";
  const Bytes b = {reinterpret_cast<const uint8_t *>(m.data()), m.size()};
  CHECK(w.client->send(b, true, w.now) == Error::ok);
  CHECK(w.client->send(b, false, w.now) == Error::ok);
  uint32_t id = 0;
  CHECK(w.client->request(b, &id, w.now) == Error::ok);
  w.run(50);
  CHECK(w.server.bodies[data].back() == Data{0xc4, 'h', 'e', 'l', 'l', 'o'});
  Data got(max_reliable);
  CHECK(w.server.channel.receive(got.data()) == 6);
  CHECK(got[0] == 0xc4);
  CHECK(w.server.channel.receive(got.data()) == 11);
  CHECK(got[0] == 0xcf);
  Data answer(got.begin(), got.begin() + 6);
  answer[1] = 2;
  answer.push_back('y');
  CHECK(w.server.channel.send(bytes(answer)));
  w.run(50);
  CHECK(w.last().type == EventType::answer);
  CHECK(w.last().value == id);
  CHECK(w.text == "y");
  // A second answer is ignored. A message of an unknown type violates the protocol.
  const size_t before = w.events.size();
  CHECK(w.server.channel.send(bytes(answer)));
  w.run(50);
  CHECK(w.events.size() == before);
  const Data wrong = {0xca, 1};
  CHECK(w.server.channel.send(bytes(wrong)));
  w.run(50);
  CHECK(w.last().reason == Reason::violation);
  CHECK(w.server.bodies[DatagramKind::close].back()[0] == 3);
}

TEST_CASE("silence ends the session, and the client reconnects after a wait") {
  World w(5000 * millisecond);
  w.connect();
  w.run(10);
  w.server.silent = true;
  w.run(5010);
  CHECK(w.last().type == EventType::reconnecting);
  CHECK(w.last().reason == Reason::timeout);
  CHECK(w.last().value <= 250 * millisecond);
  w.server.silent = w.server.open = false;
  w.connect();
  w.run(300);
  CHECK(w.last().type == EventType::connected);
  CHECK(w.last().value == 1);
}

TEST_CASE("a server that has forgotten the session is noticed before the timeout") {
  World w;
  w.connect();
  w.run(2000);
  w.server.forgotten = true;
  w.run(4000);
  CHECK(w.last().type == EventType::reconnecting);
  CHECK(w.last().reason == Reason::lost);
}

TEST_CASE("the largest datagram of the path") {
  World w;
  w.server.path = 1452;
  w.connect();
  w.run(20000);
  CHECK(w.client->stats().datagram_size == 1452);
  CHECK(w.server.bodies[probe].size() == 4);
  const Data m(1452 - 28, 7);
  CHECK(w.client->send(bytes(m), false, w.now) == Error::ok);
  CHECK(w.client->send({m.data(), m.size() + 1}, false, w.now) == Error::invalid);
  w.run(10);
  CHECK(w.server.bodies[data].back().size() == m.size() + 1);
  // Another path has another size.
  w.server.path = 1232;
  w.client->rebind(w.now);
  CHECK(w.client->stats().datagram_size == 0);
  w.run(20000);
  CHECK(w.client->stats().datagram_size == 1232);
}

// large sends a message of 1,000 bytes every 50 ms for a time, and returns the number of messages
// that did not arrive.
static long large(World &w, uint64_t time) {
  const auto arrived = [&w] {
    return std::count_if(w.server.bodies[data].begin(), w.server.bodies[data].end(),
                         [](const Data &b) { return b == Data(1001, 0xc4); });
  };
  const long before = arrived();
  const Data m(1000, 0xc4);
  for (uint64_t i = 0; i < time / 50; i++) {
    CHECK(w.client->send(bytes(m), false, w.now) == Error::ok);
    w.run(50);
  }
  return static_cast<long>(time / 50) - (arrived() - before);
}

TEST_CASE("a path that shrinks and grows") {
  for (const size_t size : {548, 900}) {
    World w;
    w.connect();
    w.run(10);
    CHECK(large(w, 5000) == 0);
    const size_t probes = w.server.bodies[probe].size();
    CHECK(large(w, 10000) == 0);
    CHECK(w.server.bodies[probe].size() <= probes + 3);
    w.server.path = size;
    CHECK(large(w, 10000) <= 50);
    CHECK(large(w, 5000) == 0);
    CHECK(w.client->stats().datagram_size == (size < 872 ? 548 : 872));
    std::string text(8000, 'x');
    CHECK(w.client->send(text_bytes(text.c_str()), true, w.now) == Error::ok);
    w.run(2000);
    Data got(max_reliable);
    CHECK(w.server.channel.receive(got.data()) == 8001);
    w.server.path = 1472;
    CHECK(large(w, 70000) == 0);
    CHECK(w.client->stats().datagram_size >= 1200);
  }
}

TEST_CASE("parts and probes of the server") {
  World w;
  w.connect();
  w.run(100);
  Splitter s;
  Data m(1000, 1), body(max_datagram);
  m[0] = 0xc4;
  s.start(data, bytes(m), 500);
  std::vector<Data> parts;
  while (!s.empty()) {
    const size_t n = s.next(body.data());
    w.server.send(part, Data(body.begin(), body.begin() + static_cast<long>(n)));
  }
  REQUIRE(w.server.out.size() == 2);
  std::swap(w.server.out[0], w.server.out[1]);
  const size_t before = w.events.size();
  w.run(10);
  REQUIRE(w.events.size() == before + 1);
  CHECK(w.last().type == EventType::message);
  CHECK(w.text.size() == 999);
  w.server.bodies[probe].clear();
  w.server.send(probe, Data(1000));
  w.run(10);
  REQUIRE(w.server.bodies[probe].size() == 1);
  CHECK(w.server.bodies[probe][0] == Data{0xfb, 0x03}); // 1,000 bytes, a header of 3 and a tag of 16
}

TEST_CASE("refusals") {
  const struct {
    uint8_t code, refusal;
    Reason reason;
    EventType type;
  } cases[] = {{1, 0, Reason::token_expired, EventType::reconnecting},
               {4, 0, Reason::token_server, EventType::disconnected},
               {6, 0, Reason::server_full, EventType::reconnecting},
               {0, 1, Reason::version, EventType::disconnected},
               {0, 3, Reason::key, EventType::disconnected}};
  for (const auto &c : cases) {
    World w;
    w.server.code = c.code;
    w.server.refusal = c.refusal;
    w.connect();
    w.run(600);
    CHECK(w.last().type == c.type);
    CHECK(w.last().reason == c.reason);
  }
}

TEST_CASE("refusals for the time being") {
  for (const auto &c : {std::pair<uint8_t, Reason>{2, Reason::busy}, {4, Reason::refused}}) {
    World w;
    w.server.refusal = c.first;
    w.connect();
    w.run(600);
    CHECK(w.last().type != EventType::disconnected); // it goes on until its timeout
    w.run(30000);
    CHECK(w.last().reason == c.second);
  }
}

TEST_CASE("a system that reports that there is no server") {
  const auto attempt = [](World &w, const Address &server) {
    w.server.silent = true;
    w.connect();
    w.run(5);
    w.client->unreachable(server, w.now);
    w.run(1);
  };
  World w; // 127.0.0.1
  attempt(w, {});
  CHECK(w.last().type == EventType::reconnecting);
  CHECK(w.last().reason == Reason::no_server);
  CHECK(std::string(text(w.last().reason)) == "no program receives at the server's address");
  ClientConfig c;
  c.server = {4, {192, 0, 2, 1}, 7777};
  World distant(0, c);
  attempt(distant, {});
  CHECK(distant.events.empty());
  distant.run(490);
  CHECK(distant.events.empty());
  distant.run(10);
  CHECK(distant.last().reason == Reason::no_server);
  // An answer, and the address of another server.
  World answered(0, c);
  attempt(answered, {});
  answered.server.silent = false;
  answered.run(1000);
  CHECK(answered.client->connected());
  answered.client->unreachable({}, answered.now);
  answered.run(1000);
  CHECK(answered.client->connected());
  World other;
  attempt(other, {4, {192, 0, 2, 1}, 7777});
  other.run(1000);
  CHECK(other.events.empty());
}

TEST_CASE("forged datagrams change nothing") {
  World w;
  w.connect();
  w.run(10);
  const Stats before = w.client->stats();
  for (int i = 0; i < 256; i++) {
    Data d(60, static_cast<uint8_t>(i * 7));
    d[0] = static_cast<uint8_t>(i);
    w.client->receive(bytes(d), w.now);
  }
  CHECK(w.client->stats().received == before.received);
  CHECK(w.client->stats().dropped == before.dropped + 256);
  w.run(3000);
  CHECK(w.client->connected());
}
