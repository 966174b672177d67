// The vectors of the codec adaptive, priors, and whole sessions.
#include <doctest/doctest.h>
#include <map>

#include "src/codec/stream.hpp"
#include "test/codec/support.hpp"

using namespace support;
namespace detail = uplink::detail;

namespace {

std::string hex16(uint16_t v) {
  char b[5];
  std::snprintf(b, sizeof b, "%04x", v);
  return b;
}

} // namespace

TEST_CASE("logarithms, chances and orientations") {
  json all = load("vectors/adaptive.json");
  for (const json &v : all["log"]) CHECK(detail::log(v[0].get<int64_t>()) == v[1].get<int32_t>());
  for (const json &v : all["chance_of_sum"]) {
    int16_t none[4] = {};
    CHECK(detail::chance(v[0].get<int>(), none, 0) == v[1].get<uint32_t>());
  }
  for (const json &v : all["orientations"]) {
    auto list = [&](const detail::Quat &q) { return std::vector<int64_t>(q.e, q.e + 4); };
    auto numbers = [&](const char *name) { return v[name].get<std::vector<int64_t>>(); };
    std::vector<int32_t> ca = v["a"], cb = v["b"];
    int bits = v["bits"];
    int64_t scale = detail::scale_of(bits);
    detail::Quat a = detail::unpack(ca.data(), scale), b = detail::unpack(cb.data(), scale);
    CHECK(list(a) == numbers("unpacked_a"));
    CHECK(list(b) == numbers("unpacked_b"));
    CHECK(list(detail::product(a, b)) == numbers("product_ab"));
    CHECK(list(detail::extended(a, b, v["rate"])) == numbers("extended_ab"));
    std::vector<int64_t> w = v["v"];
    detail::Quat turn = detail::exp(w[0], w[1], w[2]);
    CHECK(list(turn) == numbers("exp_v"));
    int64_t small[3];
    detail::smallest(detail::product(turn, b), v["index"], bits, small);
    CHECK(std::vector<int64_t>(small, small + 3) == numbers("smallest_of_exp_v_times_b"));
  }
}

TEST_CASE("priors") {
  json all = load("vectors/priors.json");
  for (const json &v : all["priors"]) {
    SchemaOwner s = schema(v["schema"]);
    Buffer file = bytes(v["file"]);
    uplink::Prior *p = nullptr;
    REQUIRE(uplink::Prior::create({}, {file.data(), file.size()}, &p) == uplink::Error::ok);
    std::unique_ptr<uplink::Prior, Destroy> owner(p);
    CHECK(p->hash() == std::stoull(v["prior"].get<std::string>(), nullptr, 16));
    detail::Stream stream;
    REQUIRE(stream.create({}, detail::impl(*s), uplink::Codec::adaptive, p, 64, 64, 64));
    CHECK(v["hash"] == hex16(stream.state.hash()));
    for (size_t i = 0; i < file.size(); i += 1 + file.size() / 50) { // no damage is accepted
      file[i] ^= 1;
      CHECK(uplink::Prior::create({}, {file.data(), file.size()}, &p) == uplink::Error::malformed);
      file[i] ^= 1;
    }
  }
}

