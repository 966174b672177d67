// Replication streams, with a receiver that stands for a codec.
#include <algorithm>

#include "src/client/bind.hpp"
#include "test/client/world.hpp"

using namespace uplink;
using namespace uplink::detail::client;
using namespace uplink_test;

namespace {

// Receiver decodes messages whose first byte is the tick, 0 for an error. The text partial marks one that
// does not show all objects.
struct Receiver final : WorldReceiver {
  Schema *schema = nullptr;
  std::vector<Data> messages;
  std::string initial;
  std::vector<ProcessedCalls> processed;
  bool known = false, held = false, whole = true;
  int begun = 0, adopted = 0;
  std::vector<Receiver *> spares;

  Receiver() {
    Field f;
    f.name = "position";
    f.kind = Kind::vec3;
    f.resolution = 0.01;
    REQUIRE(Schema::create({}, "Object", 0, &f, 1, &schema) == Error::ok);
  }
  ~Receiver() { Schema::destroy(schema); }
  Receiver(const Receiver &) = delete;
  Receiver &operator=(const Receiver &) = delete;

  bool accepts(const WorldOffer &o, WorldReport *) override { return same_fields(o.types[0], *schema); }
  bool knows(uint64_t hash) const override { return known && hash == 77; }
  Error begin(const WorldOffer &, Bytes b) override {
    begun++;
    if (b.size > 0) initial.assign(reinterpret_cast<const char *>(b.data), b.size);
    return Error::ok;
  }
  Error receive(const WorldMessage &m, uint64_t *tick) override {
    messages.emplace_back(m.body.data, m.body.data + m.body.size);
    processed.assign(m.processed, m.processed + m.processed_n);
    held = m.held;
    whole = m.body.size < 2 || m.body.data[1] != 'p';
    *tick = m.body.size == 0 ? 0 : m.body.data[0];
    return *tick == 0 ? Error::malformed : Error::ok;
  }
  size_t ack(uint8_t *to) const override {
    to[0] = static_cast<uint8_t>(messages.size());
    return 1;
  }
  bool complete() const override { return whole; }
  WorldReceiver *spare() override {
    spares.push_back(new Receiver);
    return spares.back();
  }
  void adopt(WorldReceiver *) override { adopted++; }
  void discard(WorldReceiver *s) override {
    auto *r = static_cast<Receiver *>(s);
    spares.erase(std::remove(spares.begin(), spares.end(), r), spares.end());
    delete r;
  }
};

// Clocked is a world with a clock whose messages contain only the tick, in 8 bytes.
struct Clocked final : ClientWorld {
  Error begin(const WorldOffer &o, Bytes) override {
    restart(o.ticks, o.rate);
    return Error::ok;
  }
  Error receive(const WorldMessage &m, uint64_t *tick) override {
    *tick = load_little(m.body.data, m.body.size);
    observe(m, *tick);
    return Error::ok;
  }
  bool accepts(const WorldOffer &, WorldReport *) override { return true; }
  bool knows(uint64_t) const override { return false; }
  size_t ack(uint8_t *to) const override {
    to[0] = 1;
    return 1;
  }
};

struct Offering {
  uint8_t number = 3;
  std::string name = "arena", field = "position vec3 resolution=0.01";
  uint64_t initial = 0;
  double rate = 30;
  bool processed = false;

  Data message() const {
    Data d(400);
    Packer p({d.data(), d.size()});
    p.writer().little(0xc6, 1);
    p.array(12);
    p.integer(number);
    p.string(text_bytes(name.c_str()));
    p.string(text_bytes("snapshot"));
    p.array(1);
    p.string(text_bytes(field.c_str()));
    p.real(rate);
    p.real(60);
    p.integer(initial);
    p.integer(77);
    p.writer().little(0xc2, 1);
    p.array(0);
    p.writer().little(processed ? 0xc3 : 0xc2, 1);
    p.array(0);
    d.resize(p.writer().size());
    return d;
  }
};

Data pack(std::initializer_list<int> bytes, const std::string &more = "") {
  Data d;
  for (const int b : bytes) d.push_back(static_cast<uint8_t>(b));
  for (const char c : more) d.push_back(static_cast<uint8_t>(c));
  return d;
}

struct WorldGame : uplink_test::World {
  Receiver receiver;
  uint8_t number = 255;

