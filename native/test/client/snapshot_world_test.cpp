// Worlds of snapshots: the sessions of testdata/sessions/downstreams, as a server sends them.
#include <fstream>

#include <nlohmann/json.hpp>

#include "src/client/bind.hpp"
#include "test/client/world.hpp"
#include "test/hex.hpp"
#include "uplink/snapshot_world.hpp"

using namespace uplink;
using namespace uplink::detail::client;
using namespace uplink_test;

namespace {

using nlohmann::json;
using Rows = std::vector<std::vector<int32_t>>;

Field position(const char *name, double min, double max) {
  Field f;
  f.name = name;
  f.kind = Kind::vec3;
  f.resolution = 0.01;
  f.has_min = f.has_max = true;
  f.min = min;
  f.max = max;
  return f;
}

// packed returns strings as the elements of an array of an offer.
Data packed(const std::vector<std::string> &strings) {
  Data d;
  for (const std::string &s : strings) {
    d.insert(d.end(), {0xd9, static_cast<uint8_t>(s.size())});
    d.insert(d.end(), s.begin(), s.end());
  }
  return d;
}

struct Ball {
  Schema *schema = nullptr;
  Ball() {
    Field f[2] = {position("Position", -1000, 1000), {}};
    f[1].name = "Lit";
    f[1].kind = Kind::boolean;
    REQUIRE(Schema::create({}, "ball", 0, f, 2, &schema) == Error::ok);
  }
  ~Ball() { Schema::destroy(schema); }
  Ball(const Ball &) = delete;
  Ball &operator=(const Ball &) = delete;
};

struct Lamp {
  Schema *schema = nullptr;
  Lamp() {
    Field f[2] = {{}, position("Color", 0, 1)};
    f[0].name = "Name";
    f[0].kind = Kind::bytes;
    f[0].size = 8;
    REQUIRE(Schema::create({}, "lamps", 0, f, 2, &schema) == Error::ok);
  }
  ~Lamp() { Schema::destroy(schema); }
  Lamp(const Lamp &) = delete;
  Lamp &operator=(const Lamp &) = delete;
};

// Game is a client that is subscribed to a world.
struct Game : uplink_test::World {
  SnapshotWorld *world = nullptr;
  bool areas;
  size_t types;
  uint8_t number = 0;
  Data explained; // by the last answer to an offer: a byte, and an answer without its type

  // explanation returns its reason, its text and the names that only the server has.
  std::string explanation() const {
    BindAnswer a;
    if (!parse_answer(bytes(explained), &a)) return "";
    std::string out = std::to_string(a.reason) + " ";
    out.append(reinterpret_cast<const char *>(a.theirs.data), a.theirs.size);
    Unpacker u(a.asking.items);
    for (size_t i = 0; i < a.asking.n; i++) {
      const Bytes name = u.string();
      out.append(" ").append(reinterpret_cast<const char *>(name.data), name.size);
    }
    return out;
  }

  static ClientConfig config() {
    ClientConfig c;
    c.worlds = 1;
    return c;
  }
  Game(const SnapshotWorldConfig &c, bool with_areas) : World(0, config()), areas(with_areas), types(c.n) {
    REQUIRE(SnapshotWorld::create({}, c, &world) == Error::ok);
    REQUIRE(client->subscribe("balls", *world, 0, &number) == Error::ok);
    connect();
    run(20);
  }
  Game(const Game &) = delete;
  Game &operator=(const Game &) = delete;
  ~Game() {
    Client::destroy(client);
    client = nullptr;
    SnapshotWorld::destroy(world);
  }

  Rows shown() const {
    Rows out;
    for (size_t k = 0; k < types; k++) {
      const Objects o = world->objects(k);
      for (size_t i = 0; i < o.n; i++) {
        std::vector<int32_t> r;
        if (areas) r.push_back(static_cast<int32_t>(k));
        r.push_back(o.objects[i].id);
        r.push_back(o.objects[i].generation);
        r.insert(r.end(), o.row(i), o.row(i) + o.components);
        out.push_back(r);
      }
    }
    return out;
  }

