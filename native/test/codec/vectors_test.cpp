// The vectors of schemas, values, headers, acks, rle and the range coder.
#include <cmath>
#include <doctest/doctest.h>

#include "src/codec/description.hpp"
#include "src/codec/header.hpp"
#include "src/codec/rangecoder.hpp"
#include "src/codec/rle.hpp"
#include "test/codec/support.hpp"

using namespace support;
namespace detail = uplink::detail;

namespace {

double number(const json &v) {
  if (!v.is_string()) return v;
  std::string s = v;
  return s == "NaN" ? NAN : s == "+Inf" ? INFINITY : s == "-Inf" ? -INFINITY : -0.0;
}

std::string hex(const uint8_t *b, size_t n) {
  static const char digits[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < n; i++) {
    out += digits[b[i] >> 4];
    out += digits[b[i] & 15];
  }
  return out;
}

detail::Header header(const json &v) {
  detail::Header h;
  h.rpc = v["rpc"];
  h.distance = v["distance"];
  h.epoch = v.value("epoch", uint8_t{0});
  h.has_hash = !v["hash"].is_null();
  if (h.has_hash)
    h.hash = v["hash"].is_string()
                 ? static_cast<uint16_t>(std::stoul(v["hash"].get<std::string>(), nullptr, 16))
                 : v["hash"].get<uint16_t>();
  return h;
}

} // namespace

TEST_CASE("values") {
  json all = load("vectors/values.json");
  for (const json &v : all["values"]) {
    CAPTURE(v.dump());
    SchemaOwner s = schema({{"rpc", "V"}, {"fields", json::array({v["field"]})}});
    FrameOwner f = frame(*s);
    bool integers = v.contains("integers") && !v["integers"].is_null();
    uplink::Kind k = kind(v["field"]["kind"]);
    bool whole = k == uplink::Kind::uint || k == uplink::Kind::int_ || k == uplink::Kind::bits ||
                 k == uplink::Kind::boolean;
    std::vector<double> values;
    std::vector<uint64_t> numbers;
    bool fraction = false;
    for (const json &x : integers ? v["integers"] : v["values"]) {
      if (integers) {
        std::string t = x;
        numbers.push_back(t[0] == '-' ? static_cast<uint64_t>(std::stoll(t)) : std::stoull(t));
      } else {
        values.push_back(number(x));
        fraction =
            fraction || !(values.back() == std::floor(values.back())) || std::fabs(values.back()) > 1e15;
        if (whole && !fraction) numbers.push_back(static_cast<uint64_t>(static_cast<int64_t>(values.back())));
      }
    }
    if (whole && fraction) continue; // the interface has whole numbers only
    uplink::Error e =
        whole ? f->set_integers(0, numbers.data(), numbers.size()) : f->set(0, values.data(), values.size());
    REQUIRE((e == uplink::Error::ok) == !v["components"].is_null());
    if (e != uplink::Error::ok) continue;
    std::vector<int32_t> c(f->components(), f->components() + s->components());
    CHECK(c == v["components"].get<std::vector<int32_t>>());
    if (integers) {
      std::vector<uint64_t> got(numbers.size());
      REQUIRE(f->get_integers(0, got.data(), got.size()) == uplink::Error::ok);
      CHECK(got == numbers);
    }
    if (!v.contains("restored") || whole) continue;
    std::vector<double> got(values.size());
    REQUIRE(f->get(0, got.data(), got.size()) == uplink::Error::ok);
    for (size_t i = 0; i < got.size(); i++)
      CHECK(got[i] == doctest::Approx(number(v["restored"][i])).epsilon(1e-12));
  }
}

// parsed returns the fingerprint of the schema with these descriptions, or 0.
static uint64_t parsed(const std::string &name, const std::vector<std::string> &descriptions) {
  const auto view = [](const std::string &t) {
    return uplink::Bytes{reinterpret_cast<const uint8_t *>(t.data()), t.size()};
  };
  std::vector<uplink::Bytes> views;
  for (const std::string &d : descriptions) views.push_back(view(d));
  uplink::Schema *s = nullptr;
  if (detail::parse_schema({}, view(name), views.data(), views.size(), &s) != uplink::Error::ok) return 0;
  const uint64_t fingerprint = s->fingerprint();
  uplink::Schema::destroy(s);
  return fingerprint;
}

