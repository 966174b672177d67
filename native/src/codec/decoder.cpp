// The receiver of an RPC's frames. docs/spec/frames.md, 7 and 9.
#include <cstring>

#include "src/codec/checkpoints.hpp"
#include "src/codec/rle.hpp"
#include "src/codec/stream.hpp"

namespace uplink {

using namespace detail;

namespace {

constexpr unsigned max_late = 64; // payloads by which one that is decoded can be late

struct DecoderImpl final : Decoder {
  enum class Type : uint8_t { delta, reset, keyframe };

  Allocator allocator;
  DecoderConfig config;
  Stream s;
  FrameRing decoded; // frames of the current payload
  FrameImpl calls[max_calls];
  FrameView views[max_calls];
  bool any = false;
  uint64_t newest = 0;
  uint64_t processed = 0;  // bit i is set if payload newest - 1 - i was processed
  uint64_t delivered = 0;  // bit i is set if frame newest - 1 - i was delivered
  Checkpoints checkpoints; // with DecoderConfig::deliver_late and adaptive
  uint8_t epoch = 0;
  uint64_t first = 0; // first payload processed in the epoch
  uint64_t told = 0;
  uint8_t trouble = 0; // 0: none, 1: baseline missing, 2: desync

  // Arrival is the payload being decoded.
  struct Arrival {
    Header header;
    uint64_t n = 0;
    Type type = Type::delta;
    const detail::State *state = nullptr; // which has learned up to the baseline
    size_t count = 1;
    bool repeats = false;
  };