  static ClientConfig config() {
    ClientConfig c;
    c.worlds = 2;
    return c;
  }
  explicit WorldGame(const Allocator &a = {}) : World(0, config(), a) {
    REQUIRE(client->subscribe("arena", receiver, 0, &number) == Error::ok);
    connect();
    run(20);
    REQUIRE(client->connected());
  }
  void reliable(const Data &m) {
    REQUIRE(server.channel.send(bytes(m)));
    run(60);
  }
  void message(const Data &m) {
    server.send(DatagramKind::data, m);
    run(2);
  }
  // answer returns the next message of the client on the reliable channel.
  Data answer() {
    Data m(max_reliable);
    m.resize(server.channel.receive(m.data()));
    return m;
  }
};

} // namespace

TEST_CASE("a world with the smallest rate") {
  WorldGame g;
  Offering o;
  o.rate = 5e-324;
  g.reliable(o.message());
  CHECK(g.answer() == pack({0xc7, 3, 2}));
  CHECK(g.client->connected());
}

TEST_CASE("a world: offer, messages, acks, end") {
  WorldGame g;
  uint8_t other = 0;
  CHECK(g.client->subscribe("arena", g.receiver, 0, &other) == Error::invalid);
  g.reliable(Offering().message());
  CHECK(g.answer() == pack({0xc7, 3, 2}));
  CHECK(g.receiver.begun == 1);
  CHECK(g.last().type == EventType::world);
  CHECK(g.last().status == 0);
  CHECK(g.last().world == g.number);

  g.message(pack({0xf3, 5}, "five"));
  REQUIRE(g.last().type == EventType::world_update);
  CHECK(g.last().value == 5);
  CHECK(g.server.bodies[DatagramKind::data].back() == pack({0xca, 3, 1}));
  // Older and malformed messages are no update, and are acked. Datagrams with only acks are sent 30
  // times a second.
  const size_t events = g.events.size(), acks = g.server.bodies[DatagramKind::data].size();
  g.message(pack({0xf3, 4}));
  g.message(pack({0xf3}));
  g.message(pack({0xf4, 9})); // of no stream
  CHECK(g.receiver.messages.size() == 3);
  CHECK(g.events.size() == events);
  g.run(40);
  REQUIRE(g.server.bodies[DatagramKind::data].size() == acks + 1);
  CHECK(g.server.bodies[DatagramKind::data].back() == pack({0xca, 3, 3}));

  g.reliable(pack({0xc9, 3}));
  CHECK(g.last().type == EventType::world);
  CHECK(g.last().status == 2);
  g.message(pack({0xf3, 9}));
  CHECK(g.receiver.messages.size() == 3);
  // Another offer of the name continues the subscription.
  Offering again;
  again.number = 4;
  g.reliable(again.message());
  CHECK(g.answer() == pack({0xc7, 4, 2}));
  CHECK(g.receiver.begun == 2);
  REQUIRE(g.client->unsubscribe(g.number) == Error::ok);
  g.run(60);
  CHECK(g.answer() == pack({0xc7, 4, 0}));
  // The offer stands: the program may subscribe again.
  REQUIRE(g.client->subscribe("arena", g.receiver, 0, &g.number) == Error::ok);
  g.run(60);
  CHECK(g.answer() == pack({0xc7, 4, 2}));
  CHECK(g.client->connected());
}

