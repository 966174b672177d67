// RPCs that the server calls.
#include "test/client/world.hpp"

using namespace uplink;
using namespace uplink::detail::client;
using namespace uplink_test;

namespace {

struct Hit {
  Schema *schema = nullptr, *other = nullptr;
  Frame *frame = nullptr;
  Encoder *encoder = nullptr;

  Hit() {
    Field f[2];
    f[0].name = "X";
    f[0].resolution = 1;
    f[0].velocity = "V";
    f[1].name = "V";
    f[1].resolution = 1;
    REQUIRE(Schema::create({}, "Hit", 50, f, 2, &schema) == Error::ok);
    f[0].resolution = 2;
    REQUIRE(Schema::create({}, "Hit", 50, f, 2, &other) == Error::ok);
    REQUIRE(Frame::create({}, *schema, &frame) == Error::ok);
  }
  Hit(const Hit &) = delete;
  Hit &operator=(const Hit &) = delete;
  ~Hit() {
    Encoder::destroy(encoder);
    Frame::destroy(frame);
    Schema::destroy(schema);
    Schema::destroy(other);
  }

  // request sends the server's request to bind.
  static void request(World &w, const Schema &s, uint8_t rpc, bool reliable_channel, uint16_t ring = 64) {
    BindRequest r;
    r.rpc = rpc;
    r.schema = &s;
    r.ring = ring;
    r.reliable = reliable_channel;
    r.prior = Prior::generic().hash();
    Data b(1173);
    b.resize(format_bind({b.data(), b.size()}, r));
    REQUIRE(w.server.channel.send(bytes(b)));
  }
  // bind sends the server's request to bind, and returns the client's answer.
  BindAnswer bind(World &w, const Schema &s, uint8_t rpc, bool reliable_channel, uint16_t ring = 64) {
    request(w, s, rpc, reliable_channel, ring);
    w.run(50);
    answer.resize(max_reliable);
    answer.resize(w.server.channel.receive(answer.data()));
    BindAnswer a;
    REQUIRE(parse_answer(bytes(answer), &a));
    CHECK(a.rpc == rpc);
    EncoderConfig c;
    c.rpc = rpc;
    c.reliable = reliable_channel;
    Encoder::destroy(encoder);
    REQUIRE(Encoder::create({}, *schema, c, &encoder) == Error::ok);
    return a;
  }
  Data payload(int32_t x) {
    const double v[2] = {static_cast<double>(x), 3};
    REQUIRE(frame->set(0, v, 1) == Error::ok);
    REQUIRE(frame->set(1, v + 1, 1) == Error::ok);
    Data b(max_payload);
    size_t n = 0;
    REQUIRE(encoder->encode(*frame, {b.data(), b.size()}, &n) == Error::ok);
    b.resize(n);
    return b;
  }

  Data answer;
};

ClientConfig with_handlers() {
  ClientConfig c;
  c.handlers = 2;
  return c;
}

} // namespace

TEST_CASE("a request to bind waits while the client's messages fill the queue") {
  Hit hit;
  ClientConfig c = with_handlers();
  c.reliable_queue = 32768;
  World w(0, c);
  uint8_t number = 0;
  CHECK(w.client->reliable_room(w.now) == 0);
  REQUIRE(w.client->handle(*hit.schema, &number) == Error::ok);
  w.connect();
  w.run(100);
  w.server.path = 0; // nothing arrives there
  size_t sent = 0;
  CHECK(w.client->reliable_room(w.now) == 8192);
  for (; w.client->reliable_room(w.now) == 8192; sent++)
    REQUIRE(w.client->send({Data(8000).data(), 8000}, true, w.now) == Error::ok);
  CHECK(sent == 4);
  const size_t room = w.client->reliable_room(w.now);
  uint32_t id = 0;
  CHECK(w.client->request({Data(8000).data(), room + 1}, &id, w.now) == Error::backlog);
  for (Error e = Error::ok; e == Error::ok; sent += e == Error::ok ? 1 : 0) {
    e = w.client->send(text_bytes("x"), true, w.now);
    if (e != Error::ok) CHECK(e == Error::backlog);
  }
  CHECK(w.client->reliable_room(w.now) == 0);
  CHECK(std::strstr(text(Error::backlog), "reliable_queue") != nullptr);
  Hit::request(w, *hit.schema, 0, false);
  w.run(300);
  CHECK(w.client->connected());
  w.server.path = 1472;
  w.run(3000);
  Data m(max_reliable);
  for (size_t i = 0; i < sent; i++) CHECK(w.server.channel.receive(m.data()) == (i < 4 ? 8001 : 2));
  CHECK(w.client->reliable_room(w.now) == 8192);
  BindAnswer a;
  m.resize(w.server.channel.receive(m.data()));
  REQUIRE(parse_answer(bytes(m), &a));
  CHECK(a.reason == 0);
}