TEST_CASE("descriptions that are none") {
  CHECK(parsed("Move", {"At vec3 resolution=0.01 steps=-10..20", "Turn angle bits=12"}) != 0);
  for (const char *d : {"",
                        "At",
                        "At vec4",
                        "At vec3",
                        "At vec3 resolution=0",
                        "At vec3 resolution=0.010",
                        "At vec3 resolution=nan",
                        "At vec3 resolution=0x1p-4",
                        "At vec3 resolution=",
                        "At  vec3",
                        "At vec3 resolution=0.01 ",
                        "At vec3 resolution=0.01 steps=5..4",
                        "At vec3 resolution=0.01 steps=1",
                        "At vec3 resolution=0.01 steps=1..99999999999999999999",
                        "At vec3 steps=0..1 resolution=0.01",
                        "At uint width=65",
                        "At uint width=+8",
                        "At uint width=8 count=2",
                        "At bits",
                        "At bool width=1",
                        "At fixed max=8",
                        "At bytes size=8",
                        "At bytes max=0",
                        "At uint width=8 velocity=Speed",
                        "At vec3 resolution=0.01 velocity=At",
                        " vec3 resolution=0.01",
                        "At uint width=8\n"}) {
    CAPTURE(d);
    CHECK(parsed("Move", {d}) == 0);
  }
  CHECK(parsed("Move", {"A bool", "A bool"}) == 0);
  CHECK(parsed("Move", {std::string("A bool\0", 7)}) == 0);
  CHECK(parsed("Move", std::vector<std::string>(257, "A bool")) == 0);
}

TEST_CASE("schemas") {
  for (const char *name : {"vectors/values.json", "vectors/messages.json"}) {
    json all = load(name);
    for (const json &v : all["schemas"]) {
      SchemaOwner s = schema(v["schema"]);
      for (size_t i = 0; i < s->fields(); i++) {
        char b[512];
        s->description(i, b, sizeof b);
        CHECK(v["descriptions"][i] == b);
        CHECK(v["field_hashes"][i] == s->field_hash(i));
      }
      CHECK(std::stoull(v["fingerprint"].get<std::string>(), nullptr, 16) == s->fingerprint());
      std::vector<std::string> texts;
      for (size_t i = 0; i < s->fields(); i++) texts.push_back(v["descriptions"][i]);
      CHECK(parsed(s->rpc(), texts) == s->fingerprint());
      size_t n = v["velocity_factors"].is_null() ? 0 : v["velocity_factors"].size();
      REQUIRE(n == s->velocity_factors());
      for (size_t i = 0; i < n; i++) CHECK(v["velocity_factors"][i] == s->velocity_factor(i));
    }
  }
}

TEST_CASE("headers and acks") {
  json all = load("vectors/frames.json");
  for (const json &v : all["headers"]) {
    CAPTURE(v.dump());
    detail::Header h = header(v), got;
    uint8_t b[detail::max_header];
    detail::write_header(h, v["sequence"], b);
    CHECK(v["bytes"] == hex(b, h.size));
    CHECK(v["free"] == h.free_bits);
    REQUIRE(detail::parse_header(b, h.size, &got));
    CHECK((got.rpc == h.rpc && got.distance == h.distance && got.hash == h.hash && got.epoch == h.epoch &&
           got.is_long == v["long"]));
  }
  for (const json &v : all["malformed_headers"]) {
    detail::Header h;
    Buffer b = bytes(v);
    CHECK_FALSE(detail::parse_header(b.data(), b.size(), &h));
  }
  for (const json &v : all["unwrap"]) {
    detail::Header h;
    h.is_long = v["long"];
    h.low = v["low"];
    uint64_t n = 0;
    bool ok = detail::unwrap(h, v["newest"], &n);
    CHECK((ok ? static_cast<int64_t>(n) : -1) == v["sequence"].get<int64_t>());
  }
  for (const json &v : all["acks"]) {
    CAPTURE(v.dump());
    Buffer b = bytes(v["bytes"]);
    detail::AckForm a;
    REQUIRE(detail::parse_ack(b.data(), b.size(), &a) == b.size());
    uint64_t window = std::stoull(v["window"].get<std::string>(), nullptr, 16);
    CHECK((a.stream == v["stream"] && a.epoch == v["epoch"] && a.request == v["request"] &&
           a.none == v["none"] && a.whole == v["whole"] && a.newest == v["newest"] &&
           a.length == v["length"] && a.window == window));
  }
  for (const json &v : all["malformed_acks"]) {
    detail::AckForm a;
    Buffer b = bytes(v);
    size_t n = detail::parse_ack(b.data(), b.size(), &a);
    CHECK_FALSE((n == b.size() && n > 0 && a.request <= 2 && a.epoch <= 7));
  }
}