TEST_CASE("an offer of other fields, and of an unknown world") {
  WorldGame g;
  Offering o;
  o.field = "position vec3 resolution=0.02";
  g.reliable(o.message());
  const Data refusal = g.answer();
  REQUIRE(refusal.size() > 3);
  CHECK(Data(refusal.begin(), refusal.begin() + 3) == pack({0xc7, 3, 0}));
  CHECK(g.last().status == 1);
  o.number = 5;
  o.name = "lobby";
  g.reliable(o.message());
  CHECK(g.answer().empty());
  CHECK(g.client->connected());
  o.rate = 1001;
  g.reliable(o.message());
  CHECK(!g.client->connected());
}

TEST_CASE("an initial state in pieces") {
  WorldGame g;
  Offering o;
  o.initial = 100;
  g.reliable(pack({0xc8, 3}, "too early"));
  g.reliable(o.message());
  CHECK(g.answer() == pack({0xc7, 3, 1}));
  CHECK(g.receiver.begun == 0);
  const std::string state(100, 's');
  g.reliable(pack({0xc8, 3}, state.substr(0, 60)));
  g.reliable(pack({0xc8, 3}, state.substr(60)));
  CHECK(g.answer() == pack({0xc7, 3, 2}));
  CHECK(g.receiver.initial == state);
  // It is known to the next stream.
  g.receiver.known = true;
  g.reliable(o.message());
  CHECK(g.answer() == pack({0xc7, 3, 2}));
  CHECK(g.receiver.begun == 2);
}

TEST_CASE("fragments: out of order, twice, late and malformed") {
  WorldGame g;
  g.reliable(Offering().message());
  const std::string full(1168, 'f');
  const auto fragment = [](int n, int i, int count, const std::string &body) {
    return pack({0xd3, n, 0, i, count - 1}, body);
  };
  g.message(fragment(1, 1, 2, "end"));
  g.message(fragment(1, 1, 2, "end"));
  g.message(fragment(1, 0, 3, full));        // another number of fragments
  g.message(fragment(1, 0, 2, "too short")); // only the last one may be
  g.message(fragment(1, 2, 2, "end"));
  CHECK(g.receiver.messages.empty());
  g.message(fragment(1, 0, 2, full));
  REQUIRE(g.receiver.messages.size() == 1);
  CHECK(g.receiver.messages[0] == pack({}, full + "end"));
  g.message(fragment(1, 0, 2, full));
  g.message(fragment(2, 0, 2, full));
  g.message(fragment(6, 0, 2, full)); // message 2 is discarded
  g.message(fragment(2, 1, 2, "end"));
  CHECK(g.receiver.messages.size() == 1);
  g.message(fragment(3, 1, 2, "3"));
  g.message(fragment(3, 0, 2, full));
  CHECK(g.receiver.messages.size() == 2);
}

// The server's ticks run at other rates, and it stands still: an event reports the rate, and the clock is
// right two seconds later.
TEST_CASE("the rate of the server's ticks changes") {
  Clocked world;
  uplink_test::World g(0, WorldGame::config());
  uint8_t number = 0;
  REQUIRE(g.client->subscribe("arena", world, 0, &number) == Error::ok);
  g.connect();
  g.run(20);
  REQUIRE(g.server.channel.send(bytes(Offering().message())));
  g.run(60);
  double tick = 0;
  uint64_t sent = 0;
  std::vector<Event> news;
  // play runs the server at a rate for a time in ms, and returns the error of the clock in ticks.
  auto play = [&](double rate, int time) {
    double off = 0;
    for (int i = 0; i < time; i++) {
      tick += rate * world.ticks() / 1000;
      if (tick >= static_cast<double>(sent + 2) && rate > 0) {
        sent = static_cast<uint64_t>(tick);
        Data m(9);
        m[0] = 0xf3;
        store_little(m.data() + 1, 8, sent);
        g.server.send(DatagramKind::data, m);
      }
      const size_t before = g.events.size();
      g.run(1);
      for (size_t k = before; k < g.events.size(); k++)
        if (g.events[k].type == EventType::tick_rate) news.push_back(g.events[k]);
      Ticks t;
      if (i > 2000 && world.clock(g.now, 0, 0, &t)) off = std::max(off, std::abs(t.server - tick));
    }
    return off;
  };
  CHECK(play(1, 5000) < 1);
  CHECK(news.empty());
  for (const double rate : {0.6, 1.0, 1.1, 0.6, 1.1, 1.0}) {
    INFO("rate ", rate);
    const bool was_off = !news.empty() && news.back().status == 1, off = rate != 1.0;
    const size_t before = news.size();
    play(rate, 4000);
    CHECK(play(rate, 4000) < 1);
    REQUIRE(!news.empty());
    CHECK(news.back().status == (off ? 1 : 0));
    if (was_off != off) CHECK(news.size() == before + 1);
  }
  CHECK(news[0].value > 250000);
  CHECK(news[0].value < 950000);
  CHECK(news.back().value > 960000);
  CHECK(news.back().value < 1040000);
  for (const int stall : {100, 250, 500, 1000, 2000, 5000}) {
    INFO("stall of ", stall, " ms");
    play(0, stall);
    CHECK(play(1, 8000) < 1);
  }
}

