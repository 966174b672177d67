// Payloads from a peer: the input is a list of them, each after its length in one byte. They go to
// decoders of both codecs. What is decoded again gives the same frames.
#include <cstdlib>

#include "uplink/codec.hpp"

using namespace uplink;

namespace {

Schema *everything() {
  Field f[8];
  const char *names[] = {"At", "Velocity", "View", "Aim", "Way", "Count", "Keys", "Chat"};
  const Kind kinds[] = {Kind::vec3,    Kind::vec3, Kind::angle, Kind::quat,
                        Kind::unitvec, Kind::int_, Kind::bits,  Kind::bytes};
  for (size_t i = 0; i < 8; i++) {
    f[i].name = names[i];
    f[i].kind = kinds[i];
  }
  f[0].resolution = f[1].resolution = 0.1;
  f[0].velocity = "Velocity";
  f[2].count = 2;
  f[5].width = 40;
  f[6].width = 9;
  f[7].size = 20;
  Schema *s = nullptr;
  if (Schema::create({}, "Everything", 60, f, 8, &s) != Error::ok) std::abort();
  return s;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Schema *const schema = everything();
  for (Codec codec : {Codec::rle, Codec::adaptive}) {
    DecoderConfig c;
    c.codec = codec;
    Decoder *d = nullptr;
    if (Decoder::create({}, *schema, c, &d) != Error::ok) std::abort();
    for (size_t at = 0; at < size;) {
      size_t n = data[at++];
      if (n > size - at) n = size - at;
      Call calls[max_calls];
      size_t count = 0;
      Error e = d->decode({data + at, n}, calls, &count);
      if ((e == Error::ok) != (count > 0) || count > max_calls) std::abort();
      for (size_t i = 1; i < count; i++) {
        if (calls[i].sequence != calls[i - 1].sequence + 1) std::abort();
      }
      uint8_t ack[max_ack];
      if (d->ack(ack) > max_ack) std::abort();
      at += n;
    }
    Decoder::destroy(d);
  }
  return 0;
}
