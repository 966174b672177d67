#include "src/client/token.hpp"

#include <algorithm>

#include "uplink/client.hpp"

namespace uplink {
namespace detail::client {
namespace {

constexpr uint64_t max_time = 253402300799999;
constexpr uint8_t base_point[32] = {9};
constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '-' ? 62 : c == '_' ? 63 : -1;
}

// parse_text parses a prefix, followed by body and checksum in base64url. It returns the size of
// the body, or 0.
size_t parse_text(const Crypto &c, const char *prefix, Bytes text, uint8_t *body, size_t capacity) {
  const char *s = reinterpret_cast<const char *>(text.data);
  size_t n = text.size;
  while (n > 0 && is_space(s[n - 1])) n--;
  while (n > 0 && is_space(*s)) s++, n--;
  const size_t skip = std::strlen(prefix);
  if (n < skip || std::memcmp(s, prefix, skip) != 0) return 0;
  s += skip, n -= skip;
  if (n % 4 == 1 || n / 4 * 3 + n % 4 * 3 / 4 > capacity) return 0;
  uint32_t bits = 0, width = 0;
  size_t size = 0;
  for (size_t i = 0; i < n; i++) {
    const int d = digit_of(s[i]);
    if (d < 0) return 0;
    bits = bits << 6 | static_cast<uint32_t>(d);
    width += 6;
    if (width >= 8) {
      width -= 8;
      body[size++] = static_cast<uint8_t>(bits >> width);
      bits &= (1U << width) - 1;
    }
  }
  if (bits != 0 || size <= 4) return 0;
  uint8_t sum[32];
  hash(c, sum, {text_bytes(prefix), {body, size - 4}});
  return std::memcmp(sum, body + size - 4, 4) == 0 ? size - 4 : 0;
}

// format_text is the inverse of parse_text. body has room for 4 more bytes. It returns the length
// without the final zero.
size_t format_text(const Crypto &c, const char *prefix, uint8_t *body, size_t size, char *text) {
  uint8_t sum[32];
  hash(c, sum, {text_bytes(prefix), {body, size}});
  copy(body + size, sum, 4);
  size += 4;
  size_t n = std::strlen(prefix);
  copy(text, prefix, n);
  for (size_t bit = 0; bit < size * 8; bit += 6) {
    const size_t i = bit / 8;
    const uint32_t two = static_cast<uint32_t>(body[i] << 8 | (i + 1 < size ? body[i + 1] : 0));
    text[n++] = alphabet[two >> (10 - bit % 8) & 63];
  }
  text[n] = 0;
  return n;
}

bool hchacha(const Crypto &c, const uint8_t key[32], const uint8_t nonce[16], uint8_t out[32]) {
  static const char constants[] = "expand 32-byte k";
  uint8_t block[64] = {};
  c.chacha20(c.context, block, 64, key, nonce + 4, static_cast<uint32_t>(load_little(nonce, 4)));
  for (size_t i = 0; i < 16; i += 4) {
    const uint8_t *from = reinterpret_cast<const uint8_t *>(constants) + i;
    store_little(out + i, 4, load_little(block + i, 4) - load_little(from, 4));
    store_little(out + 16 + i, 4, load_little(block + 48 + i, 4) - load_little(nonce + i, 4));
  }
  wipe(block, sizeof(block));
  return true;
}

} // namespace

Error parse_token(const Crypto &c, const char *text, size_t size, Token *t) {
  uint8_t body[572];
  const size_t n =
      parse_text(c, "uplink-token-1.", {reinterpret_cast<const uint8_t *>(text), size}, body, sizeof(body));
  if (n < 40 + 79 || n > 40 + max_sealed) return Error::authentication;
  Reader r({body, n});
  r.copy(t->public_key, 32);
  t->expires = r.little(8);
  const Bytes sealed = r.rest();
  t->sealed_size = sealed.size;
  copy(t->sealed, sealed.data, sealed.size);
  Reader head(sealed);
  const uint64_t version = head.little(1);
  head.copy(t->key_id, 4);
  t->route_size = static_cast<uint8_t>(head.little(1));
  if (version != 2 || t->expires > max_time || t->route_size > 16) return Error::authentication;
  head.copy(t->route, t->route_size);
  return head.left() < 24 + 33 + 16 || head.left() > 24 + 466 + 16 ? Error::authentication : Error::ok;
}

void Exchange::start(const Crypto &c, const uint8_t server_public[32]) {
  crypto_ = c;
  copy(h_, "Noise_NK_25519_ChaChaPoly_SHA256", 32);
  copy(chain_, h_, 32);
  hash(c, h_, {{h_, 32}, text_bytes("uplink 4")});
  hash(c, h_, {{h_, 32}, {server_public, 32}});
}

void Exchange::mix(const uint8_t secret[32], uint8_t key[32]) {
  uint8_t prk[32], both[64];
  hmac(crypto_, prk, {chain_, 32}, {{secret, secret == nullptr ? 0U : 32U}});
  expand(crypto_, both, 64, prk, {});
  copy(chain_, both, 32);
  copy(key, both + 32, 32);
  wipe(prk, sizeof(prk));
  wipe(both, sizeof(both));
}

bool Exchange::write(const uint8_t e[32], const uint8_t peer[32], Bytes payload, uint8_t *message) {
  static const uint8_t nonce[12] = {};
  uint8_t secret[32], key[32];
  const bool ok = crypto_.x25519(crypto_.context, message, e, base_point) &&
                  crypto_.x25519(crypto_.context, secret, e, peer);
  if (!ok) return false;
  hash(crypto_, h_, {{h_, 32}, {message, 32}});
  mix(secret, key);
  copy(message + 32, payload.data, payload.size);
  chacha_seal(crypto_, message + 32, payload.size, message + 32 + payload.size, key, nonce, {h_, 32});
  hash(crypto_, h_, {{h_, 32}, {message + 32, payload.size + 16}});
  wipe(secret, sizeof(secret));
  wipe(key, sizeof(key));
  return true;
}

bool Exchange::read(const uint8_t own[32], Bytes message, uint8_t *payload) {
  static const uint8_t nonce[12] = {};
  uint8_t secret[32], key[32], h[32], chain[32];
  if (message.size < 48 || !crypto_.x25519(crypto_.context, secret, own, message.data)) return false;
  copy(h, h_, 32);
  copy(chain, chain_, 32);
  hash(crypto_, h_, {{h_, 32}, {message.data, 32}});
  mix(secret, key);
  const size_t n = message.size - 48;
  copy(payload, message.data + 32, n);
  const bool ok = chacha_open(crypto_, payload, n, message.data + 32 + n, key, nonce, {h_, 32});
  if (ok) {
    hash(crypto_, h_, {{h_, 32}, {message.data + 32, n + 16}});
  } else {
    copy(h_, h, 32);
    copy(chain_, chain, 32);
  }
  wipe(secret, sizeof(secret));
  wipe(key, sizeof(key));
  wipe(chain, sizeof(chain));
  return ok;
}

void Exchange::finish(uint8_t to_server[32], uint8_t to_client[32]) {
  uint8_t k1[32], k2[32], prk[32];
  mix(nullptr, k2);
  copy(k1, chain_, 32);
  hmac(crypto_, prk, {h_, 32}, {{k1, 32}});
  expand(crypto_, to_server, 32, prk, text_bytes("uplink to server"));
  hmac(crypto_, prk, {h_, 32}, {{k2, 32}});
  expand(crypto_, to_client, 32, prk, text_bytes("uplink to client"));
  wipe(k1, sizeof(k1));
  wipe(k2, sizeof(k2));
  wipe(prk, sizeof(prk));
}

} // namespace detail::client