  void play(const json &line) {
    if (line.contains("reliable")) {
      REQUIRE(server.channel.send(bytes(unhex(line["reliable"]))));
      run(60);
      Data answer(max_reliable);
      answer.resize(server.channel.receive(answer.data()));
      explained.clear();
      if (answer.size() > 3) { // the explanation follows the answer
        explained.assign(answer.begin() + 2, answer.end());
        answer.resize(3);
      }
      CHECK(answer == unhex(line.value("answer", "")));
      return;
    }
    std::vector<Data> &sent = server.bodies[DatagramKind::data];
    const size_t before = sent.size();
    const json lost = line.value("lost", json::array());
    for (size_t i = 0; i < line["sent"].size(); i++)
      if (std::find(lost.begin(), lost.end(), i) == lost.end())
        server.send(DatagramKind::data, unhex(line["sent"][i]));
    run(50);
    const std::string ack = line.value("ack", "");
    REQUIRE(sent.size() == before + (ack.empty() ? 0 : 1));
    if (ack.empty()) return;
    REQUIRE(sent.back() == unhex(ack));
    REQUIRE(world->newest() != nullptr);
    CHECK(world->newest()->tick == line["tick"].get<uint64_t>());
    CHECK(last().type == EventType::world_update);
    CHECK(last().value == world->newest()->tick);
    const char *key = areas ? "shown" : "objects";
    if (!line.contains(key)) return;
    Rows want = line[key].get<Rows>();
    if (areas) // the objects of the types that the program has
      want.erase(std::remove_if(want.begin(), want.end(),
                                [this](const auto &r) { return static_cast<size_t>(r[0]) >= types; }),
                 want.end());
    CHECK(shown() == want);
  }

  int play(const char *name) {
    std::ifstream in(std::string(UPLINK_TESTDATA "/sessions/downstreams/") + name);
    REQUIRE(in.good());
    int n = 0;
    for (std::string line; std::getline(in, line); n++) {
      CAPTURE(n);
      play(json::parse(line));
    }
    return n;
  }
};

} // namespace

TEST_CASE("a session of a world, with an initial state in pieces") {
  const Ball ball;
  SnapshotWorldConfig c;
  InterpolatorConfig interpolation;
  std::string position = "Position";
  interpolation.position = position.c_str();
  interpolation.delay = 60 * millisecond;
  c.types[0] = ball.schema;
  c.n = 1;
  c.interpolation[0] = &interpolation;
  Game g(c, false);
  position.replace(0, 8, "Rotation"); // the world does not refer to the configuration
  interpolation = {};
  CHECK(g.play("world.jsonl") > 40);
  CHECK(g.client->connected());
  CHECK(g.world->ticks() == 60);
  Sample s;
  REQUIRE(g.world->sample(0, g.now, &s));
  CHECK(s.objects.n == g.world->objects(0).n);
  CHECK(g.world->interpolation(0).added > 20);
  // The initial state is known to the next stream of the world.
  std::ifstream in(UPLINK_TESTDATA "/sessions/downstreams/world.jsonl");
  std::string line;
  std::getline(in, line);
  json offer = json::parse(line);
  offer["answer"] = "c70302";
  const uint64_t tick = g.world->newest()->tick;
  g.play(offer);
  // The old state is shown until a snapshot of the new stream arrives.
  REQUIRE(g.world->newest() != nullptr);
  CHECK(g.world->newest()->tick == tick);
  CHECK(g.world->objects(0).n == s.objects.n);
}

TEST_CASE("a tick that is more than 73 years after tick 0") {
  const Ball ball;
  for (const uint64_t tick : {uint64_t{138350580552}, uint64_t{138350580553}}) {
    CAPTURE(tick);
    SnapshotWorldConfig c;
    c.types[0] = ball.schema;
    c.n = 1;
    Game g(c, false);
    std::ifstream in(UPLINK_TESTDATA "/sessions/downstreams/world.jsonl");
    std::string line;
    while (std::getline(in, line) && !json::parse(line).contains("sent")) g.play(json::parse(line));
    const Data d = unhex(json::parse(line)["sent"][0]);
    size_t end = 1; // of the tick
    while (d[end++] >= 0x80) {
    }
    Data m = {d[0]};
    uint64_t rest = 2 * tick;
    for (; rest >= 0x80; rest >>= 7) m.push_back(static_cast<uint8_t>(rest | 0x80));
    m.push_back(static_cast<uint8_t>(rest));
    m.insert(m.end(), d.begin() + static_cast<long>(end), d.end());
    g.server.send(DatagramKind::data, m);
    g.run(50);
    CHECK((g.world->newest() != nullptr) == (tick == 138350580552));
    CHECK(g.client->connected());
  }
}

