// Connect tokens and the key exchange. crypto.md, 1 to 3.
#pragma once

#include "src/client/suite.hpp"

namespace uplink::detail::client {

constexpr size_t max_sealed = 528;
constexpr size_t max_token_text = 778;

// Token is the client's part of a connect token.
struct Token {
  uint8_t public_key[32] = {};
  uint64_t expires = 0; // ms since 1970
  uint8_t key_id[4] = {};
  uint8_t route[16] = {};
  uint8_t route_size = 0;
  uint8_t sealed[max_sealed] = {};
  size_t sealed_size = 0;
};

// parse_token parses the text of a token; white space around it is ignored.
Error parse_token(const Crypto &c, const char *text, size_t size, Token *t);

// Exchange is the client's end of the key exchange.
class Exchange {
public:
  ~Exchange() { wipe(this, sizeof(*this)); }
  void start(const Crypto &c, const uint8_t server_public[32]);
  // write writes a message, 48 bytes longer than the payload. e is a new random private key. It
  // fails if the result of X25519 is zero.
  bool write(const uint8_t e[32], const uint8_t peer[32], Bytes payload, uint8_t *message);
  // read writes the payload, 48 bytes shorter than the message. If it fails, the state is
  // unchanged.
  bool read(const uint8_t own[32], Bytes message, uint8_t *payload);
  void finish(uint8_t to_server[32], uint8_t to_client[32]);

private:
  void mix(const uint8_t secret[32], uint8_t key[32]);

  Crypto crypto_;
  uint8_t h_[32] = {};
  uint8_t chain_[32] = {};
};

} // namespace uplink::detail::client
