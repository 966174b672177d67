// HMAC, HKDF, cipher suites, and the keys of epochs. crypto.md, 3 and 4.
#pragma once

#include <initializer_list>

#include "src/client/bytes.hpp"
#include "uplink/crypto.hpp"

namespace uplink::detail::client {

// wipe zeroes memory, even if it is never read again.
void wipe(void *memory, size_t size);
// equal compares in constant time.
bool equal(const uint8_t *a, const uint8_t *b, size_t n);

void hash(const Crypto &c, uint8_t out[32], std::initializer_list<Bytes> parts);
void hmac(const Crypto &c, uint8_t out[32], Bytes key, std::initializer_list<Bytes> parts);
// expand computes HKDF-Expand with an output of at most 255 * 32 bytes. info has at most 64 bytes.
void expand(const Crypto &c, uint8_t *out, size_t size, const uint8_t key[32], Bytes info);
inline Bytes text_bytes(const char *s) {
  return {reinterpret_cast<const uint8_t *>(s), std::strlen(s)};
}
uint64_t siphash(const uint8_t key[16], std::initializer_list<Bytes> parts);

// chacha_seal encrypts and chacha_open decrypts in place, with ChaCha20-Poly1305.
void chacha_seal(const Crypto &c, uint8_t *data, size_t size, uint8_t tag[16], const uint8_t key[32],
                 const uint8_t nonce[12], Bytes associated);
bool chacha_open(const Crypto &c, uint8_t *data, size_t size, const uint8_t tag[16], const uint8_t key[32],
                 const uint8_t nonce[12], Bytes associated);

constexpr uint8_t suites = 5;

size_t tag_size(uint8_t suite);
// available reports whether the crypto functions of a suite are available.
bool available(const Crypto &c, uint8_t suite);

struct Keys {
  uint8_t key[48] = {};
  uint8_t salt[12] = {};
};

void keys_of(const Crypto &c, uint8_t suite, const uint8_t base[32], uint64_t epoch, Keys *k);
void next_base(const Crypto &c, uint8_t base[32]);
// encrypt encrypts size bytes in place and writes the tag after them.
bool encrypt(const Crypto &c, uint8_t suite, const uint8_t *key, const uint8_t nonce[12], Bytes header,
             uint8_t *data, size_t size);
// decrypt decrypts size bytes in place; the tag follows them. After a failure, data is unspecified.
bool decrypt(const Crypto &c, uint8_t suite, const uint8_t *key, const uint8_t nonce[12], Bytes header,
             uint8_t *data, size_t size);

// Sealer encrypts the datagrams of one direction, whose numbers ascend.
class Sealer {
public:
  void start(const Crypto &c, uint8_t suite, const uint8_t secret[32]);
  ~Sealer() { wipe(this, sizeof(*this)); }
  size_t overhead() const { return tag_size(suite_); }
  bool seal(uint64_t number, Bytes header, uint8_t *data, size_t size);

private:
  Crypto crypto_;
  uint8_t suite_ = 0;
  uint8_t base_[32] = {};
  uint64_t epoch_ = 0;
  Keys keys_;
};

// Opener decrypts the datagrams of one direction.
class Opener {
public:
  void start(const Crypto &c, uint8_t suite, const uint8_t secret[32]);
  ~Opener() { wipe(this, sizeof(*this)); }
  // open decrypts the rest of a datagram to out, which has room for rest.size bytes.
  bool open(uint64_t number, Bytes header, Bytes rest, uint8_t *out, size_t *size);

private:
  bool attempt(const Keys &k, uint64_t number, Bytes header, Bytes rest, uint8_t *out) const;

  Crypto crypto_;
  uint8_t suite_ = 0;
  uint8_t next_base_[32] = {};
  uint64_t epoch_ = 0;
  bool has_previous_ = false;
  Keys previous_, current_, next_;
};

} // namespace uplink::detail::client
