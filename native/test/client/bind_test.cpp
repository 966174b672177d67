#include <doctest/doctest.h>

#include "src/client/link.hpp"
#include "test/client/vectors.hpp"
#include "uplink/client.hpp"

using namespace uplink;
using namespace uplink::detail::client;
using namespace uplink_test;

TEST_CASE("request to bind") {
  // The first schema of the vectors.
  const Field fields[] = {{"Location", Kind::vec3, 1, 0.1},
                          {"Velocity", Kind::vec3, 1, 0.1},
                          {"View", Kind::angle, 3},
                          {"Buttons", Kind::bits}};
  Field f[4] = {fields[0], fields[1], fields[2], fields[3]};
  f[0].velocity = "Velocity";
  f[3].width = 16;
  Schema *s = nullptr;
  REQUIRE(Schema::create({}, "ServerMove", 60, f, 4, &s) == Error::ok);
  const nlohmann::json v = load("messages.json");
  int checked = 0;
  for (const auto &x : v["bind_requests"]) {
    INFO(x["name"].get<std::string>());
    const auto &value = x["value"];
    if (value["Name"] != "ServerMove" || value["Deadline"] != 0 || value["Fingerprint"] != s->fingerprint() ||
        value["RateHz"] != 60)
      continue;
    uint8_t described[1] = {};
    if (!value["Described"].is_null())
      for (const auto &d : value["Described"])
        described[0] |= static_cast<uint8_t>(1U << d["Field"].get<int>());
    BindRequest r;
    r.rpc = value["RPC"];
    r.schema = s;
    r.ring = value["Ring"];
    r.codec = value["Codec"] == "rle" ? Codec::rle : Codec::adaptive;
    r.reliable = value["Reliable"];
    r.frames = value["Frames"];
    r.prior = value["Prior"];
    r.batch = value["Batch"];
    r.described = described;
    uint8_t out[1173];
    const size_t n = format_bind({out, sizeof(out)}, r);
    CHECK(hex(out, n) == x["bytes"].get<std::string>());
    ServerBind parsed;
    CHECK(parse_server_bind({out, n}, &parsed));
    CHECK(parsed.rpc == r.rpc);
    for (size_t cut = 0; cut < n; cut++) CHECK(!parse_server_bind({out, cut}, &parsed));
    checked++;
  }
  CHECK(checked > 0);
  Schema::destroy(s);
}

TEST_CASE("request to bind of a server") {
  const nlohmann::json v = load("messages.json");
  for (const auto &x : v["bind_requests"]) {
    if (x["name"] != "of a server") continue;
    const Data d = unhex(x["bytes"]);
    ServerBind r;
    REQUIRE(parse_server_bind(bytes(d), &r));
    CHECK(std::string(reinterpret_cast<const char *>(r.name.data), r.name.size) == x["value"]["Name"]);
    CHECK(r.fingerprint == x["value"]["Fingerprint"].get<uint64_t>());
    CHECK(r.ring == 64);
    CHECK(r.prior == x["value"]["Prior"].get<uint64_t>());
    CHECK(!r.reliable);
    for (size_t cut = 0; cut < d.size(); cut++) CHECK(!parse_server_bind({d.data(), cut}, &r));
    return;
  }
  FAIL("no vector");
}

// strings returns the names as they are in a vector: null if there are none.
static nlohmann::json strings(const Names &names) {
  nlohmann::json out;
  Unpacker u(names.items);
  for (size_t i = 0; i < names.n; i++) {
    const Bytes name = u.string();
    out.push_back(std::string(reinterpret_cast<const char *>(name.data), name.size));
  }
  CHECK(u.end());
  return out;
}

TEST_CASE("answers to requests to bind") {
  const nlohmann::json v = load("messages.json");
  for (const auto &x : v["bind_answers"]) {
    INFO(x["name"].get<std::string>());
    const Data d = unhex(x["bytes"]);
    const auto &value = x["value"];
    BindAnswer a;
    REQUIRE(parse_answer(bytes(d), &a));
    CHECK(a.rpc == value["RPC"].get<uint64_t>());
    CHECK(a.ring == value["Ring"].get<uint64_t>());
    CHECK(a.reason == value["Reason"].get<uint64_t>());
    CHECK(a.prior == value["Prior"].get<uint64_t>());
    CHECK(a.field == value["Field"].get<uint64_t>());
    CHECK(a.limit == value["LimitHz"].get<double>());
    CHECK(std::string(reinterpret_cast<const char *>(a.theirs.data), a.theirs.size) == value["Theirs"]);
    uint8_t described[1] = {};
    CHECK(mark_described(a, described, 8) == !value["Ask"].is_null());
    if (!value["Ask"].is_null()) CHECK(described[0] == 0x42);
    CHECK(strings(a.known) == value["Known"]);
    CHECK(strings(a.asking) == value["Asking"]);
    CHECK(strings(a.answering) == value["Answering"]);
    for (size_t cut = 0; cut < d.size(); cut++) CHECK(!parse_answer({d.data(), cut}, &a));
    Data longer = d;
    longer.push_back(0);
    CHECK(!parse_answer(bytes(longer), &a));
  }
  for (const auto &x : v["malformed"]) {
    INFO(x["name"].get<std::string>());
    const Data d = unhex(x["bytes"]);
    BindAnswer a;
    Notice h;
    ServerBind r;
    if (d[0] == 0xc2) CHECK(!parse_server_bind(bytes(d), &r));
    if (d[0] == 0xc3) CHECK(!parse_answer(bytes(d), &a));
    if (d[0] == 0xc0) CHECK(!parse_notice(library_crypto(), bytes(d), &h));
  }
}

TEST_CASE("handovers") {
  const Crypto c = library_crypto();
  const nlohmann::json v = load("messages.json");
  for (const auto &x : v["handovers"]) {
    INFO(x["name"].get<std::string>());
    const Data d = unhex(x["bytes"]);
    const auto &value = x["value"];
    Notice h;
    REQUIRE(parse_notice(c, bytes(d), &h));
    CHECK(h.stream == value["stream"].get<int>());
    CHECK(h.tick == value["tick"].get<uint64_t>());
    CHECK(h.size == value["size"].get<uint32_t>());
    if (h.size > 0) CHECK(hex(h.hash, 32) == value["hash"].get<std::string>());
    CHECK(h.n == value["servers"].size());
    CHECK(h.servers[0].port == 7777);
    const std::string text = value["token"];
    Token t;
    REQUIRE(parse_token(c, text.data(), text.size(), &t) == Error::ok);
    CHECK(hex(h.token.sealed, h.token.sealed_size) == hex(t.sealed, t.sealed_size));
    for (size_t cut = 0; cut < d.size(); cut++) CHECK(!parse_notice(c, {d.data(), cut}, &h));
  }
}
