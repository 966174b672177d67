// Acks of a peer for an encoder of an RPC, which encodes a frame before each message of acks. The
// first byte selects the codec and the redundancy, the second the number of frames that were
// encoded before. With rle, a decoder never returns a frame that was not sent.
#include "fuzz/input.hpp"

#include "uplink/codec.hpp"

using namespace uplink;

namespace {

constexpr size_t max_history = 70; // more than a ring
constexpr size_t components = 3;

void frame_of(uint64_t n, int32_t row[components]) {
  const auto i = static_cast<int32_t>(n);
  row[0] = i;
  row[1] = i * i;
  row[2] = 5;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Schema *const schema = [] {
    Field f;
    f.name = "X";
    f.resolution = 1;
    f.count = components;
    Schema *s = nullptr;
    fuzz::check(Schema::create({}, "Move", 60, &f, 1, &s) == Error::ok, "schema");
    return s;
  }();
  if (size < 2) return 0;
  EncoderConfig c;
  DecoderConfig dc;
  c.codec = dc.codec = data[0] % 2 == 0 ? Codec::rle : Codec::adaptive;
  if (c.codec == Codec::adaptive) c.copies = data[0] / 2 % 9;
  Encoder *e = nullptr;
  Decoder *d = nullptr;
  Frame *f = nullptr;
  fuzz::check(Encoder::create({}, *schema, c, &e) == Error::ok &&
                  Decoder::create({}, *schema, dc, &d) == Error::ok &&
                  Frame::create({}, *schema, &f) == Error::ok,
              "create");
  const auto encode = [&] {
    int32_t row[components];
    frame_of(e->next(), row);
    uint8_t payload[max_payload];
    size_t n = 0;
    fuzz::check(f->set_components(row, components) == Error::ok &&
                    e->encode(*f, {payload, sizeof payload}, &n) == Error::ok && n > 0,
                "encode");
    Call calls[max_calls];
    size_t decoded = 0;
    (void)d->decode({payload, n}, calls, &decoded);
    for (size_t i = 0; i < decoded && c.codec == Codec::rle; i++) {
      frame_of(calls[i].sequence, row);
      fuzz::check(std::equal(row, row + components, calls[i].frame->components()),
                  "a frame that was not sent");
    }
  };
  for (size_t i = 0; i < data[1] % (max_history + 1); i++) encode();
  fuzz::Entries entries(data + 2, size - 2);
  for (Bytes acks; entries.next(&acks);) {
    encode();
    while (acks.size > 0) {
      size_t used = 0;
      const Error err = e->ack(acks, &used);
      fuzz::check(used <= acks.size && (err != Error::ok || used > 0), "size of an ack");
      if (used == 0) break;
      acks = {acks.data + used, acks.size - used};
    }
  }
  encode();
  Frame::destroy(f);
  Decoder::destroy(d);
  Encoder::destroy(e);
  return 0;
}
