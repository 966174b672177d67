// Layers rle, adaptive and acks.
#include "src/codec/header.hpp"
#include "test/conformance/peer.hpp"

namespace peer {

namespace {

struct EncoderOwner {
  uplink::Encoder *e = nullptr;
  uplink::Frame *frame = nullptr;
  std::string schema;

  ~EncoderOwner() {
    uplink::Encoder::destroy(e);
    uplink::Frame::destroy(frame);
  }
};

struct DecoderOwner {
  uplink::Decoder *d = nullptr;
  std::string schema;

  ~DecoderOwner() { uplink::Decoder::destroy(d); }
};

std::map<std::string, std::unique_ptr<EncoderOwner>> encoders;
std::map<std::string, std::unique_ptr<DecoderOwner>> decoders;

uplink::Codec codec_of(const std::string &name) {
  return name == "rle" ? uplink::Codec::rle : uplink::Codec::adaptive;
}

std::string encoder(const Words &w) {
  auto e = std::make_unique<EncoderOwner>();
  e->schema = w[2];
  uplink::EncoderConfig c;
  c.codec = codec_of(w[3]);
  c.rpc = static_cast<uint8_t>(std::stoul(w[4]));
  c.ring = c.peer_ring = static_cast<uint16_t>(std::stoul(w[5]));
  c.copies = static_cast<uint8_t>(std::stoul(w[6]));
  c.max_payload = 65000;
  uplink::Schema *s = schema_of(w[2]);
  if (uplink::Encoder::create({}, *s, c, &e->e) != uplink::Error::ok ||
      uplink::Frame::create({}, *s, &e->frame) != uplink::Error::ok)
    return "error encoder";
  encoders[w[1]] = std::move(e);
  return "ok";
}

std::string encode(const Words &w) {
  EncoderOwner &e = *encoders[w[1]];
  if (!frame_of(e.schema, w[2], *e.frame)) return "error frame";
  std::vector<uint8_t> b(65000);
  size_t n = 0;
  uplink::Error err = e.e->encode(*e.frame, {b.data(), b.size()}, &n);
  if (err != uplink::Error::ok) return std::string("error ") + uplink::text(err);
  return "ok " + bytes_word(b.data(), n);
}

std::string ack(const Words &w) {
  std::vector<uint8_t> b;
  size_t used;
  parse_bytes(w[2], b);
  uplink::Error e = encoders[w[1]]->e->ack({b.data(), b.size()}, &used);
  return e == uplink::Error::ok && used == b.size() ? "ok" : "drop";
}

std::string decoder(const Words &w) {
  auto d = std::make_unique<DecoderOwner>();
  d->schema = w[2];
  uplink::DecoderConfig c;
  c.codec = codec_of(w[3]);
  c.rpc = static_cast<uint8_t>(std::stoul(w[4]));
  c.ring = c.peer_ring = static_cast<uint16_t>(std::stoul(w[5]));
  if (uplink::Decoder::create({}, *schema_of(w[2]), c, &d->d) != uplink::Error::ok) return "error decoder";
  decoders[w[1]] = std::move(d);
  return "ok";
}

std::string decode(const Words &w) {
  DecoderOwner &d = *decoders[w[1]];
  std::vector<uint8_t> b;
  parse_bytes(w[2], b);
  uplink::Call calls[uplink::max_calls];
  size_t n;
  switch (d.d->decode({b.data(), b.size()}, calls, &n)) {
  case uplink::Error::ok:
    break;
  case uplink::Error::stale:
    return "drop late";
  case uplink::Error::duplicate:
    return "drop duplicate";
  case uplink::Error::no_baseline:
    return "drop baseline";
  case uplink::Error::desync:
    return "drop desync";
  default:
    return "drop malformed";
  }
  std::string out = "ok";
  for (size_t i = 0; i < n; i++)
    out += " " + std::to_string(calls[i].sequence) + " " + frame_word(d.schema, *calls[i].frame);
  return out;
}

std::string acks(const Words &w) {
  uint8_t b[uplink::max_ack];
  return "ok " + bytes_word(b, decoders[w[1]]->d->ack(b));
}

std::string parse_ack(const Words &w) {
  std::vector<uint8_t> b;
  parse_bytes(w[1], b);
  uplink::detail::AckForm a;
  size_t n = uplink::detail::parse_ack(b.data(), b.size(), &a);
  if (n == 0 || a.request > 2 || a.epoch > 7) return "drop malformed";
  static const char *const requests[] = {"none", "baseline", "desync"};
  char out[128];
  std::snprintf(out, sizeof out, "ok %d %d %d %d %d %016llx %d %s %zu", a.stream, a.epoch, a.none ? 0 : 1,
                a.newest, a.length, static_cast<unsigned long long>(a.window), a.whole ? 1 : 0,
                requests[a.request], n);
  return out;
}

} // namespace

void add_codec(Peer &p) {
  p.layers += " rle adaptive acks";
  p.requests["encoder"] = encoder;
  p.requests["encode"] = encode;
  p.requests["ack"] = ack;
  p.requests["decoder"] = decoder;
  p.requests["decode"] = decode;
  p.requests["acks"] = acks;
  p.requests["parseack"] = parse_ack;
  p.frees.emplace_back([](const std::string &h) {
    encoders.erase(h);
    decoders.erase(h);
  });
}

} // namespace peer
