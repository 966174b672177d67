// The memory that a client takes from its allocator.
#include <cstdlib>

#include "test/client/world.hpp"

using namespace uplink;
using namespace uplink_test;

namespace {

struct Counter {
  size_t now = 0, most = 0, blocks = 0;
};

// A block has its size in front.
void *allocate(void *context, size_t size) {
  auto *c = static_cast<Counter *>(context);
  auto *b = static_cast<uint8_t *>(std::malloc(size + 64));
  std::memcpy(b, &size, sizeof(size));
  c->now += size;
  c->most = std::max(c->most, c->now);
  c->blocks++;
  return b + 64;
}

void release(void *context, void *memory) {
  auto *c = static_cast<Counter *>(context);
  size_t size = 0;
  std::memcpy(&size, static_cast<uint8_t *>(memory) - 64, sizeof(size));
  c->now -= size;
  c->blocks--;
  std::free(static_cast<uint8_t *>(memory) - 64);
}

// grant answers a request to bind RPC 0.
void grant(Server &s) {
  Data answer = {0xc3, 0x9b, 0, 64, 0, 0, 0xa0, 0xc0, 0xcf};
  const uint64_t prior = Prior::generic().hash();
  for (int i = 7; i >= 0; i--) answer.push_back(static_cast<uint8_t>(prior >> 8 * i));
  answer.push_back(0);
  for (int i = 0; i < 3; i++) answer.push_back(0xc0);
  s.send(detail::client::data, answer);
}

} // namespace

TEST_CASE("a session with an RPC of 20 components takes at most 100 KiB") {
  Counter counter;
  {
    Field f[3];
    f[0].name = "Position";
    f[0].kind = Kind::vec3;
    f[0].resolution = 0.01;
    f[0].velocity = "Velocity";
    f[1].name = "Velocity";
    f[1].kind = Kind::vec3;
    f[1].resolution = 0.01;
    f[2].name = "Axes";
    f[2].kind = Kind::scalar;
    f[2].count = 14;
    f[2].resolution = 0.001;
    Schema *schema = nullptr;
    REQUIRE(Schema::create({}, "Move", 60, f, 3, &schema) == Error::ok);
    REQUIRE(schema->components() == 20);
    World w(0, {}, {&counter, allocate, release});
    uint8_t rpc = 0;
    REQUIRE(w.client->bind(*schema, {}, &rpc) == Error::ok);
    CHECK(w.client->bind(*schema, {}, &rpc) == Error::invalid); // a session binds an RPC once
    for (int session = 0; session < 2; session++) {
      w.server.open = false;
      w.connect();
      w.run(9000);
      REQUIRE(w.server.bodies[detail::client::data].size() > 0);
      grant(w.server);
      w.run(10);
      REQUIRE(w.last().type == EventType::bound);
    }
    MESSAGE("bytes at most: ", counter.most);
    CHECK(counter.most <= 100 * 1024);
    // A handover with as much data as there can be.
    Server other;
    other.id = 0x2233445566778899;
    w.other = &other;
    const std::string data(65536, 'x');
    stream(w.server, data);
    REQUIRE(w.server.channel.send(bytes(notice(other, text_bytes(data.c_str())))));
    size_t arrived = 0;
    Data m(detail::client::max_reliable);
    for (int i = 0; i < 400; i++) {
      w.run(10);
      while (const size_t n = other.bulk.receive(m.data()))
        if (m[0] == 8) arrived += n - 1;
    }
    CHECK(arrived == data.size());
    REQUIRE(other.open);
    grant(other);
    w.run(100);
    const Data done = {40, 0};
    REQUIRE(other.bulk.send(bytes(done)));
    w.run(100);
    REQUIRE(w.last().type == EventType::handover);
    CHECK(w.last().status == 1);
    MESSAGE("bytes at most during a handover: ", counter.most);
    Data release(33, 7);
    release[0] = 0xc0;
    REQUIRE(w.server.channel.send(bytes(release)));
    w.run(100);
    w.server.send(detail::client::data, {0xc5});
    w.run(100);
    MESSAGE("bytes after it: ", counter.now);
    CHECK(counter.now <= 100 * 1024);
    const size_t before = counter.now;
    other.send(detail::client::part, {0x00, 0x20, 1}); // the first of two
    w.run(10);
    MESSAGE("bytes for parts: ", counter.now - before);
    CHECK(counter.now > before);
    CHECK(counter.now <= before + 12 * 1024);
    Client::destroy(w.client);
    w.client = nullptr;
    Schema::destroy(schema);
  }
  CHECK(counter.now == 0);
  CHECK(counter.blocks == 0);
}
