// The cryptographic functions that the client needs. An engine can use its own functions instead of
// those of libsodium. docs/spec/crypto.md specifies their use.
#pragma once

#include "uplink/base.hpp"

namespace uplink {

// Crypto is a set of functions. The first five are required; the functions for AES are null if AES
// is not supported. Several threads may call them at the same time, with the same context.
struct Crypto {
  void *context = nullptr;
  // x25519 writes X25519(private key, public key), 32 bytes each (RFC 7748), and reports whether the
  // result is not 32 zero bytes.
  bool (*x25519)(void *context, uint8_t *out, const uint8_t *private_key,
                 const uint8_t *public_key) = nullptr;
  // chacha20 encrypts or decrypts data in place (RFC 8439). The key has 32 bytes, the nonce 12, and
  // block is the initial block counter.
  void (*chacha20)(void *context, uint8_t *data, size_t size, const uint8_t *key, const uint8_t *nonce,
                   uint32_t block) = nullptr;
  // poly1305 writes the 16-byte tag of the concatenation of n parts, with a key of 32 bytes (RFC
  // 8439).
  void (*poly1305)(void *context, uint8_t *tag, const uint8_t *key, const Bytes *parts, size_t n) = nullptr;
  // sha256 writes the 32-byte hash of the concatenation of n parts.
  void (*sha256)(void *context, uint8_t *hash, const Bytes *parts, size_t n) = nullptr;
  // random writes bytes of a cryptographic random number generator. It returns false if that
  // failed.
  bool (*random)(void *context, uint8_t *out, size_t size) = nullptr;

  // aes128_gcm_seal encrypts data in place and writes the 16-byte tag. aes128_gcm_open decrypts
  // data in place and reports whether the tag is valid. The key has 16 bytes, the nonce 12.
  bool (*aes128_gcm_seal)(void *context, uint8_t *data, size_t size, uint8_t *tag, const uint8_t *key,
                          const uint8_t *nonce, Bytes associated) = nullptr;
  bool (*aes128_gcm_open)(void *context, uint8_t *data, size_t size, const uint8_t *tag, const uint8_t *key,
                          const uint8_t *nonce, Bytes associated) = nullptr;
  // aes128_ctr encrypts or decrypts data in place, in counter mode. block is the initial counter
  // block of 16 bytes.
  bool (*aes128_ctr)(void *context, uint8_t *data, size_t size, const uint8_t *key,
                     const uint8_t *block) = nullptr;
};

// library_crypto returns the functions of the library for which uplink_crypto was built: libsodium or Mbed
// TLS. Those of Mbed TLS have AES; those of libsodium have it with the CMake option UPLINK_OPENSSL, by
// OpenSSL's libcrypto. AES of OpenSSL and X25519 of Mbed TLS allocate memory by malloc for each call.
Crypto library_crypto();

} // namespace uplink