TEST_CASE("rle") {
  json all = load("vectors/rle.json");
  SchemaOwner s = schema(all["schema"]);
  const auto &own = detail::impl(*s);
  FrameOwner f = frame(*s), base = frame(*s), got = frame(*s);
  std::vector<uint8_t> scratch(own.binary);
  for (const json &v : all["payloads"]) {
    CAPTURE(v["payload"].get<std::string>());
    Buffer want = bytes(v["payload"]), out(4096);
    set(*f, v["ints"], v["bytes"]);
    bool based = v.contains("base");
    if (based) set(*base, v["base"], v["base_bytes"]);
    const detail::FrameView *b = based ? &detail::impl(*base).view : nullptr;
    detail::Header h = header(v["header"]);
    detail::write_header(h, v["header"]["sequence"], out.data());
    detail::Writer w(out.data() + h.size, out.size() - h.size);
    REQUIRE(detail::encode_rle(own, detail::impl(*f).view, b, scratch.data(), w));
    CHECK(v["payload"] == hex(out.data(), h.size + w.size()));
    REQUIRE(detail::decode_rle(own, want.data() + h.size, want.size() - h.size, b, scratch.data(),
                               detail::impl(*got).view));
    CHECK(equal(*got, *f));
  }
}

TEST_CASE("the run-length code") {
  json all = load("vectors/runlength.json");
  for (const char *list : {"encode_exactly", "decode_only"}) {
    for (const json &v : all[list]) {
      CAPTURE(v.dump());
      Buffer plain, out(4096), back(4096);
      if (v.contains("plain_repeat")) {
        plain.assign(v["plain_repeat"][1].get<size_t>(), bytes(v["plain_repeat"][0])[0]);
      } else if (v.contains("plain_count")) {
        for (int i = v["plain_count"][0]; i <= v["plain_count"][1].get<int>(); i++)
          plain.push_back(static_cast<uint8_t>(i));
      } else {
        plain = bytes(v["plain"]);
      }
      detail::Writer w(out.data(), out.size());
      detail::encode_runs(plain.data(), plain.size(), w);
      Buffer coded(out.begin(), out.begin() + static_cast<ptrdiff_t>(w.size()));
      if (std::string(list) == "decode_only")
        coded = bytes(v["coded"]);
      else if (v.contains("coded"))
        CHECK(coded == bytes(v["coded"]));
      else
        CHECK(coded.size() == v["coded_len"].get<size_t>());
      auto n = detail::decode_runs(coded.data(), coded.size(), back.data(), back.size());
      REQUIRE(n == static_cast<ptrdiff_t>(plain.size()));
      back.resize(plain.size());
      CHECK(back == plain);
    }
  }
  for (const json &v : all["decode_errors"]) {
    Buffer coded = bytes(v["coded"]), out(v.value("limit", size_t{4096}));
    CHECK(detail::decode_runs(coded.data(), coded.size(), out.data(), out.size()) < 0);
  }
}

TEST_CASE("the range coder") {
  json all = load("vectors/rangecoder.json");
  for (const json &v : all["payloads"]) {
    CAPTURE(v["name"].get<std::string>());
    Buffer out(1024);
    int free_bits = v["free"];
    if (v.contains("header")) out[0] = bytes(v["header"])[0];
    detail::RangeEncoder e;
    e.begin(out.data(), free_bits > 0 ? 1 : 0, out.size(), free_bits);
    std::vector<std::vector<uint16_t>> tables;
    for (const json &s : v["steps"]) {
      if (s["op"] == "bit") e.decide(s["value"] != 0, s["p0"].get<uint32_t>());
      if (s["op"] == "raw") e.raw(s["value"].get<uint64_t>(), s.value("bits", 0u));
      if (s["op"] != "symbol") continue;
      std::vector<uint16_t> sums(1);
      for (const json &f : s["frequencies"])
        sums.push_back(static_cast<uint16_t>(sums.back() + f.get<unsigned>()));
      tables.push_back(sums);
      e.symbol(sums.data(), s["value"].get<unsigned>());
    }
    size_t n = e.finish();
    REQUIRE(v["bytes"] == hex(out.data(), n));
    detail::RangeDecoder d;
    d.begin(out.data(), n, free_bits);
    size_t table = 0;
    for (const json &s : v["steps"]) {
      uint64_t want = s["value"].get<uint64_t>();
      if (s["op"] == "bit") CHECK(d.decide(s["p0"].get<uint32_t>()) == (want != 0));
      if (s["op"] == "raw") CHECK(d.raw(s.value("bits", 0u)) == want);
      if (s["op"] == "symbol") CHECK(d.symbol(tables[table++].data()) == want);
    }
    CHECK(d.finish());
  }
  for (const json &v : all["malformed_after_one_bit_60500"]) {
    Buffer b = bytes(v);
    detail::RangeDecoder d;
    d.begin(b.data(), b.size(), 0);
    d.decide(60500);
    CHECK_FALSE(d.finish());
  }
}