TEST_CASE("a session of a world with areas and two types of objects") {
  const Ball ball;
  const Lamp lamp;
  SnapshotWorldConfig c;
  c.types[0] = ball.schema;
  c.types[1] = lamp.schema;
  c.n = 2;
  Game g(c, true);
  CHECK(g.play("areas.jsonl") > 30);
  CHECK(g.client->connected());
}

TEST_CASE("a type of objects that the program does not have is skipped, and told once") {
  const Ball ball;
  SnapshotWorldConfig c;
  c.types[0] = ball.schema;
  c.n = 1;
  Game g(c, true);
  CHECK(g.play("areas.jsonl") > 30);
  CHECK(g.client->connected());
  CHECK(g.world->objects(1).n == 0);
  // The same world is offered again.
  std::ifstream in(UPLINK_TESTDATA "/sessions/downstreams/areas.jsonl");
  std::string line;
  std::getline(in, line);
  g.play(json::parse(line));
  CHECK(g.explanation() == "0  lamps/");
  std::vector<std::string> told;
  for (size_t i = 0; i < g.events.size(); i++)
    if (g.events[i].type == EventType::mismatch) told.push_back(g.texts[i]);
  REQUIRE(told.size() == 1);
  CHECK(told[0] == "objects are dropped of type \"lamps\", which the program does not have");
}

TEST_CASE("a world that the program cannot convert, and why") {
  const Ball ball;
  const Lamp lamp;
  SnapshotWorldConfig c;
  c.types[0] = ball.schema;
  c.types[1] = lamp.schema;
  c.n = 2;
  const auto refused = [](const SnapshotWorldConfig &config, const WorldOffer &o) {
    Game g(config, true);
    WorldReport r;
    CHECK_FALSE(g.world->accepts(o, &r));
    return std::string(r.text, r.n);
  };
  const auto text = [](const char *t) { return text_bytes(t); };
  // Arrays of descriptions, as in an offer.
  const Data fields = packed({"Position vec3 resolution=0.01 steps=-100000..100000", "Lit bool"});
  const Data fine = packed({"Position vec3 resolution=0.02 steps=-50000..50000", "Lit bool"});
  const Data renamed = packed({"Location vec3 resolution=0.01 steps=-100000..100000", "Lit bool"});
  const Data more =
      packed({"Position vec3 resolution=0.01 steps=-100000..100000", "Lit bool", "Team uint width=4"});
  WorldOffer o;
  o.codec = text("snapshot");
  o.areas = true;
  o.types_n = 2;
  o.types[0] = {text("balls"), bytes(fields), 2};
  o.types[1] = {text("lamp"), bytes(fields), 2};
  CHECK(refused(c, o) == "the server has no objects of type \"lamps\", nearest \"lamp\"");
  c.n = 1;
  o.types_n = 1;
  o.types[0] = {text("balls"), bytes(fine), 2};
  CHECK(refused(c, o) ==
        "a field differs: here \"Position vec3 resolution=0.01 steps=-100000..100000\", at the server "
        "\"Position vec3 resolution=0.02 steps=-50000..50000\", in objects of type \"balls\"");
  o.types[0] = {text("balls"), bytes(renamed), 2};
  CHECK(refused(c, o) ==
        "the server has no field \"Position\", nearest \"Location\", in objects of type \"balls\"");
  o.types[0] = {text("balls"), bytes(more), 3};
  CHECK(refused(c, o) == "the program has no field \"Team\" of the server, in objects of type \"balls\"");
  o.codec = text("state");
  CHECK(refused(c, o) == "the codec of the world is \"state\": subscribe to it by a StateWorld");
}

TEST_CASE("a world whose types the program does not know") {
  const Lamp lamp;
  SnapshotWorldConfig c;
  SnapshotWorld *w = nullptr;
  CHECK(SnapshotWorld::create({}, c, &w) == Error::invalid);
  c.types[0] = lamp.schema;
  c.n = 1;
  Game g(c, false);
  std::ifstream in(UPLINK_TESTDATA "/sessions/downstreams/world.jsonl");
  std::string line;
  std::getline(in, line);
  json offer = json::parse(line);
  offer["answer"] = "c70300";
  g.play(offer);
  CHECK(g.last().type == EventType::world);
  CHECK(g.last().status == 1);
  CHECK(g.explanation() == "2 " + g.text);
  CHECK(g.text == "the server has no field \"Name\", nearest \"Lit\", in objects of type \"balls\"");
}
