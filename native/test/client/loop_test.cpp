// The ticks of a client that predicts, in virtual time: as client/loop_test.go.
#include <cmath>

#include "test/client/world.hpp"
#include "uplink/loop.hpp"

using namespace uplink_test;

namespace {

// Sled is a state whose future depends on all inputs so far.
struct Sled {
  int64_t x = 0, speed = 0;

  void push(double force) {
    speed = speed * 7 / 8 + static_cast<int64_t>(force * 16);
    x += speed;
  }
};

// SledGame has inputs that the RPC rounds to a quarter.
struct SledGame {
  using State = Sled;
  using Input = double;

  std::vector<double> sent; // inputs of this session as the server decodes them
  int sessions = 0, corrections = 0;
  double largest = 0;

  Input input(uint64_t at, uint64_t sequence) {
    if (sequence == 0) {
      sessions++;
      sent.clear();
    }
    CHECK(sequence == sent.size());
    const double force = 0.3 * static_cast<double>(at / (500 * millisecond) * 7 % 21) - 3;
    sent.push_back(std::round(force * 4) / 4);
    return force;
  }
  Error pack(const double &force, Frame &f) { return f.set(0, &force, 1); }
  Error unpack(const Frame &f, double &force) { return f.get(0, &force, 1); }
  void step(Sled &s, const double &force) { s.push(force); }
  double distance(const Sled &a, const Sled &b) { return std::fabs(static_cast<double>(a.x - b.x)); }
  void corrected(const Sled &before, const Sled &after) {
    corrections++;
    largest = std::fmax(largest, distance(before, after));
  }
};

// Said is a world whose messages contain a number of processed calls.
struct Said final : ClientWorld {
  bool accepts(const WorldOffer &, WorldReport *) override { return false; }
  bool knows(uint64_t) const override { return false; }
  Error begin(const WorldOffer &, Bytes) override { return Error::ok; }
  Error receive(const WorldMessage &, uint64_t *) override { return Error::ok; }
  size_t ack(uint8_t *) const override { return 0; }
  void tell(uint64_t next) {
    const ProcessedCalls calls = {0, next};
    WorldMessage m;
    m.processed = &calls;
    m.processed_n = 1;
    keep(m);
  }
};

struct LoopWorld : World {
  Schema *schema = nullptr;
  Frame *frame = nullptr;
  uint8_t rpc = 0;
  Said said;
  SledGame game;
  Sled sled; // the server's
  size_t processed = 0;
  uint64_t tick = 0;
  uint64_t next = 0; // tick of the client

  LoopWorld() {
    Field f;
    f.name = "Force";
    f.kind = Kind::scalar;
    f.resolution = 0.25;
    REQUIRE(Schema::create({}, "Move", 60, &f, 1, &schema) == Error::ok);
    REQUIRE(Frame::create({}, *schema, &frame) == Error::ok);
    REQUIRE(client->bind(*schema, {}, &rpc) == Error::ok);
    open();
  }
  ~LoopWorld() {
    Client::destroy(client);
    client = nullptr;
    Frame::destroy(frame);
    Schema::destroy(schema);
  }

  // open begins a session and binds the RPC in it.
  void open() {
    server.open = false;
    connect();
    run(50);
    Data answer = {0xc3, 0x9b, 0, 64, 0, 0, 0xa0, 0xc0, 0xcf};
    const uint64_t prior = Prior::generic().hash();
    for (int i = 7; i >= 0; i--) answer.push_back(static_cast<uint8_t>(prior >> 8 * i));
    answer.push_back(0);
    for (int i = 0; i < 3; i++) answer.push_back(0xc0);
    server.send(DatagramKind::data, answer);
    run(20);
    REQUIRE(last().type == EventType::bound);
    processed = 0;
  }

