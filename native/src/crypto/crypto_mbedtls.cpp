// Crypto with Mbed TLS 2.28 and 3.
#ifdef UPLINK_CRYPTO_MBEDTLS

#include <cstring>

#include <mbedtls/aes.h>
#include <mbedtls/chacha20.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/ecp.h>
#include <mbedtls/entropy.h>
#include <mbedtls/gcm.h>
#include <mbedtls/poly1305.h>
#include <mbedtls/sha256.h>
#include <mbedtls/version.h>

#include "uplink/crypto.hpp"

#if MBEDTLS_VERSION_MAJOR < 3
#define UPLINK_SHA256(name) mbedtls_sha256_##name##_ret
#else
#define UPLINK_SHA256(name) mbedtls_sha256_##name
#endif

namespace uplink {
namespace {

// Random is a generator with the entropy of the system.
class Random {
public:
  Random() {
    mbedtls_entropy_init(&entropy_);
    mbedtls_ctr_drbg_init(&drbg_);
    ok_ = mbedtls_ctr_drbg_seed(&drbg_, mbedtls_entropy_func, &entropy_, nullptr, 0) == 0;
  }
  Random(const Random &) = delete;
  Random &operator=(const Random &) = delete;
  ~Random() {
    mbedtls_ctr_drbg_free(&drbg_);
    mbedtls_entropy_free(&entropy_);
  }
  bool fill(uint8_t *out, size_t size) {
    while (ok_ && size > 0) {
      const size_t n = size < MBEDTLS_CTR_DRBG_MAX_REQUEST ? size : MBEDTLS_CTR_DRBG_MAX_REQUEST;
      ok_ = mbedtls_ctr_drbg_random(&drbg_, out, n) == 0;
      out += n;
      size -= n;
    }
    return ok_;
  }
  mbedtls_ctr_drbg_context *state() { return &drbg_; }
  bool ok() const { return ok_; }

private:
  mbedtls_entropy_context entropy_;
  mbedtls_ctr_drbg_context drbg_;
  bool ok_ = false;
};

bool x25519(void *, uint8_t *out, const uint8_t *private_key, const uint8_t *public_key) {
  Random random; // blinds the multiplication
  mbedtls_ecp_group group;
  mbedtls_ecp_point point, shared;
  mbedtls_mpi scalar;
  mbedtls_ecp_group_init(&group);
  mbedtls_ecp_point_init(&point);
  mbedtls_ecp_point_init(&shared);
  mbedtls_mpi_init(&scalar);
  uint8_t clamped[32], coordinate[32];
  std::memcpy(clamped, private_key, 32);
  std::memcpy(coordinate, public_key, 32);
  clamped[0] &= 248;
  clamped[31] = static_cast<uint8_t>((clamped[31] & 127) | 64);
  coordinate[31] &= 127;
  size_t n = 0;
  const bool ok =
      random.ok() && mbedtls_ecp_group_load(&group, MBEDTLS_ECP_DP_CURVE25519) == 0 &&
      mbedtls_mpi_read_binary_le(&scalar, clamped, 32) == 0 &&
      mbedtls_ecp_point_read_binary(&group, &point, coordinate, 32) == 0 &&
      mbedtls_ecp_mul(&group, &shared, &scalar, &point, mbedtls_ctr_drbg_random, random.state()) == 0 &&
      mbedtls_ecp_point_write_binary(&group, &shared, MBEDTLS_ECP_PF_UNCOMPRESSED, &n, out, 32) == 0 &&
      n == 32;
  mbedtls_mpi_free(&scalar);
  mbedtls_ecp_point_free(&shared);
  mbedtls_ecp_point_free(&point);
  mbedtls_ecp_group_free(&group);
  uint8_t any = 0;
  for (size_t i = 0; i < 32; i++) any = static_cast<uint8_t>(any | out[i]);
  return ok && any != 0;
}

void chacha20(void *, uint8_t *data, size_t size, const uint8_t *key, const uint8_t *nonce, uint32_t block) {
  mbedtls_chacha20_crypt(key, nonce, block, size, data, data);
}

void poly1305(void *, uint8_t *tag, const uint8_t *key, const Bytes *parts, size_t n) {
  mbedtls_poly1305_context c;
  mbedtls_poly1305_init(&c);
  mbedtls_poly1305_starts(&c, key);
  for (size_t i = 0; i < n; i++)
    if (parts[i].size > 0) mbedtls_poly1305_update(&c, parts[i].data, parts[i].size);
  mbedtls_poly1305_finish(&c, tag);
  mbedtls_poly1305_free(&c);
}

void sha256(void *, uint8_t *hash, const Bytes *parts, size_t n) {
  mbedtls_sha256_context c;
  mbedtls_sha256_init(&c);
  UPLINK_SHA256(starts)(&c, 0);
  for (size_t i = 0; i < n; i++)
    if (parts[i].size > 0) UPLINK_SHA256(update)(&c, parts[i].data, parts[i].size);
  UPLINK_SHA256(finish)(&c, hash);
  mbedtls_sha256_free(&c);
}

bool random(void *, uint8_t *out, size_t size) {
  return Random().fill(out, size);
}

bool gcm_seal(void *, uint8_t *data, size_t size, uint8_t *tag, const uint8_t *key, const uint8_t *nonce,
              Bytes associated) {
  mbedtls_gcm_context c;
  mbedtls_gcm_init(&c);
  const bool ok = mbedtls_gcm_setkey(&c, MBEDTLS_CIPHER_ID_AES, key, 128) == 0 &&
                  mbedtls_gcm_crypt_and_tag(&c, MBEDTLS_GCM_ENCRYPT, size, nonce, 12, associated.data,
                                            associated.size, data, data, 16, tag) == 0;
  mbedtls_gcm_free(&c);
  return ok;
}

bool gcm_open(void *, uint8_t *data, size_t size, const uint8_t *tag, const uint8_t *key,
              const uint8_t *nonce, Bytes associated) {
  mbedtls_gcm_context c;
  mbedtls_gcm_init(&c);
  const bool ok = mbedtls_gcm_setkey(&c, MBEDTLS_CIPHER_ID_AES, key, 128) == 0 &&
                  mbedtls_gcm_auth_decrypt(&c, size, nonce, 12, associated.data, associated.size, tag, 16,
                                           data, data) == 0;
  mbedtls_gcm_free(&c);
  return ok;
}

bool ctr(void *, uint8_t *data, size_t size, const uint8_t *key, const uint8_t *block) {
  mbedtls_aes_context c;
  mbedtls_aes_init(&c);
  uint8_t counter[16], stream[16];
  size_t used = 0;
  std::memcpy(counter, block, 16);
  const bool ok = mbedtls_aes_setkey_enc(&c, key, 128) == 0 &&
                  mbedtls_aes_crypt_ctr(&c, size, &used, counter, stream, data, data) == 0;
  mbedtls_aes_free(&c);
  return ok;
}

} // namespace

Crypto library_crypto() {
  Crypto c;
  c.x25519 = x25519;
  c.chacha20 = chacha20;
  c.poly1305 = poly1305;
  c.sha256 = sha256;
  c.random = random;
  c.aes128_gcm_seal = gcm_seal;
  c.aes128_gcm_open = gcm_open;
  c.aes128_ctr = ctr;
  return c;
}

} // namespace uplink

#endif
