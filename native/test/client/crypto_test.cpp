#include <doctest/doctest.h>

#include "src/client/token.hpp"
#include "test/client/vectors.hpp"
#include "uplink/client.hpp"

using namespace uplink;
using namespace uplink::detail::client;
using namespace uplink_test;

TEST_CASE("noise") {
  const Crypto c = library_crypto();
  const nlohmann::json v = load("noise.json");
  for (const auto &h : v["handshakes"]) {
    INFO(h["name"].get<std::string>());
    const Data client = unhex(h["client_ephemeral"]), server = unhex(h["server_ephemeral"]);
    const Data own = unhex(h["server_private"]), own_public = unhex(h["server_public"]);
    const Data first = unhex(h["hello"]["message"]), second = unhex(h["welcome"]["message"]);
    const Data p1 = unhex(h["hello"]["payload"]), p2 = unhex(h["welcome"]["payload"]);
    Exchange a, b;
    a.start(c, own_public.data());
    b.start(c, own_public.data());
    Data out(p1.size() + 48), back(p2.size() + 48);
    REQUIRE(a.write(client.data(), own_public.data(), bytes(p1), out.data()));
    CHECK(out == first);
    Data text(p1.size() + 1);
    REQUIRE(b.read(own.data(), bytes(first), text.data()));
    CHECK(hex(text.data(), p1.size()) == hex(p1.data(), p1.size()));
    REQUIRE(b.write(server.data(), first.data(), bytes(p2), back.data()));
    CHECK(back == second);
    Data wrong = second;
    wrong[second.size() - 1] ^= 1;
    Data answer(p2.size() + 1);
    CHECK(!a.read(client.data(), bytes(wrong), answer.data()));
    REQUIRE(a.read(client.data(), bytes(second), answer.data()));
    CHECK(hex(answer.data(), p2.size()) == hex(p2.data(), p2.size()));
    uint8_t up[32], down[32];
    a.finish(up, down);
    CHECK(hex(up, 32) == h["to_server"].get<std::string>());
    CHECK(hex(down, 32) == h["to_client"].get<std::string>());
  }
}

TEST_CASE("aead") {
  const Crypto c = library_crypto();
  int checked = 0;
  const nlohmann::json v = load("aead.json");
  for (const auto &x : v["aead"]) {
    const unsigned number = x["sframe"];
    const uint8_t suite = number == 4 ? 1 : number == 2 ? 2 : number == 0xf001 ? 3 : number == 0xf002 ? 4 : 0;
    if (suite == 0 || !available(c, suite)) continue;
    const Data key = unhex(x["key"]), nonce = unhex(x["nonce"]), aad = unhex(x["aad"]);
    const Data plain = unhex(x["plain"]), sealed = unhex(x["sealed"]);
    Data d = plain;
    d.resize(plain.size() + tag_size(suite));
    REQUIRE(encrypt(c, suite, key.data(), nonce.data(), bytes(aad), d.data(), plain.size()));
    CHECK(d == sealed);
    REQUIRE(decrypt(c, suite, key.data(), nonce.data(), bytes(aad), d.data(), plain.size()));
    CHECK(hex(d.data(), plain.size()) == hex(plain.data(), plain.size()));
    d = sealed;
    d[d.size() / 2] ^= 4;
    CHECK(!decrypt(c, suite, key.data(), nonce.data(), bytes(aad), d.data(), plain.size()));
    checked++;
  }
  MESSAGE("checked ", checked);
  CHECK(checked > 0);
}

TEST_CASE("tokens") {
  const Crypto c = library_crypto();
  const nlohmann::json v = load("tokens.json");
  for (const auto &x : v["tokens"]) {
    INFO(x["name"].get<std::string>());
    const std::string text = "\n " + x["token"].get<std::string>() + "\t";
    Token t;
    REQUIRE(parse_token(c, text.data(), text.size(), &t) == Error::ok);
    CHECK(hex(t.sealed, t.sealed_size) == x["sealed"].get<std::string>());
    CHECK(hex(t.public_key, 32) == x["public_key"].get<std::string>());
    CHECK(hex(t.key_id, 4) == x["key_id"].get<std::string>());
    CHECK(t.expires == x["expires_ms"].get<uint64_t>());
    std::string wrong = x["token"];
    wrong[30] = wrong[30] == 'A' ? 'B' : 'A';
    CHECK(parse_token(c, wrong.data(), wrong.size(), &t) == Error::authentication);
    IssuerKey a, b;
    REQUIRE(parse_key(c, x["key_text"].get<std::string>().c_str(), &a) == Error::ok);
    REQUIRE(parse_key(c, x["issuer_key_text"].get<std::string>().c_str(), &b) == Error::ok);
    CHECK(std::memcmp(&a, &b, sizeof(a)) == 0);
    // Issue it again, with the nonce of the vector as random bytes.
    if (!x["handover"].get<std::string>().empty() || !x["route"].get<std::string>().empty()) continue;
    if (x["servers"].size() != 1 || x["servers"][0] != "203.0.113.7:7777") continue;
    Data nonce = unhex(x["nonce"]), user = unhex(x["user_data"]);
    Crypto fixed = c;
    fixed.context = nonce.data();
    fixed.random = [](void *context, uint8_t *out, size_t n) {
      std::memcpy(out, context, n);
      return true;
    };
    Claims claims;
    claims.client_id = x["client_id"];
    claims.issued = x["issued_ms"];
    claims.expires = x["expires_ms"];
    claims.n = 1;
    claims.servers[0] = {4, {203, 0, 113, 7}, 7777};
    claims.user_data = bytes(user);
    char out[token_text];
    REQUIRE(issue_token(fixed, a, claims, out, sizeof(out)) == Error::ok);
    CHECK(out == x["token"].get<std::string>());
  }
}