  // play runs the client for a time, in which a frame is drawn each millisecond. The server has inputs 100 ms
  // after they were made, and its states arrive at once.
  void play(Loop<SledGame> &loop, uint64_t time, uint8_t generation = 0) {
    for (uint64_t end = now + time * millisecond; now < end; run(1)) {
      REQUIRE(loop.advance(now, &next) == Error::ok);
      if (game.sent.size() < processed + 7) continue;
      sled.push(game.sent[processed++]);
      said.tell(processed);
      REQUIRE(loop.correct(said, ++tick, object_key(1, generation), sled) == Error::ok);
    }
  }
};

} // namespace

TEST_CASE("the ticks of a client that predicts") {
  LoopWorld w;
  Loop<SledGame> loop(*w.client, w.rpc, *w.frame, 60, w.game, {});
  CHECK_FALSE(loop.known());
  w.play(loop, 10000);
  CHECK(loop.known());
  CHECK(w.game.corrections == 0);
  CHECK(loop.waiting() == 6);
  CHECK(loop.stats().inputs == 600);
  CHECK(loop.skipped() + loop.unsent() == 0);
  CHECK(w.client->stats().calls == 600);
  // The server pushes the sled.
  w.sled.x += 1000;
  w.play(loop, 1000);
  CHECK(w.game.corrections == 1);
  CHECK(w.game.largest == 1000);
  // A state that was used has no effect again.
  const Sled before = loop.state();
  CHECK(loop.correct(w.said, w.tick, object_key(1, 0), {}) == Error::ok);
  CHECK(loop.state().x == before.x);
  // A respawn is no correction.
  w.sled = {1000000, 0};
  w.play(loop, 1000, 1);
  CHECK(w.game.corrections == 1);
  CHECK(loop.state().x > 900000);
}

TEST_CASE("a client that stalls catches up, or skips what it missed") {
  for (const uint64_t stall : {100, 140, 250, 500, 1000, 5000}) {
    CAPTURE(stall);
    LoopWorld w;
    Loop<SledGame> loop(*w.client, w.rpc, *w.frame, 60, w.game, {});
    w.play(loop, 2000);
    const uint64_t inputs = loop.stats().inputs;
    w.now += stall * millisecond;
    REQUIRE(loop.advance(w.now, &w.next) == Error::ok);
    const uint64_t ran = loop.stats().inputs - inputs;
    if (stall <= 150) {
      CHECK(ran >= stall * 60 / 1000);
      CHECK(loop.skipped() == 0);
    } else {
      CHECK(ran == 1);
      CHECK(loop.skipped() >= stall * 60 / 1000 - 1);
    }
    CHECK(w.next > w.now);
  }
}

TEST_CASE("ticks in a new session") {
  LoopWorld w;
  Loop<SledGame> loop(*w.client, w.rpc, *w.frame, 60, w.game, {});
  w.play(loop, 1000);
  const uint64_t inputs = loop.stats().inputs;
  w.client->close(0, w.now);
  for (int i = 0; i < 500; i++, w.run(1)) REQUIRE(loop.advance(w.now, &w.next) == Error::ok);
  CHECK(loop.unsent() == 30);
  CHECK(loop.stats().inputs == inputs);
  w.open();
  w.sled = {5000000, 0};
  w.tick = 0;
  w.play(loop, 1000);
  CHECK(w.game.sessions == 2);
  CHECK(w.game.corrections == 0);
  CHECK(loop.state().x > 4900000);
  CHECK(loop.waiting() == 6);
}

TEST_CASE("a server that does not tell what it has processed") {
  LoopWorld w;
  Loop<SledGame> loop(*w.client, w.rpc, *w.frame, 60, w.game, {});
  Error e = Error::ok;
  for (int i = 0; i < 3000 && e == Error::ok; i++, w.run(1)) {
    REQUIRE(loop.advance(w.now, &w.next) == Error::ok);
    e = loop.correct(w.said, static_cast<uint64_t>(i), 1, {});
  }
  CHECK(e == Error::invalid);
}