TEST_CASE("messages for a tick wait for it") {
  WorldGame g;
  g.reliable(Offering().message());
  g.reliable(pack({0xce, 3, 7}, "seven"));
  g.reliable(pack({0xce, 3, 5}, "after seven"));
  size_t events = g.events.size();
  g.message(pack({0xf3, 6}));
  CHECK(g.events.size() == events + 1);
  events = g.events.size();
  g.message(pack({0xf3, 8}));
  REQUIRE(g.events.size() == events + 3);
  CHECK(g.events[events].type == EventType::tick_message);
  CHECK(g.events[events].value == 7);
  CHECK(g.events[events + 1].value == 5);
  CHECK(g.events[events + 2].type == EventType::world_update);
  // The end of the stream delivers the others.
  g.reliable(pack({0xce, 3, 99}, "last"));
  g.reliable(pack({0xc9, 3}));
  REQUIRE(g.events.size() == events + 5);
  CHECK(g.events[events + 3].value == 99);
  CHECK(g.last().status == 2);
}

TEST_CASE("the view of an earlier stream is shown until that of the next one is complete") {
  for (const bool late : {false, true}) {
    CAPTURE(late);
    WorldGame g;
    g.reliable(Offering().message());
    g.message(pack({0xf3, 50}, "partial")); // there is nothing else to show
    REQUIRE(g.last().type == EventType::world_update);
    CHECK(!g.receiver.held);
    Offering again;
    again.number = 4;
    g.reliable(again.message());
    g.reliable(pack({0xce, 4, 7}, "seven"));
    const size_t events = g.events.size();
    for (int i = 0; i < 32; i++) { // 100 messages take 3.3 s at this rate
      g.message(pack({0xf4, 7}, "partial"));
      CHECK(g.receiver.held);
      g.run(98);
    }
    CHECK(g.events.size() == events);
    if (late) g.run(200);
    g.message(late ? pack({0xf4, 7}, "partial") : pack({0xf4, 7}));
    REQUIRE(g.events.size() == events + (late ? 3 : 2));
    CHECK(g.events[events].type == EventType::tick_message);
    if (late) {
      CHECK(g.events[events + 1].type == EventType::world);
      CHECK(g.events[events + 1].status == 3);
    }
    CHECK(g.last().type == EventType::world_update);
    CHECK(g.last().value == 7);
    g.message(pack({0xf4, 8}, "partial"));
    CHECK(g.last().value == 8);
    CHECK(!g.receiver.held);
  }
}