using namespace detail::client;

Error parse_key(const Crypto &c, const char *text, IssuerKey *key) {
  uint8_t body[68];
  const Bytes t = text_bytes(text);
  if (parse_text(c, "uplink-issuer-key-1.", t, body, sizeof(body)) == 64) {
    copy(key->public_key, body, 32);
  } else if (parse_text(c, "uplink-ds-key-1.", t, body, sizeof(body)) == 64) {
    if (!c.x25519(c.context, key->public_key, body, base_point)) return Error::authentication;
  } else {
    return Error::authentication;
  }
  copy(key->token_key, body + 32, 32);
  wipe(body, sizeof(body));
  return Error::ok;
}

Error development_key(const Crypto &c, IssuerKey *key) {
  uint8_t private_key[32];
  hash(c, private_key, {text_bytes("uplink development: private key")});
  hash(c, key->token_key, {text_bytes("uplink development: token key")});
  return c.x25519(c.context, key->public_key, private_key, base_point) ? Error::ok : Error::authentication;
}

Error issue_token(const Crypto &c, const IssuerKey &key, const Claims &claims, char *text, size_t capacity) {
  uint8_t body[40 + max_sealed + 4], plain[466], id[32], nonce[12] = {}, k[32];
  if (capacity <= max_token_text) return Error::too_small;
  if (claims.n == 0 || claims.n > 8 || claims.user_data.size > 256 || claims.expires > max_time ||
      claims.expires <= claims.issued || claims.expires - claims.issued > 86400000)
    return Error::invalid;
  detail::client::ByteWriter w({plain, sizeof(plain)});
  w.little(claims.client_id, 8);
  w.little(claims.issued, 8);
  w.little(claims.expires, 8);
  w.little(claims.n, 1);
  for (size_t i = 0; i < claims.n; i++) {
    const Address &a = claims.servers[i];
    if ((a.family != 4 && a.family != 6) || a.port == 0) return Error::invalid;
    w.little(a.family, 1);
    w.bytes({a.ip, a.family == 4 ? 4U : 16U});
    w.little(a.port, 2);
  }
  w.little(0, 1);
  w.bytes(claims.user_data);
  detail::client::ByteWriter b({body, sizeof(body)});
  b.bytes({key.public_key, 32});
  b.little(claims.expires, 8);
  uint8_t *head = body + b.size();
  b.little(2, 1);
  hash(c, id, {text_bytes("uplink key id"), {key.public_key, 32}, {key.token_key, 32}});
  b.bytes({id, 4});
  b.little(0, 1);
  uint8_t *random = b.bytes(24);
  if (!c.random(c.context, random, 24) || !hchacha(c, key.token_key, random, k)) return Error::no_memory;
  copy(nonce + 4, random + 16, 8);
  uint8_t associated[12 + 6 + 32];
  copy(associated, "uplink token", 12);
  copy(associated + 12, head, 6);
  copy(associated + 18, key.public_key, 32);
  uint8_t *sealed = b.bytes(w.size() + 16);
  if (!w.ok() || sealed == nullptr) return Error::invalid;
  copy(sealed, plain, w.size());
  chacha_seal(c, sealed, w.size(), sealed + w.size(), k, nonce, {associated, sizeof(associated)});
  wipe(k, sizeof(k));
  format_text(c, "uplink-token-1.", body, b.size(), text);
  return Error::ok;
}

} // namespace uplink
