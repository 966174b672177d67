// The codec over a connection of one's own: here a loop that loses every fifth payload. An engine
// puts the payload into its move data container, and the ack into the response.
#include <cmath>
#include <cstdio>

#include "uplink/codec.hpp"

int main() {
  uplink::Field fields[2];
  fields[0].name = "Location";
  fields[0].kind = uplink::Kind::vec3;
  fields[0].resolution = 0.1; // centimeters
  fields[1].name = "Buttons";
  fields[1].kind = uplink::Kind::bits;
  fields[1].width = 8;

  uplink::Schema *schema = nullptr;
  uplink::Frame *frame = nullptr;
  uplink::Encoder *encoder = nullptr; // of the client
  uplink::Decoder *decoder = nullptr; // of the server
  if (uplink::Schema::create({}, "ServerMove", 60, fields, 2, &schema) != uplink::Error::ok ||
      uplink::Frame::create({}, *schema, &frame) != uplink::Error::ok ||
      uplink::Encoder::create({}, *schema, {}, &encoder) != uplink::Error::ok ||
      uplink::Decoder::create({}, *schema, {}, &decoder) != uplink::Error::ok)
    return 1;

  size_t bytes = 0, arrived = 0;
  for (int tick = 0; tick < 600; tick++) {
    const double location[3] = {300 * std::sin(tick * 0.02), 300 * std::cos(tick * 0.02), 90};
    const uint64_t buttons = tick % 50 < 5 ? 1 : 0;
    if (frame->set(0, location, 3) != uplink::Error::ok ||
        frame->set_integers(1, &buttons, 1) != uplink::Error::ok)
      return 1;
    uint8_t payload[uplink::max_payload];
    size_t size = 0;
    if (encoder->encode(*frame, {payload, sizeof payload}, &size) != uplink::Error::ok) return 1;
    bytes += size;
    if (tick % 5 == 4) continue; // lost

    uplink::Call calls[uplink::max_calls];
    size_t n = 0;
    if (decoder->decode({payload, size}, calls, &n) != uplink::Error::ok) return 1;
    arrived += n;
    if (tick % 6 != 0) continue;
    uint8_t ack[uplink::max_ack];
    size_t used = 0;
    if (encoder->ack({ack, decoder->ack(ack)}, &used) != uplink::Error::ok) return 1;
  }
  std::printf("600 calls, %zu bytes each on average, %zu arrived\n", bytes / 600, arrived);
  uplink::Decoder::destroy(decoder);
  uplink::Encoder::destroy(encoder);
  uplink::Frame::destroy(frame);
  uplink::Schema::destroy(schema);
  return arrived == 480 ? 0 : 1;
}
