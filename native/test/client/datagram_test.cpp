#include <doctest/doctest.h>

#include "src/client/channel.hpp"
#include "src/client/datagram.hpp"
#include "src/client/suite.hpp"
#include "test/client/vectors.hpp"

using namespace uplink;
using namespace uplink::detail::client;
using namespace uplink_test;

TEST_CASE("headers") {
  const nlohmann::json v = load("datagrams.json");
  for (const auto &x : v["headers"]) {
    const Data d = unhex(x["bytes"]);
    DatagramHeader h;
    REQUIRE(parse_header(bytes(d), &h));
    CHECK(h.kind == x["kind"].get<int>());
    CHECK(h.low == x["number_low"].get<uint32_t>());
    CHECK(h.size == d.size());
    uint64_t id = 0;
    if (x.contains("connection_id")) {
      const Data c = unhex(x["connection_id"]);
      id = load_big(c.data(), 8);
      CHECK(h.connection == id);
    }
    uint8_t out[max_datagram_header];
    CHECK(format_header(out, h.form, h.kind, id, h.low) == d.size());
    CHECK(hex(out, d.size()) == x["bytes"].get<std::string>());
  }
  for (const auto &x : v["malformed_headers"]) {
    INFO(x["name"].get<std::string>());
    DatagramHeader h;
    Handshake s;
    const Data d = unhex(x["bytes"]);
    CHECK(!parse_header(bytes(d), &h));
    CHECK(!parse_handshake(bytes(d), &s));
  }
}

TEST_CASE("packet numbers") {
  const nlohmann::json v = load("datagrams.json");
  for (const auto &x : v["numbers"]) {
    INFO(x.dump());
    Window w;
    const uint64_t next = x["next"];
    const std::string result = x["result"];
    if (next > 0) w.accept(next - 1);
    uint64_t n = 0;
    const bool ok = w.complete(x["low"], x["bits"], &n);
    if (result == "new") {
      CHECK(ok);
      CHECK(n == x["number"].get<uint64_t>());
    } else if (ok) {
      CHECK(result.find("duplicate") != std::string::npos);
      w.accept(n);
      CHECK(!w.complete(x["low"], x["bits"], &n));
    }
  }
}

TEST_CASE("handshake datagrams and heartbeats") {
  const nlohmann::json v = load("datagrams.json");
  int hellos = 0;
  for (const auto &x : v["handshakes"]) {
    INFO(x["name"].get<std::string>());
    const Data d = unhex(x["bytes"]);
    if (d[0] != 0x80) {
      Handshake h;
      REQUIRE(parse_handshake(bytes(d), &h));
      CHECK(h.type == (d[0] & 0x3f));
      if (d[0] != 0x84) CHECK(h.nonce == 0x0123456789abcdef);
      continue;
    }
    Hello h;
    h.nonce = 0x0123456789abcdef;
    copy(h.cookie, d.data() + 11, 24);
    copy(h.key_id, d.data() + 35, 4);
    h.route = {d.data() + 40, d[39]};
    const size_t at = 40U + d[39];
    h.message = {d.data() + at + 2, static_cast<size_t>(load_little(d.data() + at, 2))};
    uint8_t out[max_sent];
    REQUIRE(format_hello(out, h) == d.size());
    CHECK(hex(out, d.size()) == x["bytes"].get<std::string>());
    hellos++;
  }
  CHECK(hellos == 3);
  for (const auto &x : v["bodies"]) {
    if (x["kind"] == part) {
      const Data d = unhex(x["body"]);
      DatagramPart p;
      REQUIRE(parse_part(bytes(d), &p));
      CHECK(p.reliable == x["fields"]["reliable"].get<bool>());
      CHECK(p.count == x["fields"]["count"].get<int>());
      CHECK(p.index == x["fields"]["index"].get<int>());
      CHECK(p.offset == x["fields"]["offset"].get<int>());
      Data out(d.size());
      CHECK(format_part(out.data(), p) == d.size());
      CHECK(out == d);
    }
    if (x["kind"] == data) {
      const Data d = unhex(x["body"]);
      Report r;
      Bytes message;
      REQUIRE(parse_report(bytes(d), &r, &message));
      CHECK(r.newest == x["fields"]["newest"].get<int>());
      CHECK(r.arrived == x["fields"]["arrived"].get<int>());
      CHECK(r.count == x["fields"]["count"].get<int>());
      Data out(report_size);
      format_report(out.data(), r);
      out.insert(out.end(), message.data, message.data + message.size);
      CHECK(out == d);
    }
    if (x["kind"] != heartbeat) continue;
    const Data d = unhex(x["body"]);
    Heartbeat h;
    REQUIRE(parse_heartbeat(bytes(d), &h));
    CHECK(h.ask == x["fields"]["ask"].get<uint32_t>());
    CHECK(h.echo == x["fields"]["echo"].get<uint32_t>());
    CHECK(h.hold == x["fields"]["hold"].get<uint32_t>());
    CHECK(h.answer == x["fields"]["answer"].get<bool>());
    CHECK(h.largest == x["fields"].value("largest", 0));
    uint8_t out[heartbeat_size];
    format_heartbeat(out, h);
    CHECK(hex(out, heartbeat_size) == x["body"].get<std::string>());
    for (const int largest : {116, 117}) { // excess of the largest datagram, and an invalid one
      h.largest = static_cast<uint8_t>(largest);
      format_heartbeat(out, h);
      CHECK(parse_heartbeat({out, heartbeat_size}, &h) == (largest == 116));
    }
  }
}

TEST_CASE("keys of epochs and encrypted datagrams") {
  const Crypto c = library_crypto();
  const nlohmann::json v = load("datagrams.json");
  Data secret[suites];
  for (const auto &x : v["keys"]) {
    const uint8_t suite = x["suite"];
    const Data base = unhex(x["base_key"]);
    Keys k;
    keys_of(c, suite, base.data(), x["epoch"], &k);
    CHECK(hex(k.salt, 12) == x["salt"].get<std::string>());
    const std::string key = x["key"];
    CHECK(hex(k.key, key.size() / 2) == key);
    secret[suite] = unhex(x["secret"]);
  }
  for (uint8_t suite = 0; suite < suites; suite++) {
    if (!available(c, suite)) continue;
    if (secret[suite].empty()) secret[suite].resize(32);
    Sealer s;
    Opener o;
    s.start(c, suite, secret[suite].data());
    o.start(c, suite, secret[suite].data());
    for (const auto &x : v["sealed"]) {
      if (x["suite"] != suite) continue;
      INFO(x.dump());
      const Data header = unhex(x["header"]), body = unhex(x["body"]), want = unhex(x["datagram"]);
      Data d = body;
      d.resize(body.size() + tag_size(suite));
      REQUIRE(s.seal(x["number"], bytes(header), d.data(), body.size()));
      Data whole = header;
      whole.insert(whole.end(), d.begin(), d.end());
      CHECK(hex(whole.data(), whole.size()) == x["datagram"].get<std::string>());
      Data out(want.size());
      size_t n = 0;
      const Bytes rest = {want.data() + header.size(), want.size() - header.size()};
      REQUIRE(o.open(x["number"], bytes(header), rest, out.data(), &n));
      CHECK(hex(out.data(), n) == x["body"].get<std::string>());
      if (suite == 0) continue;
      Data wrong = want;
      wrong.back() ^= 1;
      CHECK(!o.open(x["number"], bytes(header), {wrong.data() + header.size(), rest.size}, out.data(), &n));
    }
  }
}