TEST_CASE("a handover waits until the view is complete") {
  struct Case {
    bool offered, arrives, completes;
    uint64_t least, most; // ms
  };
  for (const Case &c : {Case{false, false, false, 1000, 1300}, Case{true, false, false, 1000, 1300},
                        Case{true, true, true, 2000, 2200}, Case{true, true, false, 3300, 3600}}) {
    CAPTURE(c.offered);
    CAPTURE(c.arrives);
    CAPTURE(c.completes);
    Server other;
    other.id = 0x2233445566778899;
    WorldGame g;
    g.other = &other;
    g.reliable(Offering().message());
    g.message(pack({0xf3, 50}));
    stream(g.server, "");
    REQUIRE(g.server.channel.send(bytes(notice(other, {}))));
    while (!other.open) g.run(1);
    Offering there;
    there.number = 5;
    if (c.offered) REQUIRE(other.channel.send(bytes(there.message())));
    g.run(100);
    REQUIRE(g.receiver.spares.size() == 1);
    const auto switched = [&g] {
      for (const Event &e : g.events)
        if (e.type == EventType::handover && e.status == 1) return true;
      return false;
    };
    const uint64_t began = g.now;
    while (!switched() && g.now < began + 30000 * millisecond) {
      const bool whole = c.completes && g.now >= began + 2000 * millisecond;
      if (c.arrives) other.send(DatagramKind::data, whole ? pack({0xf5, 7}) : pack({0xf5, 7}, "partial"));
      g.run(50);
    }
    CHECK((g.now - began) / millisecond >= c.least - 100);
    CHECK((g.now - began) / millisecond <= c.most);
    CHECK(g.receiver.adopted == (c.offered ? 1 : 0));
    CHECK(g.receiver.spares.empty());
    if (!c.arrives) continue;
    g.run(50);
    int partial = 0;
    for (const Event &e : g.events) partial += e.type == EventType::world && e.status == 3 ? 1 : 0;
    other.send(DatagramKind::data, pack({0xf5, 9}, "partial"));
    g.run(50);
    for (const Event &e : g.events) partial += e.type == EventType::world && e.status == 3 ? 1 : 0;
    CHECK((partial > 0) == !c.completes);
  }
}

TEST_CASE("more messages for a tick than a client holds") {
  WorldGame g;
  g.reliable(Offering().message());
  const std::string body(8000, 'm');
  int sent = 0;
  for (int i = 0; i < 4000 && sent < 60; i++) {
    if (g.server.channel.send(bytes(pack({0xce, 3, 50}, body)))) sent++;
    g.run(1);
  }
  g.run(1000);
  CHECK(sent == 60);
  CHECK(g.client->connected());
  int delivered = 0;
  for (const Event &e : g.events) delivered += e.type == EventType::tick_message ? 1 : 0;
  CHECK(delivered == 60 - 262144 / 8064);
}

TEST_CASE("processed calls") {
  WorldGame g;
  Offering o;
  o.processed = true;
  g.reliable(o.message());
  g.message(pack({0xf3, 1, 0, 5, 0, 1}, "message")); // RPC 0 is not bound
  REQUIRE(g.receiver.messages.size() == 1);
  CHECK(g.receiver.messages[0] == pack({1}, "message"));
  CHECK(g.receiver.processed.empty());
  g.message(pack({0xf3, 2, 1, 0, 0, 1, 0, 0, 1})); // not ascending
  CHECK(g.receiver.messages.size() == 1);
}

TEST_CASE("memory of a world is released") {
  size_t live = 0;
  Allocator a;
  a.context = &live;
  a.allocate = [](void *context, size_t size) -> void * {
    ++*static_cast<size_t *>(context);
    return std::malloc(size);
  };
  a.release = [](void *context, void *memory) {
    --*static_cast<size_t *>(context);
    std::free(memory);
  };
  {
    WorldGame g(a);
    g.reliable(Offering().message());
    g.reliable(pack({0xce, 3, 50}, "held"));
    g.message(pack({0xd3, 0, 0, 1, 1}, "end"));
  }
  CHECK(live == 0);
}