TEST_CASE("unreliable calls of the server, with losses") {
  Hit hit;
  World w(0, with_handlers());
  uint8_t handler = 9;
  REQUIRE(w.client->handle(*hit.schema, &handler) == Error::ok);
  CHECK(w.client->handle(*hit.schema, &handler) == Error::invalid);
  CHECK(handler == 0);
  w.connect();
  w.run(20);
  CHECK(hit.bind(w, *hit.schema, 0, false).reason == 0);
  CHECK(w.server.bodies[data].empty());
  const size_t before = w.events.size();
  std::vector<int32_t> sent;
  size_t acks = 0;
  for (int32_t i = 0; i < 300; i++) {
    const Data b = hit.payload(i * 3);
    if (i % 7 != 3) {
      w.server.send(data, b);
      sent.push_back(i * 3);
    }
    w.run(20);
    for (const Data &m : w.server.bodies[data]) {
      REQUIRE(m[0] == 0xc1);
      size_t used = 0;
      CHECK(hit.encoder->ack({m.data() + 1, m.size() - 1}, &used) == Error::ok);
      acks++;
    }
    w.server.bodies[data].clear();
  }
  CHECK(w.values == sent);
  CHECK(acks >= 50);
  CHECK(acks <= 61);
  uint64_t next = 0;
  for (size_t i = before; i < w.events.size(); i++) {
    const Event &e = w.events[i];
    REQUIRE(e.type == EventType::server_call);
    CHECK(e.rpc == handler);
    CHECK(e.value == next + e.missed);
    next = e.value + 1;
  }
  // A datagram that is 64 older than the newest with a call is not decoded.
  const Data late = hit.payload(1);
  w.server.number += 64;
  w.server.send(data, hit.payload(2));
  w.run(1);
  w.server.number -= 65;
  const uint64_t dropped = w.client->stats().server_calls_dropped;
  w.server.send(data, late);
  w.run(1);
  CHECK(w.client->stats().server_calls_dropped == dropped);
  CHECK(w.values.back() == 2);
}

TEST_CASE("reliable calls of the server") {
  Hit hit;
  World w(0, with_handlers());
  uint8_t handler = 0;
  REQUIRE(w.client->handle(*hit.schema, &handler) == Error::ok);
  w.connect();
  w.run(20);
  CHECK(hit.bind(w, *hit.schema, 0, true).reason == 0);
  std::vector<int32_t> sent;
  for (int32_t i = 0; i < 100; i++) {
    sent.push_back(i);
    REQUIRE(w.server.channel.send(bytes(hit.payload(i))));
  }
  w.run(1000);
  CHECK(w.values == sent);
  CHECK(w.server.bodies[data].empty());
  // A call that cannot be decoded violates the protocol.
  hit.payload(100);
  REQUIRE(w.server.channel.send(bytes(hit.payload(101))));
  w.run(50);
  CHECK(w.last().reason == Reason::violation);
}

TEST_CASE("RPCs that the client refuses") {
  Hit hit;
  World w(0, with_handlers());
  uint8_t handler = 0;
  w.connect();
  w.run(20);
  CHECK(hit.bind(w, *hit.schema, 0, false).reason == 1);
  CHECK(w.last().type == EventType::mismatch);
  CHECK(w.text == "the server calls \"Hit\", which the program does not handle");
  w.server.send(data, hit.payload(1));
  REQUIRE(w.client->handle(*hit.schema, &handler) == Error::ok);
  const BindAnswer a = hit.bind(w, *hit.other, 1, true);
  CHECK(a.reason == 2);
  CHECK(a.theirs.size > 0);
  REQUIRE(w.server.channel.send(bytes(hit.payload(1))));
  CHECK(hit.bind(w, *hit.schema, 2, false, 128).reason == 5);
  CHECK(w.values.empty());
  CHECK(w.client->connected());
  // A message of a type that only clients send ends the session.
  Data b = {0xc2};
  REQUIRE(w.server.channel.send(bytes(b)));
  w.run(50);
  CHECK(w.last().reason == Reason::violation);
}
