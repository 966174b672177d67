// The client against a small server in virtual time.
#include <deque>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "src/client/channel.hpp"
#include "src/client/core.hpp"
#include "test/client/vectors.hpp"

using namespace uplink;
using namespace uplink::detail::client;
using namespace uplink_test;

namespace {

constexpr uint64_t ms = 1000000;

// Server is what a server needs for one client.
struct Server {
  Crypto crypto = sodium_crypto();
  uint8_t private_key[32] = {};
  IssuerKey key;
  Sealer sealer;
  Opener opener;
  Window window;
  Channel channel;
  bool open = false, silent = false, forgotten = false;
  uint8_t code = 0, refusal = 0;
  int hellos = 0, closes = 0, heartbeats = 0, long_headers = 0;
  uint64_t number = 0;
  std::deque<Data> out;
  std::vector<Data> bodies[8];

  Server() {
    hash(crypto, private_key, {text_bytes("uplink development: private key")});
    REQUIRE(development_key(crypto, &key) == Error::ok);
    REQUIRE(channel.create({}, 256));
  }

  std::string token() {
    Claims c;
    c.client_id = 1;
    c.issued = 1;
    c.expires = 1000;
    c.n = 1;
    c.servers[0] = {4, {127, 0, 0, 1}, 7777};
    char text[token_text];
    REQUIRE(issue_token(crypto, key, c, text, sizeof(text)) == Error::ok);
    return text;
  }

  void send(uint8_t kind, const Data &body) {
    Data d(11 + body.size() + 16);
    const size_t h = format_header(d.data(), false, kind, 0, number);
    std::copy(body.begin(), body.end(), d.begin() + static_cast<long>(h));
    REQUIRE(sealer.seal(number++, {d.data(), h}, d.data() + h, body.size()));
    d.resize(h + body.size() + 16);
    out.push_back(d);
  }

  void handle(const Data &d, uint64_t now) {
    if (silent) return;
    if (d[0] == 0x80) {
      hello(d, now);
      return;
    }
    DatagramHeader h;
    uint64_t n = 0;
    size_t size = 0;
    Data body(d.size());
    REQUIRE(parse_header(bytes(d), &h));
    if (forgotten) {
      Data unknown = {0x84};
      unknown.insert(unknown.end(), d.begin(), d.begin() + h.size);
      out.push_back(unknown);
      return;
    }
    REQUIRE(window.complete(h.low, h.width(), &n));
    REQUIRE(opener.open(n, {d.data(), h.size}, {d.data() + h.size, d.size() - h.size}, body.data(), &size));
    window.accept(n);
    body.resize(size);
    bodies[h.kind].push_back(body);
    if (h.form == Form::extended) long_headers++;
    if (h.kind == DatagramKind::close) closes++;
    if (h.kind == reliable) CHECK(channel.input(bytes(body), now / ms));
    Heartbeat b;
    if (h.kind == heartbeat && parse_heartbeat(bytes(body), &b)) {
      heartbeats++;
      Heartbeat answer;
      answer.echo = b.clock;
      answer.has_echo = true;
      Data to(heartbeat_size);
      format_heartbeat(to.data(), answer);
      if (b.ask) send(heartbeat, to);
    }
  }

  void hello(const Data &d, uint64_t now) {
    hellos++;
    const Data nonce(d.begin() + 3, d.begin() + 11);
    Data answer = {0x81};
    answer.insert(answer.end(), nonce.begin(), nonce.end());
    if (refusal != 0) {
      answer[0] = 0x83;
      answer.push_back(refusal);
      out.push_back(answer);
      return;
    }
    if (d[11] == 0) {
      answer.resize(33, 7);
      out.push_back(answer);
      return;
    }
    if (open) return;
    const size_t n = static_cast<size_t>(load_little(d.data() + 40, 2));
    Exchange e;
    Data payload(n);
    e.start(crypto, key.public_key);
    REQUIRE(e.read(private_key, {d.data() + 42, n}, payload.data()));
    CHECK((payload[0] & 8) != 0);
    Data welcome(10);
    welcome[0] = code;
    store_little(welcome.data() + 1, 8, 0x1122334455667788);
    welcome[9] = code == 0 ? 3 : 0;
    uint8_t own[32], up[32], down[32];
    crypto.random(nullptr, own, 32);
    answer[0] = 0x82;
    answer.resize(67);
    REQUIRE(e.write(own, d.data() + 42, bytes(welcome), answer.data() + 9));
    e.finish(up, down);
    opener.start(crypto, 3, up);
    sealer.start(crypto, 3, down);
    window = {};
    number = 0;
    open = code == 0;
    channel.start(static_cast<uint32_t>(0x1122334455667788 >> 24), 15000, 55, now / ms);
    out.push_back(answer);
  }
};

struct World {
  Server server;
  Client *client = nullptr;
  uint64_t now = 1000 * ms;
  std::vector<Event> events;
  std::string text; // of the last event with data
  Data delivered;

  explicit World(uint64_t timeout = 0) {
    ClientConfig c;
    c.crypto = server.crypto;
    c.offered = 8;
    c.timeout = timeout;
    REQUIRE(Client::create({}, c, &client) == Error::ok);
  }
  ~World() { Client::destroy(client); }

  void connect() {
    const std::string t = server.token();
    REQUIRE(client->connect(t.data(), t.size(), now) == Error::ok);
  }
  void run(uint64_t time) {
    for (const uint64_t end = now + time * ms; now < end; now += ms) {
      Data b(1500);
      while (const size_t n = client->next_datagram({b.data(), b.size()}, now))
        server.handle(Data(b.begin(), b.begin() + static_cast<long>(n)), now);
      if (server.open && !server.silent && !server.forgotten)
        while (const size_t n = server.channel.output(b.data(), now / ms))
          server.send(reliable, Data(b.begin(), b.begin() + static_cast<long>(n)));
      for (; !server.out.empty(); server.out.pop_front()) client->receive(bytes(server.out.front()), now);
      Event e;
      while (client->poll_event(&e)) {
        text.assign(reinterpret_cast<const char *>(e.data.data), e.data.size);
        if (e.type != EventType::quality) events.push_back(e);
      }
    }
  }
  // last returns the last event, and that of nothing without one.
  Event last() const { return events.empty() ? Event{} : events.back(); }
};

} // namespace

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
  World w(5000 * ms);
  w.connect();
  w.run(10);
  w.server.silent = true;
  w.run(5010);
  CHECK(w.last().type == EventType::reconnecting);
  CHECK(w.last().reason == Reason::timeout);
  CHECK(w.last().value <= 250 * ms);
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
