// The cryptographic functions that the client needs. An engine can put its own in place of those of
// libsodium. docs/spec/crypto.md specifies what is made of them.
#pragma once

#include "uplink/base.hpp"

namespace uplink {

// Crypto is a set of functions. The first five are required; those of AES are null without it. All
// may be called by several threads at once, with the same context.
struct Crypto {
  void *context = nullptr;
  // x25519 writes X25519(private key, public key), 32 bytes each (RFC 7748), and reports whether the
  // result is not 32 zero bytes.
  bool (*x25519)(void *context, uint8_t *out, const uint8_t *private_key,
                 const uint8_t *public_key) = nullptr;
  // chacha20 encrypts or decrypts data in place (RFC 8439) with a key of 32 and a nonce of 12 bytes,
  // from a number of the block on.
  void (*chacha20)(void *context, uint8_t *data, size_t size, const uint8_t *key, const uint8_t *nonce,
                   uint32_t block) = nullptr;
  // poly1305 writes the tag of 16 bytes of n parts in order, with a key of 32 bytes (RFC 8439).
  void (*poly1305)(void *context, uint8_t *tag, const uint8_t *key, const Bytes *parts, size_t n) = nullptr;
  // sha256 writes the hash of 32 bytes of n parts in order.
  void (*sha256)(void *context, uint8_t *hash, const Bytes *parts, size_t n) = nullptr;
  // random writes bytes of a cryptographic random number generator. It reports whether it could.
  bool (*random)(void *context, uint8_t *out, size_t size) = nullptr;

  // aes128_gcm_seal encrypts data in place and writes the tag of 16 bytes; aes128_gcm_open decrypts
  // in place and reports whether the tag is right. The key has 16 bytes, the nonce 12.
  bool (*aes128_gcm_seal)(void *context, uint8_t *data, size_t size, uint8_t *tag, const uint8_t *key,
                          const uint8_t *nonce, Bytes associated) = nullptr;
  bool (*aes128_gcm_open)(void *context, uint8_t *data, size_t size, const uint8_t *tag, const uint8_t *key,
                          const uint8_t *nonce, Bytes associated) = nullptr;
  // aes128_ctr encrypts or decrypts data in place, in counter mode from a block of 16 bytes on.
  bool (*aes128_ctr)(void *context, uint8_t *data, size_t size, const uint8_t *key,
                     const uint8_t *block) = nullptr;
};

// sodium_crypto returns the functions of libsodium. With the CMake option UPLINK_OPENSSL it has AES
// from OpenSSL's libcrypto, which allocates memory by malloc for each call.
Crypto sodium_crypto();

} // namespace uplink
