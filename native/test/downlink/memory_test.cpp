// The memory of decoders: it is released, and bounded by the sets that are kept.
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "test/hex.hpp"
#include "uplink/interpolate.hpp"
#include "uplink/snapshot.hpp"

using namespace uplink;
using namespace uplink_test;

namespace {

// Counter is an allocator that counts allocated bytes, and fails after a number of allocations.
struct Counter {
  size_t live = 0, most = 0, left = SIZE_MAX;

  Allocator allocator() {
    Allocator a;
    a.context = this;
    a.allocate = [](void *context, size_t size) -> void * {
      auto *c = static_cast<Counter *>(context);
      if (c->left == 0) return nullptr;
      c->left--;
      auto *p = static_cast<size_t *>(std::malloc(size + 16));
      *p = size;
      c->live += size;
      if (c->live > c->most) c->most = c->live;
      return p + 16 / sizeof(size_t);
    };
    a.release = [](void *context, void *memory) {
      auto *p = static_cast<size_t *>(memory) - 16 / sizeof(size_t);
      static_cast<Counter *>(context)->live -= *p;
      std::free(p);
    };
    return a;
  }
};

// payloads returns the payloads of a golden session.
std::vector<Data> payloads(const char *name) {
  std::ifstream in(std::string(UPLINK_TESTDATA "/../internal/snapshot/testdata/") + name);
  std::vector<Data> out;
  for (std::string line; std::getline(in, line);)
    if (line.compare(0, 7, "send = ") == 0) out.push_back(unhex(line.substr(7)));
  REQUIRE(out.size() > 10);
  return out;
}

ObjectType *type_of(const char *name, const Allocator &a) {
  std::ifstream in(std::string(UPLINK_TESTDATA "/../internal/snapshot/testdata/") + name);
  std::vector<ObjectField> fields;
  for (std::string line; std::getline(in, line) && line != "set";) {
    if (line[0] == '#') continue;
    char type[16];
    int n = 0, lo = 0, hi = 0;
    REQUIRE(std::sscanf(line.c_str(), "field %*s %15s %d %d %d", type, &n, &lo, &hi) == 4);
    ObjectField f;
    f.type = type[0] == 'q' ? ObjectClass::quat : type[0] == 'f' ? ObjectClass::integer : ObjectClass::number;
    f.components = static_cast<uint8_t>(n);
    f.lo = lo;
    f.hi = hi;
    fields.push_back(f);
  }
  ObjectType *t = nullptr;
  REQUIRE(ObjectType::create(a, fields.data(), fields.size(), &t) == Error::ok);
  return t;
}

} // namespace

TEST_CASE("a decoder releases its memory, and survives its lack") {
  const auto sent = payloads("cubes.session");
  Counter c;
  const Allocator a = c.allocator();
  ObjectType *t = type_of("cubes.session", a);
  for (size_t allowed = 0; allowed <= 40; allowed++) {
    c.left = allowed < 40 ? allowed : SIZE_MAX;
    SnapshotDecoder *d = nullptr;
    if (SnapshotDecoder::create(a, *t, {}, &d) != Error::ok) continue;
    for (const auto &p : sent) {
      SnapshotInfo info;
      Objects o;
      (void)d->decode({p.data(), p.size()}, &info, &o);
    }
    SnapshotDecoder::destroy(d);
  }
  c.left = SIZE_MAX;
  ObjectType::destroy(t);
  CHECK(c.live == 0);
  MESSAGE("bytes at most: ", c.most);
  CHECK(c.most <= 48 << 10);
}

TEST_CASE("a snapshot with too many objects is dropped") {
  const auto sent = payloads("cubes.session");
  ObjectType *t = type_of("cubes.session", {});
  SnapshotDecoder *d = nullptr;
  REQUIRE(SnapshotDecoder::create({}, *t, {}, &d, 3) == Error::ok);
  SnapshotInfo info;
  Objects o;
  CHECK(d->decode({sent[0].data(), sent[0].size()}, &info, &o) == Error::no_memory);
  uint8_t ack[max_ack];
  CHECK(d->ack(ack) == 1); // no payload was decoded
  SnapshotDecoder::destroy(d);
  ObjectType::destroy(t);
}

TEST_CASE("an interpolator of 901 objects takes at most 2 MiB") {
  Counter c;
  const Allocator a = c.allocator();
  Field f[2];
  f[0].name = "Position";
  f[0].kind = Kind::vec3;
  f[0].resolution = 0.002;
  f[1].name = "Rotation";
  f[1].kind = Kind::quat;
  f[1].bits = 9;
  Schema *schema = nullptr;
  ObjectType *t = nullptr;
  Interpolator *i = nullptr;
  InterpolatorConfig config; // 100 ms of delay
  config.interval = 16666667;
  config.position = "Position";
  config.orientation = "Rotation";
  REQUIRE(Schema::create({}, "Cube", 0, f, 2, &schema) == Error::ok);
  REQUIRE(ObjectType::create({}, *schema, &t) == Error::ok);
  REQUIRE(Interpolator::create(a, *t, config, &i) == Error::ok);
  std::vector<Object> objects(901);
  for (size_t k = 0; k < objects.size(); k++) objects[k].id = static_cast<uint16_t>(k);
  const std::vector<int32_t> rows(objects.size() * t->components());
  for (uint64_t n = 0; n < 100; n++) {
    const uint64_t time = n * config.interval;
    REQUIRE(i->add(time, time, {objects.size(), t->components(), objects.data(), rows.data()}) == Error::ok);
    Sample sample;
    REQUIRE(i->sample(time, &sample));
  }
  MESSAGE("bytes at most: ", c.most);
  CHECK(c.most <= 2 << 20);
  Interpolator::destroy(i);
  CHECK(c.live == 0);
  ObjectType::destroy(t);
  Schema::destroy(schema);
}
