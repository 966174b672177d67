// Texts of connect tokens.
#include "fuzz/input.hpp"

#include "src/client/token.hpp"

using namespace uplink;
using namespace uplink::detail::client;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Crypto crypto = library_crypto();
  Token t;
  if (parse_token(crypto, reinterpret_cast<const char *>(data), size, &t) == Error::ok)
    fuzz::check(t.sealed_size <= max_sealed && t.route_size <= sizeof t.route, "sizes of a token");
  return 0;
}
