// Payloads that arrive out of order.
#include <cmath>
#include <doctest/doctest.h>
#include <vector>

#include "uplink/codec.hpp"

using namespace uplink;

namespace {

// Reordered passes calls over a link whose delay varies by some ticks, and counts what is delivered.
struct Reordered {
  Codec codec;
  bool late;
  double loss;
  size_t calls = 0, delivered = 0, out_of_order = 0, errors = 0;

  void run(size_t n) {
    Field f[2];
    f[0].name = "Location";
    f[0].kind = Kind::vec3;
    f[0].resolution = 0.25;
    f[1].name = "Buttons";
    f[1].kind = Kind::bits;
    f[1].width = 8;
    Schema *schema = nullptr;
    Frame *frame = nullptr;
    Encoder *encoder = nullptr;
    Decoder *decoder = nullptr;
    EncoderConfig ec;
    DecoderConfig dc;
    ec.codec = dc.codec = codec;
    dc.deliver_late = late;
    REQUIRE(Schema::create({}, "Move", 60, f, 2, &schema) == Error::ok);
    REQUIRE(Frame::create({}, *schema, &frame) == Error::ok);
    REQUIRE(Encoder::create({}, *schema, ec, &encoder) == Error::ok);
    REQUIRE(Decoder::create({}, *schema, dc, &decoder) == Error::ok);
    uint64_t seed = 1;
    const auto random = [&seed] {
      seed = seed * 6364136223846793005 + 1442695040888963407;
      return static_cast<double>(seed >> 11) / 9007199254740992.0;
    };
    std::vector<std::vector<std::vector<uint8_t>>> down(n + 16), up(n + 16);
    std::vector<double> sent;
    std::vector<bool> got(n, false);
    for (size_t tick = 0; tick < n; tick++) {
      for (const auto &a : up[tick]) {
        size_t used = 0;
        encoder->ack({a.data(), a.size()}, &used);
      }
      const double t = static_cast<double>(tick);
      const double at[3] = {std::floor(100 * std::sin(t / 20)) / 4, std::floor(90 * std::cos(t / 31)) / 4,
                            10};
      const uint64_t buttons = tick / 40 % 4;
      REQUIRE(frame->set(0, at, 3) == Error::ok);
      REQUIRE(frame->set_integers(1, &buttons, 1) == Error::ok);
      sent.push_back(at[0]);
      uint8_t payload[1200];
      size_t size = 0;
      REQUIRE(encoder->encode(*frame, {payload, sizeof(payload)}, &size) == Error::ok);
      calls++;
      if (random() >= loss)
        down[tick + 4 + static_cast<size_t>(random() * 5)].emplace_back(payload, payload + size);
      for (const auto &p : down[tick]) {
        Call out[max_calls];
        size_t count = 0;
        const Error e = decoder->decode({p.data(), p.size()}, out, &count);
        errors += e == Error::malformed || e == Error::desync ? 1 : 0;
        for (size_t i = 0; i < count; i++) {
          double value[3] = {};
          REQUIRE(out[i].frame->get(0, value, 3) == Error::ok);
          REQUIRE(out[i].sequence < n);
          REQUIRE(!got[out[i].sequence]);
          CHECK(value[0] == sent[out[i].sequence]);
          CHECK((!out[i].late || late));
          got[out[i].sequence] = true;
          delivered++;
          out_of_order += out[i].late ? 1 : 0;
        }
      }
      if (tick % 6 == 5) {
        uint8_t a[max_ack];
        const size_t m = decoder->ack(a);
        if (random() >= loss) up[tick + 4 + static_cast<size_t>(random() * 5)].emplace_back(a, a + m);
      }
    }
    Decoder::destroy(decoder);
    Encoder::destroy(encoder);
    Frame::destroy(frame);
    Schema::destroy(schema);
  }
};

} // namespace

TEST_CASE("late payloads that decode are delivered, with the values that were sent") {
  for (const Codec codec : {Codec::adaptive, Codec::rle}) {
    for (const double loss : {0.0, 0.1}) {
      CAPTURE(static_cast<int>(codec));
      CAPTURE(loss);
      Reordered without{codec, false, loss}, with{codec, true, loss};
      without.run(6000);
      with.run(6000);
      MESSAGE("delivered of 6,000 without: ", without.delivered, ", with late ones: ", with.delivered);
      CHECK(without.out_of_order == 0);
      CHECK(without.errors + with.errors == 0);
      CHECK(without.delivered < 6000 * (1 - loss) * 0.75);
      CHECK(with.delivered > 6000 * (1 - loss) * 0.97);
    }
  }
}
