// Crypto with libsodium, and AES with OpenSSL.
#ifdef UPLINK_CRYPTO_SODIUM

#include <sodium.h>

#include "uplink/crypto.hpp"

#ifdef UPLINK_OPENSSL
#include <climits>
#include <openssl/evp.h>
#endif

namespace uplink {
namespace {

bool x25519(void *, uint8_t *out, const uint8_t *private_key, const uint8_t *public_key) {
  return crypto_scalarmult_curve25519(out, private_key, public_key) == 0;
}

void chacha20(void *, uint8_t *data, size_t size, const uint8_t *key, const uint8_t *nonce, uint32_t block) {
  crypto_stream_chacha20_ietf_xor_ic(data, data, size, nonce, block, key);
}

void poly1305(void *, uint8_t *tag, const uint8_t *key, const Bytes *parts, size_t n) {
  crypto_onetimeauth_poly1305_state s;
  crypto_onetimeauth_poly1305_init(&s, key);
  for (size_t i = 0; i < n; i++) crypto_onetimeauth_poly1305_update(&s, parts[i].data, parts[i].size);
  crypto_onetimeauth_poly1305_final(&s, tag);
}

void sha256(void *, uint8_t *hash, const Bytes *parts, size_t n) {
  crypto_hash_sha256_state s;
  crypto_hash_sha256_init(&s);
  for (size_t i = 0; i < n; i++) crypto_hash_sha256_update(&s, parts[i].data, parts[i].size);
  crypto_hash_sha256_final(&s, hash);
}

bool random(void *, uint8_t *out, size_t size) {
  if (sodium_init() < 0) return false;
  randombytes_buf(out, size);
  return true;
}

#ifdef UPLINK_OPENSSL
// Cipher is a context of OpenSSL with a key; it may be null.
class Cipher {
public:
  Cipher(const EVP_CIPHER *c, const uint8_t *key, const uint8_t *nonce, int encrypt)
      : context_(EVP_CIPHER_CTX_new()) {
    ok_ = context_ != nullptr && EVP_CipherInit_ex(context_, c, nullptr, key, nonce, encrypt) == 1;
  }
  Cipher(const Cipher &) = delete;
  Cipher &operator=(const Cipher &) = delete;
  ~Cipher() { EVP_CIPHER_CTX_free(context_); }

  void update(uint8_t *out, const uint8_t *in, size_t size) {
    int n = 0;
    if (size == 0) return;
    ok_ = ok_ && size <= INT_MAX && EVP_CipherUpdate(context_, out, &n, in, static_cast<int>(size)) == 1;
  }
  void tag(int control, uint8_t *t) { ok_ = ok_ && EVP_CIPHER_CTX_ctrl(context_, control, 16, t) == 1; }
  void end() {
    uint8_t none[16];
    int n = 0;
    ok_ = ok_ && EVP_CipherFinal_ex(context_, none, &n) == 1;
  }
  bool ok() const { return ok_; }

private:
  EVP_CIPHER_CTX *context_;
  bool ok_ = false;
};

bool gcm_seal(void *, uint8_t *data, size_t size, uint8_t *tag, const uint8_t *key, const uint8_t *nonce,
              Bytes associated) {
  Cipher c(EVP_aes_128_gcm(), key, nonce, 1);
  c.update(nullptr, associated.data, associated.size);
  c.update(data, data, size);
  c.end();
  c.tag(EVP_CTRL_AEAD_GET_TAG, tag);
  return c.ok();
}

bool gcm_open(void *, uint8_t *data, size_t size, const uint8_t *tag, const uint8_t *key,
              const uint8_t *nonce, Bytes associated) {
  uint8_t t[16];
  for (int i = 0; i < 16; i++) t[i] = tag[i];
  Cipher c(EVP_aes_128_gcm(), key, nonce, 0);
  c.update(nullptr, associated.data, associated.size);
  c.update(data, data, size);
  c.tag(EVP_CTRL_AEAD_SET_TAG, t);
  c.end();
  return c.ok();
}

bool ctr(void *, uint8_t *data, size_t size, const uint8_t *key, const uint8_t *block) {
  Cipher c(EVP_aes_128_ctr(), key, block, 1);
  c.update(data, data, size);
  return c.ok();
}
#endif

} // namespace

Crypto library_crypto() {
  Crypto c;
  c.x25519 = x25519;
  c.chacha20 = chacha20;
  c.poly1305 = poly1305;
  c.sha256 = sha256;
  c.random = random;
#ifdef UPLINK_OPENSSL
  c.aes128_gcm_seal = gcm_seal;
  c.aes128_gcm_open = gcm_open;
  c.aes128_ctr = ctr;
#endif
  return c;
}

} // namespace uplink

#endif