  Error classify(Arrival &a);
  Error check_baseline(Arrival &a);
  bool decode_frames(Arrival &a, Bytes payload);
  size_t take(const Arrival &a, Call *out);
  bool is_late(const Arrival &a) const;
  Error decode_late(Arrival &a, Bytes payload, Call *calls, size_t *n);
};

} // namespace

Error Decoder::create(const Allocator &a, const Schema &s, const DecoderConfig &c, Decoder **out) {
  if (c.ring < 2 || c.ring > 256 || c.peer_ring < 2 || c.peer_ring > 256) return Error::invalid;
  DecoderImpl *d = detail::create<DecoderImpl>(a);
  if (d == nullptr) return Error::no_memory;
  d->allocator = a;
  d->config = c;
  const SchemaImpl &schema = detail::impl(s);
  const size_t kept = c.ring + static_cast<size_t>(max_reach) + (c.deliver_late ? max_late : 0);
  const bool late = c.deliver_late && c.codec == Codec::adaptive;
  if (!d->s.create(a, schema, c.codec, c.prior, c.ring, c.peer_ring, kept) ||
      !d->decoded.create(a, schema, max_calls) || (late && !d->checkpoints.create(a, d->s.model))) {
    destroy(d);
    return Error::no_memory;
  }
  for (size_t i = 0; i < max_calls; i++) {
    d->views[i] = d->decoded.at(i);
    d->calls[i].schema = &schema;
    d->calls[i].view = d->views[i];
  }
  *out = d;
  return Error::ok;
}

void Decoder::destroy(Decoder *d) {
  if (d == nullptr) return;
  DecoderImpl *i = static_cast<DecoderImpl *>(d);
  Allocator a = i->allocator;
  detail::destroy(a, i);
}

void Decoder::ask_reset() {
  DecoderImpl &d = static_cast<DecoderImpl &>(*this);
  if (d.trouble == 0) d.trouble = 1;
}

int rpc_of(Bytes payload) {
  Header h;
  return parse_header(payload.data, payload.size, &h) ? h.rpc : -1;
}

Error Decoder::decode(Bytes payload, Call *calls, size_t *n) {
  DecoderImpl &d = static_cast<DecoderImpl &>(*this);
  *n = 0;
  DecoderImpl::Arrival a;
  if (!parse_header(payload.data, payload.size, &a.header)) return Error::malformed;
  if (a.header.rpc != d.config.rpc) return Error::invalid;
  Error e = d.classify(a);
  if (e == Error::stale && d.is_late(a)) return d.decode_late(a, payload, calls, n);
  if (e == Error::ok && a.type == DecoderImpl::Type::delta) e = d.check_baseline(a);
  if (e == Error::ok && !d.decode_frames(a, payload)) e = Error::malformed;
  if (e == Error::no_baseline && d.trouble == 0) d.trouble = 1;
  if (e == Error::desync) {
    d.trouble = 2;
    d.s.accepted.clear(); // the learned state is kept
    d.checkpoints.clear();
  }
  if (e == Error::ok) *n = d.take(a, calls);
  return e;
}

namespace {

Error DecoderImpl::classify(Arrival &a) {
  const Header &h = a.header;
  a.n = h.low;
  if (any && !unwrap(h, newest, &a.n)) return Error::stale;
  if (any && a.n <= newest) {
    uint64_t back = newest - a.n;
    return back == 0 || (back <= 64 && (processed >> (back - 1) & 1) != 0) ? Error::duplicate : Error::stale;
  }
  if (h.distance != 0)
    a.type = Type::delta;
  else if (!any || (((h.epoch - epoch) & 7) >= 1 && ((h.epoch - epoch) & 7) <= 4))
    a.type = Type::reset;
  else if (h.epoch == epoch)
    a.type = Type::keyframe;
  else
    return Error::stale;
  return Error::ok;
}

// check_baseline learns the frames that the encoder had learned when it coded the payload.
Error DecoderImpl::check_baseline(Arrival &a) {
  uint64_t distance = a.header.distance;
  if (!any || distance > a.n || distance > s.reach) return Error::no_baseline;
  uint64_t b = a.n - distance;
  if (b > newest || newest - b >= s.frames.size() || !s.accepted.has(b)) return Error::no_baseline;
  if (s.unlearned > b + 1) return Error::no_baseline;
  if (s.adaptive && config.deliver_late) checkpoints.save(s, b);
  s.learn_to(b);
  a.state = &s.state;
  if (a.header.has_hash && a.header.hash != s.hash_of(b, s.state)) return Error::desync;
  return Error::ok;
}

// is_late reports whether a payload that is not newer than all before can be decoded (F-18).
bool DecoderImpl::is_late(const Arrival &a) const {
  return config.deliver_late && !config.reliable && any && a.n < newest && newest - a.n <= max_late &&
         (a.header.distance != 0 || a.header.epoch == epoch);
}

// decode_late decodes a payload that is_late. It changes nothing but which frames were delivered.
Error DecoderImpl::decode_late(Arrival &a, Bytes payload, Call *out, size_t *n) {
  a.type = a.header.distance != 0 ? Type::delta : Type::keyframe;
  if (a.type == Type::delta) {
    const uint64_t distance = a.header.distance;
    if (distance > a.n || distance > s.reach) return Error::stale;
    const uint64_t b = a.n - distance;
    if (b > newest || newest - b >= s.frames.size() || !s.accepted.has(b)) return Error::stale;
    if (s.adaptive && s.unlearned <= b + 1) {
      checkpoints.save(s, b);
      s.learn_to(b);
      a.state = &s.state;
    } else if (s.adaptive) {
      a.state = checkpoints.restore(s, b);
      if (a.state == nullptr) return Error::stale;
    }
    if (a.header.has_hash && a.header.hash != s.hash_of(b, a.state == nullptr ? s.state : *a.state))
      return Error::stale;
  }
  if (!decode_frames(a, payload)) return Error::malformed;
  for (uint64_t q = a.n + 1 - a.count; q <= a.n; q++) {
    const uint64_t back = newest - q;
    if (back == 0 || back > max_late || (delivered >> (back - 1) & 1) != 0) continue;
    delivered |= UINT64_C(1) << (back - 1);
    out[*n] = {};
    out[*n].sequence = q;
    out[*n].late = true;
    out[(*n)++].frame = &calls[q - (a.n + 1 - a.count)];
  }
  return *n == 0 ? Error::duplicate : Error::ok;
}

// decode_frames sets the views.
bool DecoderImpl::decode_frames(Arrival &a, Bytes payload) {
  const Header &h = a.header;
  if (!s.adaptive) {
    if (h.free_bits > 0 && (payload.data[h.size - 1] & ((1 << h.free_bits) - 1)) != 0) return false;
    FrameView b = s.frames.at(a.n - h.distance);
    return decode_rle(*s.schema, payload.data + h.size, payload.size - h.size, h.distance != 0 ? &b : nullptr,
                      s.scratch.data(), views[0]);
  }
  size_t from = h.size - (h.free_bits > 0 ? 1 : 0);
  RangeDecoder in;
  in.begin(payload.data + from, payload.size - from, h.free_bits);
  PayloadPart p = s.part(a.n, h.distance, 1, views);
  if (a.state != nullptr) p.state = a.state;
  decode_count(p, in);
  if (in.failed() || (h.distance == 0 && p.count > static_cast<uint64_t>(a.n & 0xffff) + 1) ||
      (config.reliable && p.count > 1))
    return false;
  a.count = p.count;
  a.repeats = p.repeats;
  bool repeats = p.repeats;
  p = s.part(a.n, h.distance, a.count, views);
  if (a.state != nullptr) p.state = a.state;
  p.repeats = repeats;
  return decode_part(p, in);
}

// take stores the frames of a payload, and returns the number of calls delivered.
size_t DecoderImpl::take(const Arrival &a, Call *out) {
  uint64_t n = a.n, oldest = n + 1 - a.count, after = any ? newest + 1 : 0;
  if (a.type == Type::reset) {
    epoch = a.header.epoch;
    trouble = 0;
    first = told = n;
    s.reset();
    checkpoints.clear();
  } else if (a.type == Type::delta && n - a.header.distance + 1 > told) {
    told = n - a.header.distance + 1;
  }
  if (any && a.type != Type::reset) {
    if (n >= s.ring) s.learn_to(n - s.ring); // no baseline can be older
    s.accepted.forget(newest + 1, n);
  }
  uint64_t begin = oldest > after ? oldest : after;
  size_t count = 0;
  for (uint64_t q = begin; q <= n; q++) {
    size_t i = static_cast<size_t>(q - oldest);
    out[count] = {};
    out[count].sequence = q;
    out[count].missed = count == 0 ? q - after : 0;
    out[count++].frame = &calls[i];
    if (a.type == Type::reset && q != n) continue;
    copy(*s.schema, s.frames.at(q), views[i]);
    s.accept(q, q == n ? a.count : 0, a.repeats);
  }
  if (!any) {
    processed = delivered = 0;
  } else {
    uint64_t shift = n - newest;
    processed = shift > 64 ? 0 : (shift == 64 ? 0 : processed << shift) | UINT64_C(1) << (shift - 1);
    delivered = shift > 64 ? 0 : (shift == 64 ? 0 : delivered << shift) | UINT64_C(1) << (shift - 1);
  }
  for (uint64_t q = begin; q < n; q++) delivered |= UINT64_C(1) << (n - 1 - q);
  for (uint64_t q = begin; !a.repeats && q < n; q++) processed |= UINT64_C(1) << (n - 1 - q);
  newest = n;
  any = true;
  return count;
}

} // namespace

size_t Decoder::ack(uint8_t *to) const {
  const DecoderImpl &d = static_cast<const DecoderImpl &>(*this);
  AckForm a;
  a.stream = d.config.rpc;
  a.request = d.trouble;
  a.none = !d.any;
  if (d.any) {
    uint64_t from = d.told > d.first ? d.told : d.first;
    if (from > d.newest) from = d.newest;
    uint64_t length = d.newest - from;
    a.whole = length <= 63 && d.told <= d.first;
    if (length > 63) length = 63;
    a.length = static_cast<uint8_t>(length);
    a.window = d.processed & ((UINT64_C(1) << length) - 1);
    a.epoch = d.epoch;
    a.newest = static_cast<uint16_t>(d.newest);
  }
  return write_ack(a, to);
}

} // namespace uplink