TEST_CASE("payloads and what is learned") {
  for (const char *name : {"adaptive_everything", "adaptive_extreme", "adaptive_fine", "adaptive_small"}) {
    CAPTURE(name);
    json all = load(std::string("vectors/") + name + ".json");
    SchemaOwner s = schema(all["schema"]);
    json factors = all["velocity_factors"]["factors"];
    if (!factors.is_null()) {
      std::vector<int64_t> f = factors;
      REQUIRE(s->set_velocity_factors(f.data(), f.size()) == uplink::Error::ok);
    }
    detail::Stream stream;
    REQUIRE(stream.create({}, detail::impl(*s), uplink::Codec::adaptive, nullptr, all["ring"], 256, 600));
    FrameOwner f = frame(*s), got = frame(*s);
    std::map<uint64_t, json> frames;
    for (const json &x : all["frames"]) frames[x["seq"]] = x;
    auto put = [&](uint64_t seq) {
      set(*f, frames[seq].value("ints", json()), frames[seq].value("bytes", json()));
      detail::copy(detail::impl(*s), stream.frames.at(seq), detail::impl(*f).view);
    };
    for (const json &e : all["events"]) {
      if (e.contains("learn")) {
        uint64_t n = e["learn"];
        put(n);
        stream.accept(n, e.value("frames", size_t{0}), e.value("repeats", false));
        stream.learn_to(n);
      }
      if (e.contains("hash")) REQUIRE(e["hash"] == hex16(stream.state.hash()));
      if (!e.contains("payload")) continue;
      Buffer want = bytes(e["payload"]), out(65536);
      uint64_t newest = e.value("newest", uint64_t{0});
      size_t count = e["frames"];
      uint64_t distance = e.contains("base") ? newest - e["base"].get<uint64_t>() : 0;
      CAPTURE(newest);
      int free_bits = e.value("free", 0);
      if (free_bits > 0) out[0] = bytes(e["header"])[0];
      detail::FrameRing decoded;
      REQUIRE(decoded.create({}, detail::impl(*s), 16));
      detail::FrameView own[16], views[16];
      detail::FrameRing sources;
      REQUIRE(sources.create({}, detail::impl(*s), 16));
      for (size_t i = 0; i < count; i++) {
        uint64_t seq = newest + 1 - count + i;
        set(*f, frames[seq].value("ints", json()), frames[seq].value("bytes", json()));
        own[i] = sources.at(i);
        detail::copy(detail::impl(*s), own[i], detail::impl(*f).view);
      }
      for (size_t i = 0; i < 16; i++) views[i] = decoded.at(i);
      detail::PayloadPart p = stream.part(newest, distance, count, own);
      p.repeats = e.value("repeats", false);
      detail::RangeEncoder enc;
      enc.begin(out.data(), free_bits > 0 ? 1 : 0, out.size(), free_bits);
      detail::encode_part(p, enc);
      size_t n = enc.finish();
      REQUIRE(Buffer(out.begin(), out.begin() + static_cast<ptrdiff_t>(n)) == want);
      detail::RangeDecoder dec;
      dec.begin(want.data(), want.size(), free_bits);
      detail::PayloadPart q = stream.part(newest, distance, 1, views);
      detail::decode_count(q, dec);
      REQUIRE(q.count == count);
      q = stream.part(newest, distance, count, views);
      REQUIRE(detail::decode_part(q, dec));
      for (size_t i = 0; i < count; i++)
        CHECK(detail::hash(detail::impl(*s), views[i]) == detail::hash(detail::impl(*s), own[i]));
    }
  }
}

TEST_CASE("sessions") {
  for (const char *name : {"adaptive", "adaptive_auto", "adaptive_far", "adaptive_kinds", "adaptive_pairs",
                           "adaptive_restart", "rle", "rle_kinds"}) {
    CAPTURE(name);
    std::ifstream in(path(std::string("sessions/") + name + ".jsonl"));
    std::string line;
    REQUIRE(std::getline(in, line));
    json head = json::parse(line);
    SchemaOwner s = schema(head["schema"]);
    uplink::DecoderConfig c;
    c.codec = head["codec"] == "rle" ? uplink::Codec::rle : uplink::Codec::adaptive;
    c.rpc = head.value("rpc", uint8_t{0});
    c.ring = head["peer_ring"];
    c.peer_ring = head["ring"];
    auto decoder = [&] {
      uplink::Decoder *d = nullptr;
      REQUIRE(uplink::Decoder::create({}, *s, c, &d) == uplink::Error::ok);
      return std::unique_ptr<uplink::Decoder, Destroy>(d);
    };
    auto d = decoder();
    std::map<uint64_t, FrameOwner> sent;
    std::map<uint64_t, Buffer> payloads;
    uint64_t next = 0;
    while (std::getline(in, line)) {
      json step = json::parse(line);
      if (step.contains("send")) {
        sent[next] = frame(*s);
        set(*sent[next], step["send"], step.value("bytes", json()));
        if (step.contains("payload")) payloads[next] = bytes(step["payload"]);
        next++;
      } else if (step.contains("arrives")) {
        uint64_t n = step["arrives"];
        CAPTURE(n);
        uplink::Call calls[uplink::max_calls];
        size_t count;
        uplink::Error e = d->decode({payloads[n].data(), payloads[n].size()}, calls, &count);
        CHECK((e == uplink::Error::ok) == !step.contains("dropped"));
        std::vector<uint64_t> got;
        for (size_t i = 0; i < count; i++) {
          got.push_back(calls[i].sequence);
          CHECK(equal(*calls[i].frame, *sent[calls[i].sequence]));
        }
        CHECK(got == step.value("frames", std::vector<uint64_t>()));
      } else if (step.contains("ack")) {
        uint8_t b[uplink::max_ack];
        size_t n = d->ack(b);
        CHECK(Buffer(b, b + n) == bytes(step["ack"]));
      } else if (step.contains("restart")) {
        d = decoder();
      } else if (step.contains("ask")) {
        d->ask_reset();
      }
    }
    CHECK(next > 100);
  }
}
