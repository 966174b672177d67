// Nothing is allocated after the functions named create, which return all they took.
#include <cstdlib>
#include <doctest/doctest.h>

#include "test/codec/support.hpp"

using namespace support;

namespace {

struct Counter {
  size_t calls = 0;
  size_t live = 0;
  size_t bytes = 0;
  size_t limit = SIZE_MAX; // calls

  uplink::Allocator allocator() {
    return {this,
            [](void *c, size_t n) -> void * {
              Counter &self = *static_cast<Counter *>(c);
              if (self.calls == self.limit) return nullptr;
              self.calls++;
              self.live++;
              self.bytes += n;
              return std::malloc(n);
            },
            [](void *c, void *p) {
              static_cast<Counter *>(c)->live--;
              std::free(p);
            }};
  }
};

json moves() {
  return load("traces/portal2_coop_60hz.schema.json");
}

} // namespace

TEST_CASE("allocations") {
  SchemaOwner s = schema(moves());
  for (uplink::Codec codec : {uplink::Codec::rle, uplink::Codec::adaptive}) {
    Counter counter;
    uplink::Encoder *e = nullptr;
    uplink::Decoder *d = nullptr;
    uplink::EncoderConfig ec;
    uplink::DecoderConfig dc;
    ec.codec = dc.codec = codec;
    REQUIRE(uplink::Encoder::create(counter.allocator(), *s, ec, &e) == uplink::Error::ok);
    MESSAGE("an encoder of " << s->components() << " components takes " << counter.bytes << " bytes");
    CHECK(counter.bytes < 64 << 10);
    REQUIRE(uplink::Decoder::create(counter.allocator(), *s, dc, &d) == uplink::Error::ok);
    size_t before = counter.calls;
    FrameOwner f = frame(*s);
    std::vector<int32_t> c(f->components(), f->components() + s->components());
    for (int i = 0; i < 1000; i++) {
      c[0] = i;
      REQUIRE(f->set_components(c.data(), c.size()) == uplink::Error::ok);
      uint8_t payload[1200], ack[uplink::max_ack];
      size_t n, count, used;
      uplink::Call calls[uplink::max_calls];
      REQUIRE(e->encode(*f, {payload, sizeof payload}, &n) == uplink::Error::ok);
      REQUIRE(d->decode({payload, n}, calls, &count) == uplink::Error::ok);
      REQUIRE(e->ack({ack, d->ack(ack)}, &used) == uplink::Error::ok);
    }
    CHECK(counter.calls == before);
    uplink::Encoder::destroy(e);
    uplink::Decoder::destroy(d);
    CHECK(counter.live == 0);
  }
}

TEST_CASE("an allocator that fails") {
  SchemaOwner s = schema(moves());
  for (size_t limit = 0;; limit++) {
    Counter counter;
    counter.limit = limit;
    uplink::Encoder *e = nullptr;
    uplink::Error err = uplink::Encoder::create(counter.allocator(), *s, uplink::EncoderConfig(), &e);
    if (err == uplink::Error::ok) {
      CHECK(limit > 5);
      uplink::Encoder::destroy(e);
      break;
    }
    CHECK(err == uplink::Error::no_memory);
    CHECK(counter.live == 0);
  }
}

TEST_CASE("small buffers and wrong arguments") {
  SchemaOwner s = schema(moves());
  uplink::Encoder *e = nullptr;
  uplink::EncoderConfig c;
  c.ring = 1;
  CHECK(uplink::Encoder::create({}, *s, c, &e) == uplink::Error::invalid);
  REQUIRE(uplink::Encoder::create({}, *s, uplink::EncoderConfig(), &e) == uplink::Error::ok);
  std::unique_ptr<uplink::Encoder, Destroy> owner(e);
  FrameOwner f = frame(*s);
  double nan[3] = {0.0 / 1, 1e300, 0};
  CHECK(f->set(0, nan, 1) == uplink::Error::invalid);
  uint8_t b[1200];
  size_t n;
  for (size_t capacity = 0; capacity < 30; capacity++) {
    uplink::Error err = e->encode(*f, {b, capacity}, &n);
    CHECK((err == uplink::Error::too_small || err == uplink::Error::ok));
    CHECK(n <= capacity);
  }
  for (int i = 0; i < 8; i++) CHECK(e->hold(*f) == uplink::Error::ok);
  CHECK(e->hold(*f) == uplink::Error::full);
  CHECK(e->flush({b, sizeof b}, &n) == uplink::Error::ok);
  CHECK(e->waiting() == 0);
}
