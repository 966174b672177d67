// Events about names and fields that only one end has.
#include <cmath>

#include "src/client/bind.hpp"
#include "src/client/worlds.hpp"
#include "test/client/world.hpp"

using namespace uplink;
using namespace uplink::detail::client;
using namespace uplink_test;

namespace {

using Strings = std::vector<std::string>;

Bytes utf8(const std::string &s) {
  return {reinterpret_cast<const uint8_t *>(s.data()), s.size()};
}

// Answer is a server's answer to the request to bind RPC 0.
struct Answer {
  uint64_t reason = 0, field = 0, prior = Prior::generic().hash();
  std::string theirs;
  double limit = 0;
  Strings known, asking, answering;

  Data message() const {
    Data b(2000);
    Packer p({b.data(), b.size()});
    p.writer().little(0xc3, 1);
    p.array(11);
    for (const uint64_t v : {uint64_t{0}, uint64_t{64}, reason, field}) p.integer(v);
    p.string(utf8(theirs));
    add(&p, known);
    p.fixed(0xcf, prior, 8);
    p.real(limit);
    p.array(0);
    add(&p, asking);
    add(&p, answering);
    REQUIRE(p.writer().ok());
    b.resize(p.writer().size());
    return b;
  }
  static void add(Packer *p, const Strings &names) {
    p->array(names.size());
    for (const std::string &n : names) p->string(utf8(n));
  }
};

// Player is a client that binds Move, with the field Loc.
struct Player : World {
  Schema *schema = nullptr;
  uint8_t rpc = 0;

  static ClientConfig config() {
    ClientConfig c;
    c.worlds = 2;
    c.handlers = 1;
    return c;
  }
  Player() : World(0, config()) {
    Field f;
    f.name = "Loc";
    f.kind = Kind::vec3;
    f.resolution = 1;
    REQUIRE(Schema::create({}, "Move", 60, &f, 1, &schema) == Error::ok);
    REQUIRE(client->bind(*schema, {}, &rpc) == Error::ok);
    connect();
    run(20);
    events.clear();
    texts.clear();
  }
  Player(const Player &) = delete;
  Player &operator=(const Player &) = delete;
  ~Player() {
    Client::destroy(client);
    client = nullptr;
    Schema::destroy(schema);
  }
  // answered passes an answer of the server to the client, and returns the type of the last event.
  // World::text is the text of that event.
  EventType answered(const Answer &a) {
    server.send(DatagramKind::data, a.message());
    run(10);
    return last().type;
  }
};

// Ignored is a receiver of a world that the server does not offer.
struct Ignored : WorldReceiver {
  bool accepts(const WorldOffer &, WorldReport *) override { return true; }
  bool knows(uint64_t) const override { return true; }
  Error begin(const WorldOffer &, Bytes) override { return Error::ok; }
  Error receive(const WorldMessage &, uint64_t *) override { return Error::malformed; }
  size_t ack(uint8_t *) const override { return 0; }
};

} // namespace

TEST_CASE("why an RPC is not bound") {
  const auto why = [](const Answer &a) {
    Player p;
    CHECK(p.answered(a) == EventType::bind_failed);
    CHECK(p.last().value == a.reason);
    return p.text;
  };
  Answer a;
  a.reason = 1;
  a.known = {"ServerMove", "Moove", "..."};
  CHECK(why(a) ==
        "the server has no RPC \"Move\", nearest \"Moove\"; it has \"ServerMove\", \"Moove\", \"...\"");
  a.known = {};
  CHECK(why(a) == "the server has no RPC \"Move\"");
  a = {};
  a.reason = 2;
  a.theirs = "Loc vec2 resolution=1";
  CHECK(
      why(a) ==
      "a field cannot be converted: here \"Loc vec3 resolution=1\", at the server \"Loc vec2 resolution=1\"");
  a.theirs = "";
  a.answering = {"Velocity", "Location"};
  CHECK(why(a) ==
        "a field cannot be converted: here \"Loc vec3 resolution=1\", and the server has none with this "
        "name, nearest \"Location\"");
  a = {};
  a.reason = 7;
  a.limit = 30;
  CHECK(why(a) == "the server has a fixed number of calls per second for it: 30");
  a.limit = 66.67;
  CHECK(why(a) == "the server has a fixed number of calls per second for it: 66.67");
  for (const double none : {std::nan(""), -HUGE_VAL, 1e300}) {
    a.limit = none;
    CHECK(why(a).size() < 80);
  }
  a = {};
  a.reason = 5;
  a.theirs = "Ring is 1\n";
  CHECK(why(a) == "the server refuses it for reason 5: \"Ring is 1?\"");
  a = {};
  a.prior = 7;
  CHECK(why(a) == "the server has another prior, or a ring of one frame");
}

TEST_CASE("fields that only one end has are told once, and the RPC is bound") {
  Player p;
  Answer a;
  a.asking = {"Loc"};
  a.answering = {"Location", "Boost"};
  CHECK(p.answered(a) == EventType::mismatch);
  CHECK(p.text ==
        "only the client has \"Loc\", nearest \"Location\"; only the server has \"Location\", nearest "
        "\"Loc\"; only the server has \"Boost\", nearest \"Loc\"");
  CHECK(p.last().rpc == p.rpc);
  CHECK(p.last().status == 0);
  CHECK(p.events[0].type == EventType::bound);
  // A duplicate of the answer, or the same answer in another session, causes no further event.
  p.events.clear();
  p.answered(a);
  CHECK(p.events.empty());
  p.server.open = false;
  p.connect();
  p.run(50);
  CHECK(p.answered(a) == EventType::bound);
  // An answer with more names than permitted is ignored.
  Player q;
  a.asking.assign(33, "Loc");
  q.answered(a);
  CHECK(q.events.empty());
}

