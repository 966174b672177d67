// Acks from a peer, for an encoder that has sent some calls. After each, the encoder still works.
#include <cstdlib>

#include "uplink/codec.hpp"

using namespace uplink;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Schema *const schema = [] {
    Field f;
    f.name = "X";
    f.resolution = 1;
    f.count = 3;
    Schema *s = nullptr;
    if (Schema::create({}, "Move", 60, &f, 1, &s) != Error::ok) std::abort();
    return s;
  }();
  EncoderConfig c;
  c.copies = 2;
  Encoder *e = nullptr;
  Frame *f = nullptr;
  if (Encoder::create({}, *schema, c, &e) != Error::ok || Frame::create({}, *schema, &f) != Error::ok)
    std::abort();
  size_t at = 0;
  for (int32_t i = 0; i < 300; i++) {
    const int32_t row[3] = {i, i * i, 5};
    uint8_t payload[1200];
    size_t n = 0, used = 0;
    if (f->set_components(row, 3) != Error::ok || e->encode(*f, {payload, sizeof payload}, &n) != Error::ok)
      std::abort();
    if (i % 3 != 0 || at >= size) continue;
    (void)e->ack({data + at, size - at}, &used);
    if (used > size - at) std::abort();
    at += used == 0 ? 1 : used;
  }
  Frame::destroy(f);
  Encoder::destroy(e);
  return 0;
}
