#include "src/client/suite.hpp"

#include <algorithm>

namespace uplink::detail::client {
namespace {

uint64_t rotate(uint64_t v, unsigned n) {
  return v << n | v >> (64 - n);
}

struct Sip {
  uint64_t v[4];
  void rounds(int n) {
    for (; n > 0; n--) {
      v[0] += v[1], v[1] = rotate(v[1], 13) ^ v[0], v[0] = rotate(v[0], 32);
      v[2] += v[3], v[3] = rotate(v[3], 16) ^ v[2];
      v[0] += v[3], v[3] = rotate(v[3], 21) ^ v[0];
      v[2] += v[1], v[1] = rotate(v[1], 17) ^ v[2], v[2] = rotate(v[2], 32);
    }
  }
  void word(uint64_t m) {
    v[3] ^= m;
    rounds(2);
    v[0] ^= m;
  }
};

void poly_tag(const Crypto &c, uint8_t tag[16], const uint8_t *key, const uint8_t *nonce, Bytes associated,
              Bytes text) {
  static const uint8_t zeros[16] = {};
  uint8_t one_time[32] = {}, sizes[16];
  c.chacha20(c.context, one_time, 32, key, nonce, 0);
  store_little(sizes, 8, associated.size);
  store_little(sizes + 8, 8, text.size);
  const Bytes parts[] = {associated,
                         {zeros, (16 - associated.size % 16) % 16},
                         text,
                         {zeros, (16 - text.size % 16) % 16},
                         {sizes, 16}};
  c.poly1305(c.context, tag, one_time, parts, 5);
  wipe(one_time, sizeof(one_time));
}

void nonce_of(const Keys &k, uint64_t number, uint8_t nonce[12]) {
  std::memset(nonce, 0, 4);
  store_big(nonce + 4, 8, number);
  for (size_t i = 0; i < 12; i++) nonce[i] ^= k.salt[i];
}

size_t key_size(uint8_t suite) {
  static const uint8_t sizes[suites] = {0, 16, 48, 32, 32};
  return suite < suites ? sizes[suite] : 0;
}

// short_tag writes the tag of suite 2 or 4. stream is the first 16 bytes of the key stream of suite
// 4.
void short_tag(const Crypto &c, uint8_t suite, const uint8_t *key, const uint8_t *nonce,
               const uint8_t *stream, Bytes header, Bytes text, uint8_t tag[8]) {
  if (suite == 4) {
    const uint8_t size = static_cast<uint8_t>(header.size);
    store_little(tag, 8, siphash(stream, {header, text, {&size, 1}}));
    return;
  }
  uint8_t sizes[24], full[32];
  store_big(sizes, 8, header.size);
  store_big(sizes + 8, 8, text.size);
  store_big(sizes + 16, 8, 8);
  hmac(c, full, {key + 16, 32}, {{sizes, 24}, {nonce, 12}, header, text});
  copy(tag, full, 8);
}

// xor_stream encrypts with the key stream after its first 16 bytes. stream contains the first 64
// bytes of the key stream, enough for 48 bytes of text.
void xor_stream(const Crypto &c, const uint8_t *key, const uint8_t *nonce, uint8_t stream[64], uint8_t *data,
                size_t size) {
  const size_t first = std::min<size_t>(size, 48);
  for (size_t i = 0; i < first; i++) data[i] = static_cast<uint8_t>(data[i] ^ stream[16 + i]);
  if (size > first) c.chacha20(c.context, data + first, size - first, key, nonce, 1);
}

bool counter(const Crypto &c, const uint8_t *key, const uint8_t *nonce, uint8_t *data, size_t size) {
  uint8_t block[16] = {};
  copy(block, nonce, 12);
  return c.aes128_ctr(c.context, data, size, key, block);
}

} // namespace

void wipe(void *memory, size_t size) {
  volatile uint8_t *p = static_cast<volatile uint8_t *>(memory);
  for (size_t i = 0; i < size; i++) p[i] = 0;
}

bool equal(const uint8_t *a, const uint8_t *b, size_t n) {
  volatile uint8_t d = 0;
  for (size_t i = 0; i < n; i++) d = static_cast<uint8_t>(d | (a[i] ^ b[i]));
  return d == 0;
}

void hash(const Crypto &c, uint8_t out[32], std::initializer_list<Bytes> parts) {
  c.sha256(c.context, out, parts.begin(), parts.size());
}

void hmac(const Crypto &c, uint8_t out[32], Bytes key, std::initializer_list<Bytes> parts) {
  uint8_t pad[64] = {}, inner[32];
  Bytes all[8];
  if (key.size > 64)
    c.sha256(c.context, pad, &key, 1);
  else
    copy(pad, key.data, key.size);
  for (uint8_t &b : pad) b ^= 0x36;
  all[0] = {pad, 64};
  std::copy(parts.begin(), parts.begin() + std::min<size_t>(parts.size(), 7), all + 1);
  c.sha256(c.context, inner, all, 1 + std::min<size_t>(parts.size(), 7));
  for (uint8_t &b : pad) b ^= 0x36 ^ 0x5c;
  hash(c, out, {{pad, 64}, {inner, 32}});
  wipe(pad, sizeof(pad));
}

void expand(const Crypto &c, uint8_t *out, size_t size, const uint8_t key[32], Bytes info) {
  uint8_t block[32];
  for (size_t at = 0, i = 1; at < size; at += 32, i++) {
    const uint8_t number = static_cast<uint8_t>(i);
    hmac(c, block, {key, 32}, {{block, at == 0 ? 0U : 32U}, info, {&number, 1}});
    copy(out + at, block, std::min<size_t>(32, size - at));
  }
  wipe(block, sizeof(block));
}

uint64_t siphash(const uint8_t key[16], std::initializer_list<Bytes> parts) {
  const uint64_t k0 = load_little(key, 8), k1 = load_little(key + 8, 8);
  Sip s{{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}};
  uint64_t word = 0, size = 0;
  for (const Bytes &p : parts)
    for (size_t i = 0; i < p.size; i++) {
      word |= uint64_t{p.data[i]} << 8 * (size & 7);
      if ((++size & 7) == 0) {
        s.word(word);
        word = 0;
      }
    }
  s.word(word | size << 56);
  s.v[2] ^= 0xff;
  s.rounds(4);
  return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}

void chacha_seal(const Crypto &c, uint8_t *data, size_t size, uint8_t tag[16], const uint8_t key[32],
                 const uint8_t nonce[12], Bytes associated) {
  c.chacha20(c.context, data, size, key, nonce, 1);
  poly_tag(c, tag, key, nonce, associated, {data, size});
}

bool chacha_open(const Crypto &c, uint8_t *data, size_t size, const uint8_t tag[16], const uint8_t key[32],
                 const uint8_t nonce[12], Bytes associated) {
  uint8_t want[16];
  poly_tag(c, want, key, nonce, associated, {data, size});
  if (!equal(want, tag, 16)) return false;
  c.chacha20(c.context, data, size, key, nonce, 1);
  return true;
}

size_t tag_size(uint8_t suite) {
  static const uint8_t sizes[suites] = {0, 16, 8, 16, 8};
  return suite < suites ? sizes[suite] : 0;
}

bool available(const Crypto &c, uint8_t suite) {
  if (suite == 1) return c.aes128_gcm_seal != nullptr && c.aes128_gcm_open != nullptr;
  if (suite == 2) return c.aes128_ctr != nullptr;
  return suite < suites;
}

void keys_of(const Crypto &c, uint8_t suite, const uint8_t base[32], uint64_t epoch, Keys *k) {
  static const uint16_t numbers[suites] = {0, 4, 2, 0xf001, 0xf002};
  if (suite == 0 || suite >= suites) return;
  uint8_t prk[32], info[33];
  hmac(c, prk, {}, {{base, 32}});
  copy(info, "SFrame 1.0 Secret key ", 22);
  store_big(info + 22, 8, epoch);
  store_big(info + 30, 2, numbers[suite]);
  expand(c, k->key, key_size(suite), prk, {info, 32});
  copy(info, "SFrame 1.0 Secret salt ", 23);
  store_big(info + 23, 8, epoch);
  store_big(info + 31, 2, numbers[suite]);
  expand(c, k->salt, 12, prk, {info, 33});
  wipe(prk, sizeof(prk));
}

void next_base(const Crypto &c, uint8_t base[32]) {
  uint8_t prk[32];
  hmac(c, prk, {}, {{base, 32}});
  expand(c, base, 32, prk, text_bytes("SFrame 1.0 Ratchet"));
  wipe(prk, sizeof(prk));
}

bool encrypt(const Crypto &c, uint8_t suite, const uint8_t *key, const uint8_t nonce[12], Bytes header,
             uint8_t *data, size_t size) {
  uint8_t stream[64] = {};
  switch (suite) {
  case 0:
    return true;
  case 1:
    return c.aes128_gcm_seal(c.context, data, size, data + size, key, nonce, header);
  case 2:
    if (!counter(c, key, nonce, data, size)) return false;
    break;
  case 3:
    chacha_seal(c, data, size, data + size, key, nonce, header);
    return true;
  case 4:
    c.chacha20(c.context, stream, 64, key, nonce, 0);
    xor_stream(c, key, nonce, stream, data, size);
    break;
  default:
    return false;
  }
  short_tag(c, suite, key, nonce, stream, header, {data, size}, data + size);
  wipe(stream, sizeof(stream));
  return true;
}

bool decrypt(const Crypto &c, uint8_t suite, const uint8_t *key, const uint8_t nonce[12], Bytes header,
             uint8_t *data, size_t size) {
  uint8_t stream[64] = {}, tag[8];
  switch (suite) {
  case 0:
    return true;
  case 1:
    return c.aes128_gcm_open(c.context, data, size, data + size, key, nonce, header);
  case 2:
    short_tag(c, suite, key, nonce, stream, header, {data, size}, tag);
    return equal(tag, data + size, 8) && counter(c, key, nonce, data, size);
  case 3:
    return chacha_open(c, data, size, data + size, key, nonce, header);
  case 4:
    c.chacha20(c.context, stream, 64, key, nonce, 0);
    short_tag(c, suite, key, nonce, stream, header, {data, size}, tag);
    if (!equal(tag, data + size, 8)) return false;
    xor_stream(c, key, nonce, stream, data, size);
    return true;
  default:
    return false;
  }
}

void Sealer::start(const Crypto &c, uint8_t suite, const uint8_t secret[32]) {
  crypto_ = c;
  suite_ = suite;
  epoch_ = 0;
  copy(base_, secret, 32);
  keys_of(c, suite, base_, 0, &keys_);
}

bool Sealer::seal(uint64_t number, Bytes header, uint8_t *data, size_t size) {
  while (epoch_ < number >> 20) {
    next_base(crypto_, base_);
    keys_of(crypto_, suite_, base_, ++epoch_, &keys_);
  }
  uint8_t nonce[12];
  nonce_of(keys_, number, nonce);
  return encrypt(crypto_, suite_, keys_.key, nonce, header, data, size);
}

void Opener::start(const Crypto &c, uint8_t suite, const uint8_t secret[32]) {
  crypto_ = c;
  suite_ = suite;
  epoch_ = 0;
  has_previous_ = false;
  copy(next_base_, secret, 32);
  keys_of(c, suite, next_base_, 0, &current_);
  next_base(c, next_base_);
  keys_of(c, suite, next_base_, 1, &next_);
}

bool Opener::attempt(const Keys &k, uint64_t number, Bytes header, Bytes rest, uint8_t *out) const {
  uint8_t nonce[12];
  nonce_of(k, number, nonce);
  copy(out, rest.data, rest.size);
  return decrypt(crypto_, suite_, k.key, nonce, header, out, rest.size - tag_size(suite_));
}

bool Opener::open(uint64_t number, Bytes header, Bytes rest, uint8_t *out, size_t *size) {
  const uint64_t e = number >> 20;
  if (rest.size < tag_size(suite_)) return false;
  *size = rest.size - tag_size(suite_);
  if (e == epoch_) {
    if (!attempt(current_, number, header, rest, out)) return false;
    if (has_previous_ && (number & 0xfffff) >= 1024) {
      has_previous_ = false;
      wipe(&previous_, sizeof(previous_));
    }
    return true;
  }
  if (e + 1 == epoch_) return has_previous_ && attempt(previous_, number, header, rest, out);
  if (e != epoch_ + 1 || !attempt(next_, number, header, rest, out)) return false;
  previous_ = current_;
  has_previous_ = true;
  current_ = next_;
  epoch_ = e;
  next_base(crypto_, next_base_);
  keys_of(crypto_, suite_, next_base_, e + 1, &next_);
  return true;
}

} // namespace uplink::detail::client