TEST_CASE("a world that the server does not offer") {
  Player p;
  Ignored world, later;
  uint8_t number = 0;
  REQUIRE(p.client->subscribe("ballz", world, 0, &number) == Error::ok);
  p.run(1990);
  CHECK(p.events.empty());
  p.run(20);
  REQUIRE(p.last().type == EventType::mismatch);
  CHECK(p.last().status == 1);
  CHECK(p.last().world == number);
  CHECK(p.text == "the server has not offered a world \"ballz\" within 2 s, nor any other");
  p.run(100);
  Data told(max_reliable);
  told.resize(p.server.channel.receive(told.data()));
  REQUIRE(told.size() > 3);
  CHECK((told[0] == 0xc7 && told[1] == 255 && told[2] == 0));
  BindAnswer a;
  REQUIRE(parse_answer({told.data() + 2, told.size() - 2}, &a));
  CHECK(a.reason == 1);
  CHECK(std::string(reinterpret_cast<const char *>(a.theirs.data), a.theirs.size) == "ballz");
  p.run(5000);
  CHECK(p.events.size() == 1);
  // The event of another subscription lists the offered worlds.
  Data offer(500);
  Packer o({offer.data(), offer.size()});
  o.writer().little(0xc6, 1);
  o.array(12);
  o.integer(3);
  o.string(utf8("balls"));
  o.string(utf8("snapshot"));
  o.array(0);
  o.real(20);
  o.real(60);
  o.integer(0);
  o.integer(0);
  o.writer().little(0xc2, 1);
  o.array(0);
  o.writer().little(0xc2, 1);
  o.array(0);
  offer.resize(o.writer().size());
  REQUIRE(p.server.channel.send(bytes(offer)));
  REQUIRE(p.client->subscribe("Ball", later, 0, &number) == Error::ok);
  p.run(2100);
  CHECK(p.last().world == number);
  CHECK(p.text ==
        "the server has not offered a world \"Ball\" within 2 s, nearest \"balls\"; it offers \"balls\"");
}

TEST_CASE("each event has a description with the texts of its status and reason") {
  Event e;
  char text[600];
  e.type = EventType::world;
  e.status = static_cast<uint8_t>(WorldStatus::refused);
  e.world = 2;
  const std::string why = "the field \"Speed\" is missing\n";
  e.data = {reinterpret_cast<const uint8_t *>(why.data()), why.size()};
  const size_t n = describe(e, text, sizeof(text));
  CHECK(n == std::string(text).size());
  CHECK(std::string(text) == "world 2: the client refused the offer: the field \"Speed\" is missing?");
  e = {};
  e.type = EventType::handover;
  e.status = static_cast<uint8_t>(HandoverStatus::stays);
  e.reason = Reason::answers;
  describe(e, text, sizeof(text));
  CHECK(std::string(text) == "handover: the client stays at its server: the server answers again");
  e = {};
  e.type = EventType::reconnecting;
  e.reason = Reason::timeout;
  e.value = 5;
  describe(e, text, sizeof(text));
  CHECK(std::string(text) == "reconnecting, wait in ns 5: nothing arrived from the server");
  CHECK(describe(e, text, 8) == 7);
  CHECK(std::string(text) == "reconne");
  for (int type = 0; type <= static_cast<int>(EventType::tick_rate); type++)
    for (const char c : std::string(uplink::text(static_cast<EventType>(type))))
      CHECK((c == '_' || (c >= 'a' && c <= 'z')));
  CHECK(std::string(status_text(static_cast<EventType>(200), 0)).empty());
  CHECK(std::string(status_text(EventType::answer, 4)) == "not handled by the server");
  CHECK(std::string(status_text(EventType::answer, 1)).empty());
}

TEST_CASE("a log gets each event that is polled, and what is dropped") {
  std::vector<std::string> lines;
  ClientConfig c;
  c.log.context = &lines;
  c.log.write = [](void *context, LogLevel level, const char *line) {
    static_cast<std::vector<std::string> *>(context)->push_back(std::to_string(static_cast<int>(level)) +
                                                                " " + line);
  };
  uplink_test::World w(0, c);
  w.connect();
  w.run(100);
  const uint8_t stray[40] = {0x12};
  w.client->receive({stray, sizeof(stray)}, w.now);
  w.client->receive({stray, sizeof(stray)}, w.now);
  w.run(100);
  w.server.silent = true;
  w.run(20000);
  const auto has = [&lines](const std::string &line) { return std::count(lines.begin(), lines.end(), line); };
  CHECK(has("1 connecting") == 1);
  CHECK(has("1 connected") == 1);
  CHECK(has("2 datagrams dropped that are damaged, repeated, late, or of no session: 2") == 1);
  CHECK(has("0 quality") > 1);
  CHECK(std::any_of(lines.begin(), lines.end(),
                    [](const std::string &l) { return l.rfind("2 reconnecting, wait in ns ", 0) == 0; }));
}
