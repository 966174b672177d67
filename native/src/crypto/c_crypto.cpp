// The flat C interface of the cryptographic functions of the library.
#include "src/base/c_api.hpp"
#include "uplink/crypto.hpp"

#if defined(UPLINK_CRYPTO_SODIUM) || defined(UPLINK_CRYPTO_MBEDTLS)

using uplink::detail::c_api::as;

namespace {

// library is constant after the first call.
const uplink::Crypto &library() {
  static const uplink::Crypto c = uplink::library_crypto();
  return c;
}

int32_t lib_x25519(void *, uint8_t *out, const uint8_t *private_key, const uint8_t *public_key) {
  return library().x25519(nullptr, out, private_key, public_key) ? 1 : 0;
}
void lib_chacha20(void *, uint8_t *data, size_t size, const uint8_t *key, const uint8_t *nonce,
                  uint32_t block) {
  library().chacha20(nullptr, data, size, key, nonce, block);
}
void lib_poly1305(void *, uint8_t *tag, const uint8_t *key, const uplink_bytes *parts, size_t n) {
  library().poly1305(nullptr, tag, key, as<const uplink::Bytes>(parts), n);
}
void lib_sha256(void *, uint8_t *hash, const uplink_bytes *parts, size_t n) {
  library().sha256(nullptr, hash, as<const uplink::Bytes>(parts), n);
}
int32_t lib_random(void *, uint8_t *out, size_t size) {
  return library().random(nullptr, out, size) ? 1 : 0;
}
int32_t lib_seal(void *, uint8_t *data, size_t size, uint8_t *tag, const uint8_t *key, const uint8_t *nonce,
                 uplink_bytes associated) {
  return library().aes128_gcm_seal(nullptr, data, size, tag, key, nonce, {associated.data, associated.size})
             ? 1
             : 0;
}
int32_t lib_open(void *, uint8_t *data, size_t size, const uint8_t *tag, const uint8_t *key,
                 const uint8_t *nonce, uplink_bytes associated) {
  return library().aes128_gcm_open(nullptr, data, size, tag, key, nonce, {associated.data, associated.size})
             ? 1
             : 0;
}
int32_t lib_ctr(void *, uint8_t *data, size_t size, const uint8_t *key, const uint8_t *block) {
  return library().aes128_ctr(nullptr, data, size, key, block) ? 1 : 0;
}

uplink_crypto functions() {
  uplink_crypto c;
  UPLINK_INIT(c);
  c.x25519 = lib_x25519;
  c.chacha20 = lib_chacha20;
  c.poly1305 = lib_poly1305;
  c.sha256 = lib_sha256;
  c.random = lib_random;
  if (library().aes128_gcm_seal == nullptr) return c;
  c.aes128_gcm_seal = lib_seal;
  c.aes128_gcm_open = lib_open;
  c.aes128_ctr = lib_ctr;
  return c;
}

} // namespace

const uplink_crypto *uplink_library_crypto(void) {
  static const uplink_crypto c = functions();
  return &c;
}

#else

const uplink_crypto *uplink_library_crypto(void) {
  return nullptr;
}

#endif
